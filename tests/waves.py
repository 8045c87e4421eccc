"""Waves straight from their definition, which transforms and questions about frequencies are held against."""

import numpy as np


def waves(shape, basis):
    """The basis of a shape: a row for each frequency, a column for each cell."""
    places = np.indices(shape).reshape(len(shape), -1)
    if basis == "fourier":
        angle = sum(2 * np.pi * np.outer(p, p) / n for p, n in zip(places, shape, strict=True))
        return (np.cos(angle) + np.sin(angle)) / np.sqrt(np.prod(shape))
    rows = 1.0
    for p, n in zip(places, shape, strict=True):
        height = np.where(p == 0, 1.0, np.sqrt(2.0)) / np.sqrt(n)
        rows = rows * height[:, None] * np.cos(np.pi * np.outer(p, p + 0.5) / n)
    return rows
