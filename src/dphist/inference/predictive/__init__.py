"""Calibrated intervals from what was measured alone: a predictive law for every sum of cells."""

from dphist.inference.predictive.errors import MeasuredBlocks, MeasuredCells, PredictiveErrors

__all__ = ["MeasuredBlocks", "MeasuredCells", "PredictiveErrors"]
