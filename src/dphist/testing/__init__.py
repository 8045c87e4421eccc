"""Tools for testing mechanisms, ours and third parties': a gate to open, noise that is noted, the conformance suite.

For tests, audits and docstrings; nothing that publishes imports it.
"""

from dphist.testing.conformance import check_mechanism
from dphist.testing.gates import open_counts, run
from dphist.testing.recording import Draw, RecordingNoise

__all__ = ["Draw", "RecordingNoise", "check_mechanism", "open_counts", "run"]
