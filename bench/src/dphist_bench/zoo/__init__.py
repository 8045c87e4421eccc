"""Deliberately leaky mechanisms. The audit must reject every one: a check that cannot fail is no check.

None of them is reachable by name from `publish` or the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.audit.neighbours import Pair, pair, worst_pairs
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.protocol import Mechanism
from dphist_bench.attacks.attack import Observe, pursue
from dphist_bench.zoo.basic import ForgottenHalf, QuietNoise, TrueTotal, WrongSensitivity
from dphist_bench.zoo.lossy import PrintedEFPA, PrintedSPA, same_imaginary_part, same_phase, turning_pair
from dphist_bench.zoo.mutants import FAULTS, Mutant, OneChoice, ReusedSeed, SharedKeystream
from dphist_bench.zoo.smoothing import LeakySmoothing, which_partition
from dphist_bench.zoo.structure import LEAKING_PAIR, UnclippedStructureFirst

# How unlikely a sound mechanism falls, and after how many runs a side nobody looks further.
_ALPHA, _MOST = 1e-3, 80_000


@dataclass(frozen=True, eq=False)
class Leaky:
    """A leaky mechanism, what is wrong with it, and where it shows."""

    mechanism: Mechanism
    fault: str
    pairs: tuple[Pair, ...] | None = None
    observe: Observe | None = None


def leaky_mechanisms() -> dict[str, Leaky]:
    """Give the whole zoo by name."""
    first = tuple(worst_pairs()[:1])
    four = (pair("one record in four equal cells", np.full(4, 3), 1),)
    return {
        "quiet noise": Leaky(QuietNoise(), "noise of 0.8 of the scale that was charged", first),
        "wrong sensitivity": Leaky(
            WrongSensitivity(), "says one step moves the answers by one; it moves two"
        ),
        "forgotten half": Leaky(ForgottenHalf(), "asks twice and pays once"),
        "true total": Leaky(TrueTotal(), "rescales the noisy counts to the true total"),
        "EFPA as printed": Leaky(
            PrintedEFPA(), "publishes the true phase of every kept frequency", (turning_pair(),), same_phase
        ),
        "SPA as printed": Leaky(
            PrintedSPA(),
            "publishes the true imaginary part of every kept coefficient",
            (turning_pair(),),
            same_imaginary_part,
        ),
        "StructureFirst as printed": Leaky(
            UnclippedStructureFirst(),
            "its structure's sensitivity holds only for counts up to F, and nothing keeps counts below F",
            (LEAKING_PAIR,),
        ),
        "S1 as printed": Leaky(
            LeakySmoothing(rule="printed", price=Fraction(1)),
            "noise of 1/(ε · length) on bucket costs",
            (pair("one record in six empty cells", np.zeros(6, dtype=np.int64), 3),),
            which_partition,
        ),
        "bare singletons": Leaky(
            LeakySmoothing(rule="singletons"),
            "the right noise, but none on buckets of one cell",
            four,
            which_partition,
        ),
        "clamped costs": Leaky(
            LeakySmoothing(rule="clamped"),
            "half the noise, bare singletons, costs cut from below",
            four,
            which_partition,
        ),
        "mutant: quiet": Leaky(Mutant(inner=Laplace(), fault="quiet"), FAULTS["quiet"], first),
        "mutant: unpaid": Leaky(Mutant(inner=Laplace(), fault="unpaid"), FAULTS["unpaid"], first),
        "mutant: insensitive": Leaky(
            Mutant(inner=OneChoice(), fault="insensitive"),
            FAULTS["insensitive"],
            (pair("one record that decides", np.zeros(2, dtype=np.int64), 0),),
        ),
        "mutant: shared keystream": Leaky(
            SharedKeystream(),
            "two forked processes draw the same noise",
            first,
        ),
        "mutant: reused seed": Leaky(
            ReusedSeed(),
            "two phases draw from one seed",
            (pair("one record in the last cell", np.zeros(8, dtype=np.int64), 7),),
        ),
    }


def runs_needed(leaky: Leaky) -> int | None:
    """Run it until its claim falls; give how many runs a side that took, or None if `_MOST` were too few."""
    least: int | None = None
    pairs = worst_pairs() if leaky.pairs is None else leaky.pairs
    for each in pairs:
        contest = pursue(
            leaky.mechanism,
            each,
            1,
            _MOST if least is None else least,
            observe=leaky.observe,
            enough=lambda evidence: evidence.contest.fell(_ALPHA / len(pairs)),
        ).contest
        least = contest.fell_after(_ALPHA / len(pairs)) or least
    return least
