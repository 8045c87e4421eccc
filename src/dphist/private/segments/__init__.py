"""Partitions chosen by least noisy cost: each kind of cost with its sensitivity and the proof of it."""

from dphist.private.segments.deviation import AbsoluteDeviation

__all__ = ["AbsoluteDeviation"]
