"""Statistical search for privacy violations.

An audit cannot prove privacy; proofs do that. It refutes: run a mechanism many times on two neighbouring data sets,
find an event that is more likely on one, and bound the ratio of its probabilities from below. A lower bound above ε
means that the claim is false (or the proof is of another program).
"""

from dphist.audit.attack import Report, audit
from dphist.audit.neighbours import Pair, worst_pairs

__all__ = ["Pair", "Report", "audit", "worst_pairs"]
