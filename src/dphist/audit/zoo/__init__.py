"""Deliberately leaky mechanisms. The audit must reject every one: a check that cannot fail is no check.

None of them is reachable by name from `publish` or the command line.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphist.audit.attack import Observe
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.audit.zoo.basic import ForgottenHalf, QuietNoise, TrueTotal, WrongSensitivity
from dphist.audit.zoo.lossy import PrintedEFPA, PrintedSPA, same_imaginary_part, same_phase, turning_pair
from dphist.mechanisms.protocol import Mechanism


@dataclass(frozen=True, eq=False)
class Animal:
    """A leaky mechanism, what is wrong with it, and where it shows."""

    mechanism: Mechanism
    fault: str
    pairs: tuple[Pair, ...] | None = None
    observe: Observe | None = None
    runs: int = 6_000


def animals() -> dict[str, Animal]:
    """Give the whole zoo by name."""
    pair = tuple(worst_pairs()[:1])
    return {
        "quiet noise": Animal(QuietNoise(), "noise of 0.8 of the scale that was charged", pair, runs=40_000),
        "wrong sensitivity": Animal(
            WrongSensitivity(), "says one step moves the answers by one; it moves two"
        ),
        "forgotten half": Animal(ForgottenHalf(), "asks twice and pays once"),
        "true total": Animal(TrueTotal(), "rescales the noisy counts to the true total"),
        "EFPA as printed": Animal(
            PrintedEFPA(), "publishes the true phase of every kept frequency", (turning_pair(),), same_phase
        ),
        "SPA as printed": Animal(
            PrintedSPA(),
            "publishes the true imaginary part of every kept coefficient",
            (turning_pair(),),
            same_imaginary_part,
        ),
    }
