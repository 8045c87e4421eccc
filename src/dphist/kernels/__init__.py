"""Compiled inner loops: arrays in, arrays out, no classes and no randomness of their own.

Everything above may import them; they import each other, `errors` and `extras`. `compile` says how they are compiled,
kept and doubled by twins in NumPy.
"""
