"""What the audit catches: the runs a side that refute a claim when noise is too small by a factor, or of another law.

*factors*: mechanisms whose noise has 0.97 to 0.5 of the scale (under ρ: of the deviation) that was paid for, and none
that is sound, until the claim falls at 99.9 % or the time is over. The neighbours are small tables with a record more.
*laws*: choices at twice their rate, costs of partitions whose noise is cut from below, and noise that is drawn twice
from one seed, held against the exact law that was claimed (`attacks.law`). Such faults often keep ε on any one
pair; they show because the law is known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Literal

import numpy as np

from dphist.audit.neighbours import Pair, pair
from dphist.mechanisms.spec import parse
from dphist_bench.attacks.attack import pursue
from dphist_bench.attacks.concentrated import audit_rho
from dphist_bench.attacks.evidence import Evidence
from dphist_bench.audit.power import faults_of, lawful
from dphist_bench.measuring import Line
from dphist_bench.zoo.mutants import Fault, Mutant, Quieter

_FACTORS = ("97/100", "19/20", "9/10", "4/5", "1/2")
_PURE = ("laplace", "h", "privelet", "sparselaplace")
_CONCENTRATED = ("gaussian", "h", "privelet")
_CHOOSING = (
    "structurefirst(bins=2)", "efpa", "phpartition", "mwem(rounds=2, passes=2)", "hierarchicalkd", "kdhybrid",
    "dawa", "s-approx", "s-approx+mm", "s-approx+pmm", "s1", "s1+h", "s1+mm", "s1+pmm",
)  # fmt: skip
_LAWS: tuple[Fault, ...] = ("insensitive", "clamped", "reseeded")
_ALPHA, _MOST = 0.001, 60_000


def measure(
    *,
    quick: bool,
    seconds: Annotated[float, "of the processor's time for each claim at most"] = 10.0,
    only: tuple[Literal["factors", "laws"], ...] = (),
) -> Iterator[Line]:
    """Give the runs that each fault needed."""
    seconds = 0.2 if quick else seconds
    if not only or "factors" in only:
        for currency, names in (("ε = 1", _PURE), ("ρ = 1/2", _CONCENTRATED)):
            for name in names[:1] if quick else names:
                yield {"claim": currency, "mechanism": name, **_by_factor(currency, name, seconds)}
    if not only or "laws" in only:
        for name in ("s1",) if quick else _CHOOSING:
            yield {"law": name, **_by_law(name, _LAWS[:2] if quick else _LAWS)}


def _by_factor(currency: str, name: str, seconds: float) -> dict[str, str]:
    """Runs until the claim falls, by factor."""
    here = pair("one record more", np.array([2, 2, 2, 2, 2]), 2)
    found = {}
    for text in _FACTORS:
        mutant = Quieter(inner=parse(name), factor=Fraction(text))
        found[f"× {float(Fraction(text)):g}"] = (_pure if currency.startswith("ε") else _rho)(
            mutant, here, seconds
        )
    return found


def _pure(mutant: Quieter, here: Pair, seconds: float) -> str:
    stop = time.process_time() + seconds
    evidence = pursue(mutant, here, 1, _MOST, stop_early=True, enough=partial(_enough, stop=stop))
    contest = evidence.contest
    return f"{contest.fell_after(_ALPHA):,}" if contest.fell(_ALPHA) else f"> {contest.runs:,}"


def _enough(evidence: Evidence, stop: float) -> bool:
    return time.process_time() > stop or evidence.contest.fell(_ALPHA)


def _rho(mutant: Quieter, here: Pair, seconds: float) -> str:
    # The time of some runs says how many there is time for.
    begun = time.process_time()
    audit_rho(mutant, rho="1/2", runs=200, pairs=[here])
    most = int(200 * seconds / max(time.process_time() - begun, 1e-3))
    report = audit_rho(mutant, rho="1/2", runs=min(_MOST, max(400, most)), pairs=[here])
    return f"> {report.runs:,}" if report.passed else f"{report.runs:,}"


def _by_law(name: str, faults: Sequence[Fault]) -> dict[str, str]:
    """Runs until choices, partitions or shared draws were told from their law; empty where there is no such fault."""
    here = pair("a lump", np.array([9, 0, 3, 40, 2]), 3)
    found: dict[str, str] = {}
    possible = faults_of(name, here)
    for fault in faults:
        if fault in possible:
            law = lawful(Mutant(inner=parse(name), fault=fault), here)
            found[fault] = f"> {law.runs:,}" if law.holds else f"{law.runs:,}"
        else:
            found[fault] = ""
    return found
