"""A release read as a data cube: counts, sums, means, quantiles and shares of groups, each with its interval."""

from dphist.release.cube.cube import Cube

__all__ = ["Cube"]
