"""Attacks on what a mechanism asks, without the work that follows from the answers."""

from collections.abc import Sequence

from dphist.audit.neighbours import Pair, worst_pairs
from dphist.mechanisms.protocol import Mechanism
from dphist_bench.attacks.attack import pursue


def stands(mechanism: Mechanism, runs: int, pairs: Sequence[Pair] | None = None) -> bool:
    """Whether a claim of ε = 1 stands; a sound mechanism is refuted with probability at most 1e-6."""
    return most_told(mechanism, runs, pairs) <= 1


def most_told(mechanism: Mechanism, runs: int, pairs: Sequence[Pair] | None = None) -> float:
    """The largest loss that such an attack shows, above the true one with probability at most 1e-6.

    A run ends with its last answer: what is published is a function of the answers, which replays without data check
    for every mechanism (test_every_mechanism), and working it out takes most of the time.
    """
    chosen = worst_pairs() if pairs is None else pairs
    alpha = 1e-6 / len(chosen)
    return max(pursue(mechanism, each, 1, runs, stop_early=True).contest.bound(alpha) for each in chosen)
