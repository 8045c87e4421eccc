"""Calibrated intervals from what was measured alone: a predictive law for every sum of cells."""

from dphist.inference.predictive.engine import Engine
from dphist.inference.predictive.errors import MeasuredBlocks, MeasuredCells, PredictiveErrors

__all__ = ["Engine", "MeasuredBlocks", "MeasuredCells", "PredictiveErrors"]
