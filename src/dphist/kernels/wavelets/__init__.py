"""Wavelet transforms of many dimensions, in place: leaf-sum differences one way, cells the other.

Every transform here is a pair of integer maps. Forward gives the *weighted* coefficients (Xiao et al. 2011), which
are integers; inverse gives the cells times a public whole number, the axis's denominator. Integers in 64 bits
form a ring (sums and products modulo 2⁶⁴), so the maps are exact there whatever the size of the numbers, and
a numerator that fits comes back whole.
"""
