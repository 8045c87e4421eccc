"""Forecasts before paying, and mechanisms side by side on data that are public."""

from dphist.planning.compare import Row, compare
from dphist.planning.forecast import Forecast, epsilon_needed, expected_error, plan

__all__ = ["Forecast", "Row", "compare", "epsilon_needed", "expected_error", "plan"]
