"""Choosing for `auto`: forecasts of errors, pilot queries, and the currency that pays less.

Begin with `rule`. It reads public facts and, where these do not decide, a pilot query that was paid for (`pilot`), and
names a mechanism; `auto` runs it.
"""
