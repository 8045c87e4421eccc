"""Buckets of neighbouring cells: the cheapest way to cut a row into them, exactly, under several costs.

`deviations` are sums of absolute deviations of given buckets, which trusted code may noise; `cheapest` weighs buckets
one by one, whatever they cost. `segmentation` finds V-optimal histograms close to linear time by `sweeps`.
"""
