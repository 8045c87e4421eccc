"""Passes over trees of totals."""
