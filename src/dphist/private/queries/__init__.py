"""Questions answered by numbers: each with its sensitivity and the proof of it."""

from dphist.private.queries.counting import Identity, Totals

__all__ = ["Identity", "Totals"]
