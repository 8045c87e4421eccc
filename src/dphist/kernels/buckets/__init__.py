"""Buckets of neighbouring cells: what each costs, and the cheapest way to cut a row into them.

`deviations` and `bisection` are costs, exact in integers; `cheapest` and `lengthwise` search. V-optimal histograms,
whose costs do not depend on the noise, are in `dphist.kernels.segmentation`.
"""
