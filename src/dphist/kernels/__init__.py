"""Inner loops, each written once: arrays in, arrays out, no classes and no randomness of their own.

Everything above may import them; they import each other, `errors` and `extras`. Most are NumPy's; `compile` says which
are compiled, how, and whose machine code is run.
"""
