"""Tools for testing mechanisms, ours and third parties': a gate to open, and the conformance suite."""

from dphist.testing.conformance import check_mechanism
from dphist.testing.gates import open_counts, run

__all__ = ["check_mechanism", "open_counts", "run"]
