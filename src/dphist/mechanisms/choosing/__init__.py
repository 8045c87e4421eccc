"""Choosing for `auto`: forecasts of errors, a first look at a cube, and the currency that pays less.

Begin with `rule`. It reads public facts (`request`, `asked`) and answers that were paid for (`glimpse`, `chance`,
`planes`, `tall`, `walls`), and names a mechanism; `auto` runs it. `sums` says who could measure sums of values, for the
door.
"""
