"""What an attack would catch: break each mechanism in every way we know, and count the runs until it falls.

"The claim stands" is worth as much as the attack behind it. So every mechanism is also run on tampered ground
(`dphist_bench.zoo.mutants`), on the neighbours on which its own trials saw most. Often a mutant still keeps the
promise there, because the mechanism leaves part of its budget unused; what the losses do not refute is therefore held
against the laws that it claims (`attacks.law`). A mutant that is not caught is as much a result as one that is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from dphist.audit.neighbours import Pair, pair
from dphist.mechanisms.spec import parse
from dphist_bench.attacks.attack import collect, pursue
from dphist_bench.attacks.evidence import Evidence
from dphist_bench.attacks.law import Law, check_law, most_varied
from dphist_bench.audit.campaign import ALPHA, Lines, Trial, number
from dphist_bench.audit.partitions import partition_law
from dphist_bench.zoo.mutants import Fault, Mutant

EPSILON = "1"
_SECONDS = 2.5
_FEWEST, _MOST, _SOON = 1_000, 40_000, 400
_LAWFUL = 2_000
# By how much a fault multiplies the losses of Laplace noise, where that is all it does. (A forgotten half needs no
# factor: it tampers with the budget, which the losses are computed from.)
_LOUDER: dict[Fault, float] = {"quiet": 1.25, "halved": 2.0, "unpaid": 1.0}


@dataclass(frozen=True)
class Power:
    """How many runs a side it took to refute one mechanism with one fault; None if ``tried`` were too few.

    ``loss`` is the largest of a run by formula, where there is one. A mutant whose loss stays within ε is private.
    """

    mechanism: str
    fault: Fault
    needed: int | None
    tried: int
    loss: float | None = None
    goes: int = 1
    """How many attacks were made; the runs of those that caught nothing are in ``needed`` and ``tried``."""
    by: str = "loss"
    """What caught it: a loss beyond ε, or choices, noise or prices that do not follow the ``law`` that they claim."""

    @property
    def keeps(self) -> bool:
        """Whether the fault was not caught because it broke no promise: every run's loss stayed within ε."""
        return self.needed is None and self.loss is not None and self.loss <= number(EPSILON) * (1 + 1e-6)

    def to_line(self) -> str:
        """Write it down."""
        return json.dumps(self.__dict__)


def read_powers(path: Path) -> list[Power]:
    """Read the mutants of a campaign's file; its other lines are trials."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found.append(Power(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def measure_power(
    results: Path,
    trials: Sequence[Trial],
    *,
    seconds: float = _SECONDS,
    say: Callable[[str], None] = lambda _: None,
) -> list[Power]:
    """Attack every mutant of every mechanism that has been tried at ε = 1, going on from what ``results`` holds."""
    known = {(power.mechanism, power.fault): power for power in read_powers(results)}
    strongest: dict[str, Trial] = {}
    for trial in trials:
        if trial.epsilon == EPSILON:
            held = strongest.get(trial.mechanism)
            strongest[trial.mechanism] = trial if held is None or trial.bound > held.bound else held
    with Lines(results) as write:
        for text, trial in sorted(strongest.items()):
            found = _pair(trial)
            for fault in faults_of(text, found):
                if (text, fault) not in known:
                    say(f"mutant of {text}: {fault}")
                    power = catch(text, fault, found, seconds)
                    write(power.to_line())
                    known[text, fault] = power
    return list(known.values())


def catch(text: str, fault: Fault, found: Pair, seconds: float) -> Power:
    """Run a mutant until its claim falls or the time is over; bets may be stopped at any time."""
    mutant, places, most = Mutant(inner=parse(text), fault=fault), [found], _MOST
    if fault == "reseeded":
        # Noise that was used twice cancels if the record moves one of the two answers, not if it moves both alike;
        # so the record is also put at both ends. If it cancels, that shows soon.
        counts = np.minimum(found.one.counts, found.other.counts)
        places += [pair(found.name, counts, cell) for cell in (0, counts.size - 1)]
        most = _SOON
    alpha, tried, loss = ALPHA / len(places), 0, None
    for each in places:
        stop = time.process_time() + seconds
        enough = partial(_enough, alpha=alpha, stop=stop)
        evidence = pursue(mutant, each, EPSILON, most, stop_early=True, enough=enough)
        tried += evidence.contest.runs
        covered = evidence.one.covered and not any(evidence.one.choices)
        if fault in _LOUDER and covered:
            loss = round(evidence.largest_loss(_LOUDER[fault]), 6)
        if evidence.contest.fell(alpha):
            return Power(text, fault, evidence.contest.fell_after(alpha), tried, loss)
    # The promise of this pair stood; whether choices, noise and prices are what they claim is another question.
    law = lawful(mutant, found)
    if not law.holds:
        return Power(text, fault, law.runs, tried + law.runs, loss, by="law")
    return Power(text, fault, None, tried + law.runs, loss)


def lawful(mutant: Mutant, found: Pair) -> Law:
    """Hold a mutant against its laws, choices where they vary most: on tables of its pair's shape and of our own."""
    shape = found.one.counts.shape
    tables = [found, *(_table(shape, kind, times) for kind in range(3) for times in (1, 3, 10, 30, 100))]
    if mutant.fault in ("insensitive", "greedy"):
        # Which table is most telling is judged by what the sound mechanism claims.
        found = most_varied(mutant.inner, tables, EPSILON)
    elif mutant.fault == "clamped":
        # Where costs differ by less than their noise, cutting that noise changes most which partition wins; of fifty
        # tables of five cells this one told most of all eight mechanisms.
        small = np.arange(int(np.prod(shape))) % 2 + 1
        found = pair("ones and twos", small.astype(np.int64).reshape(shape), 0)
    elif mutant.fault == "reseeded":
        # One answer alone goes with the choice before it where that varies; with partitions it does most on a ramp.
        varied = most_varied(mutant.inner, tables, EPSILON)
        law = check_law(mutant, varied, EPSILON, _LAWFUL, partition_law=partition_law)
        if not law.holds:
            return law
        ramp = 2 * np.arange(int(np.prod(shape)), dtype=np.int64)
        # A partition shows little of its noise, so this takes longer.
        return check_law(mutant, pair("a ramp", ramp.reshape(shape), 0), EPSILON, 4 * _LAWFUL)
    return check_law(mutant, found, EPSILON, _LAWFUL, partition_law=partition_law)


def _table(shape: tuple[int, ...], kind: int, times: int) -> Pair:
    """A lump, teeth, or one step; made larger, scores lie further apart while their range stays what it is."""
    size = int(np.prod(shape))
    place = np.arange(size)
    counts = ((place * 13 + 9) % 17 + 24 * (place == 3), place % 2 * 3, (place >= size // 2) * 3)[
        kind
    ] * times
    return pair(f"table {kind} times {times}", counts.astype(np.int64).reshape(shape), size // 2)


def _enough(evidence: Evidence, alpha: float, stop: float) -> bool:
    late = time.process_time() > stop and len(evidence.one) >= _FEWEST
    return late or evidence.contest.fell(alpha)


def faults_of(text: str, found: Pair) -> list[Fault]:
    """Give the faults that change anything for a mechanism, by what it asks."""
    runs = collect(parse(text), found, EPSILON, 20, 0, stop_early=True)
    verbs = {verb for shape in runs.shapes for verb, _ in shape}
    several = any(len(shape) > 1 for shape in runs.shapes)
    tests: dict[Fault, bool] = {
        "quiet": not verbs.isdisjoint({"measure", "look", "segment"}),
        "halved": not verbs.isdisjoint({"measure", "look", "segment"}),
        "unpaid": True,
        "insensitive": "choose" in verbs,
        "greedy": "choose" in verbs,
        "clamped": "segment" in verbs,
        "reseeded": several,
    }
    return [fault for fault in get_args(Fault) if tests[fault]]


def _pair(trial: Trial) -> Pair:
    return pair(trial.pair, np.array(trial.counts).reshape(trial.shape), trial.cell)
