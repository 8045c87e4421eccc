"""Questions answered by numbers: each with its sensitivity and the proof of it."""

from dphist.private.queries.counting import Heights, Identity, Totals

__all__ = ["Heights", "Identity", "Totals"]
