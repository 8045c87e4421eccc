"""Counts read by what lies around them, as far as evidence goes: noisy cells (`reading`), blocks of a tree (`hills`).

`fields` and `structural` are the models of cells, `smoothing` and `loggaussian` those of blocks. Mechanisms import it.
"""
