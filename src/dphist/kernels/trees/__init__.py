"""Passes over trees of totals: least squares up and down, pruning, shares of levels, exact variances of boxes."""
