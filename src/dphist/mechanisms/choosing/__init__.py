"""Choosing for `auto`: forecasts of errors, a first look at a cube, and the currency that pays less.

Begin with `rule`. It reads public facts and, where these do not decide, a look that was paid for (`glimpse`), and names
a mechanism; `auto` runs it. `sums` says who could measure sums of values, for the door.
"""
