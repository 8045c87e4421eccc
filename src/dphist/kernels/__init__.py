"""Compiled inner loops: arrays in, arrays out, no classes and no randomness of their own."""
