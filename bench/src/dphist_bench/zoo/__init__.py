"""Deliberately leaky mechanisms. The audit must reject every one: a check that cannot fail is no check.

None of them is reachable by name from `publish` or the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.audit.attack import Observe, pursue
from dphist.audit.neighbours import Pair, pair, worst_pairs
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.protocol import Mechanism
from dphist_bench.zoo.basic import ForgottenHalf, QuietNoise, TrueTotal, WrongSensitivity
from dphist_bench.zoo.lossy import PrintedEFPA, PrintedSPA, same_imaginary_part, same_phase, turning_pair
from dphist_bench.zoo.mutants import FAULTS, Mutant, OneChoice, ReusedSeed, SharedKeystream
from dphist_bench.zoo.smoothing import LeakySmoothing, which_partition
from dphist_bench.zoo.structure import LEAKING_PAIR, UnclippedStructureFirst


@dataclass(frozen=True, eq=False)
class Animal:
    """A leaky mechanism, what is wrong with it, and where it shows."""

    mechanism: Mechanism
    fault: str
    pairs: tuple[Pair, ...] | None = None
    observe: Observe | None = None


def animals() -> dict[str, Animal]:
    """Give the whole zoo by name."""
    first = tuple(worst_pairs()[:1])
    four = (pair("one record in four equal cells", np.full(4, 3), 1),)
    return {
        "quiet noise": Animal(QuietNoise(), "noise of 0.8 of the scale that was charged", first),
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
        "StructureFirst as printed": Animal(
            UnclippedStructureFirst(),
            "its structure's sensitivity holds only for counts up to F, and nothing keeps counts below F",
            (LEAKING_PAIR,),
        ),
        "S1 as printed": Animal(
            LeakySmoothing(rule="printed", price=Fraction(1)),
            "noise of 1/(ε · length) on bucket costs",
            (pair("one record in six empty cells", np.zeros(6, dtype=np.int64), 3),),
            which_partition,
        ),
        "bare singletons": Animal(
            LeakySmoothing(rule="singletons"),
            "the right noise, but none on buckets of one cell",
            four,
            which_partition,
        ),
        "clamped costs": Animal(
            LeakySmoothing(rule="clamped"),
            "half the noise, bare singletons, costs cut from below",
            four,
            which_partition,
        ),
        "mutant: quiet": Animal(Mutant(inner=Laplace(), fault="quiet"), FAULTS["quiet"], first),
        "mutant: unpaid": Animal(Mutant(inner=Laplace(), fault="unpaid"), FAULTS["unpaid"], first),
        "mutant: insensitive": Animal(
            Mutant(inner=OneChoice(), fault="insensitive"),
            FAULTS["insensitive"],
            (pair("one record that decides", np.zeros(2, dtype=np.int64), 0),),
        ),
        "mutant: shared keystream": Animal(
            SharedKeystream(),
            "two forked processes draw the same noise",
            first,
        ),
        "mutant: reused seed": Animal(
            ReusedSeed(),
            "two phases draw from one seed",
            (pair("one record in the last cell", np.zeros(8, dtype=np.int64), 7),),
        ),
    }


def runs_needed(animal: Animal, *, epsilon: int = 1, alpha: float = 1e-3, most: int = 80_000) -> int | None:
    """Run an animal until its claim falls; give how many runs a side that took, or None if ``most`` were too few."""
    least: int | None = None
    pairs = worst_pairs() if animal.pairs is None else animal.pairs
    for each in pairs:
        contest = pursue(
            animal.mechanism,
            each,
            epsilon,
            most if least is None else least,
            observe=animal.observe,
            enough=lambda evidence: evidence.contest.fell(alpha / len(pairs)),
        ).contest
        least = contest.fell_after(alpha / len(pairs)) or least
    return least
