"""Tools for testing mechanisms, ours and third parties': a gate to open, and the conformance suite."""

from dphist.testing.gates import open_counts, run

__all__ = ["open_counts", "run"]
