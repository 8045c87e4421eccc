"""Exact draws, vectorised: candidates by floats with certified bounds, decided in integers."""
