"""Choosing for `auto`: forecasts of errors, a first look at a cube, and the currency that pays less."""
