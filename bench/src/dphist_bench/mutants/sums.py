"""Bugs planted where values are added up, bounds are learned, and rows without a cell are told of."""

from __future__ import annotations

from typing import Any

_MEASURE = "src/dphist/model/measure.py"
_KEYS = "src/dphist/sources/keys.py"
_MEASURES = "src/dphist/publishing/measures.py"
_UNCOUNTED = "src/dphist/publishing/uncounted.py"
_SUGGEST = "src/dphist/publishing/suggest.py"
_BOUNDS = "src/dphist/publishing/bounds.py"
_DOOR = "tests/door/test_measures.py tests/door/test_newer_doors.py"
_ADDED = ("tests/door/test_sums.py", "-k", "not postgres and not spark")
_LEARNED = "tests/door/test_suggest.py"
_TOLD = "tests/door/test_newer_doors.py tests/door/test_rehearsal.py"


def _bug(file: str, old: str, new: str, tests: str | tuple[str, ...], why: str) -> dict[str, Any]:
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


MUTANTS = [
    _bug(
        _MEASURE,
        "return max(high - self.centre, self.centre - low, 1)",
        "return max(high - self.centre, 1)",
        (*_DOOR.split(), *_ADDED),
        "values far below the centre move sums by less than they do",
    ),
    _bug(
        _MEASURE,
        "return Unit(rows=self.measure.limit * times)",
        "return Unit(rows=self.measure.limit)",
        (*_DOOR.split(), *_ADDED),
        "a person who is replaced takes one limit along, and brings another",
    ),
    _bug(
        _MEASURE,
        "if self.measure.per_person is not None and self.plain:",
        "if self.measure.per_person is not None:",
        (*_DOOR.split(), *_ADDED),
        "clipped records are noised by a limit on values",
    ),
    _bug(
        _KEYS,
        "    clipped = engine.when(below, low, engine.when(inside, steps, high))",
        "    clipped = engine.when(inside, engine.floor(engine.plus(scaled, engine.literal(0.5))), high)",
        _ADDED,
        "values below the bound are added whole",
    ),
    _bug(
        _MEASURES,
        "made = make(centred, part_of(budget, share), plan.mechanism, moved, workload, noise=noise)",
        "made = make(centred, budget, plan.mechanism, moved, workload, noise=noise)",
        _DOOR,
        "sums spend the whole budget once more",
    ),
    _bug(
        _MEASURES,
        "centred, moved = Sums(histogram.domain, total), quantity.in_steps(unit)",
        "centred, moved = Sums(histogram.domain, total), unit",
        _DOOR,
        "sums are noised as counts are",
    ),
    _bug(
        _MEASURES,
        "plan.counts, unit, workload, noise=noise, pay=pay)",
        "plan.counts, unit, workload, noise=noise)",
        f"{_DOOR} tests/door/test_paying.py tests/door/test_payment_is_owed.py",
        "counts and sums are never paid for",
    ),
    _bug(
        _MEASURES,
        "release = make(histogram, part_of(budget, plan.share), plan.counts",
        "release = make(histogram, budget, plan.counts",
        _DOOR,
        "counts beside sums spend the whole budget",
    ),
    _bug(
        _MEASURES,
        "return _COUNTS, ((1 - _COUNTS) / len(quantities),) * len(quantities)",
        "return _COUNTS, ((1 - _COUNTS),) * len(quantities)",
        _DOOR,
        "several measures share nothing",
    ),
    _bug(
        _MEASURES,
        'return weights["count"] / total, tuple(weights[name] / total for name in names)',
        'return weights["count"], tuple(weights[name] for name in names)',
        _DOOR,
        "shares that are given need not sum to one",
    ),
    _bug(
        _MEASURES,
        "histogram, totals = count_and_sum(source, domain, unit, plan.quantities)",
        "histogram, totals = count_and_sum(source, domain, Unit(), plan.quantities)",
        _DOOR,
        "sums are counted as if nobody were bounded",
    ),
    _bug(
        _MEASURES,
        "return replace(release, guarantee=Guarantee(budget, unit),",
        "return replace(release, guarantee=Guarantee(part_of(budget, plan.share), unit),",
        _DOOR,
        "a release of counts and sums promises what its counts cost",
    ),
    _bug(
        _UNCOUNTED,
        "if protected.id is not None or protected.cells is not None:",
        "if protected.cells is not None:",
        _TOLD,
        "any number of a person's rows may have no cell",
    ),
    _bug(
        _UNCOUNTED,
        "unit=protected, ledger=ledger, dataset=dataset,",
        "ledger=ledger, dataset=dataset,",
        _TOLD,
        "rows without a cell are noised as if a unit were one row",
    ),
    _bug(
        _UNCOUNTED,
        "unit=protected, ledger=ledger, dataset=dataset,",
        "unit=protected,",
        _TOLD,
        "rows without a cell are never paid for",
    ),
    _bug(
        _SUGGEST,
        "share = budget.amount / len(whole)",
        "share = budget.amount / len(columns)",
        _LEARNED,
        "rows per person are learned for nothing",
    ),
    _bug(
        _SUGGEST,
        "counted = count(source, Domain([Ordinal(name, edges=list(edges))]), protected)",
        "counted = count(source, Domain([Ordinal(name, edges=list(edges))]))",
        _LEARNED,
        "bounds are learned from all rows of a person",
    ),
    _bug(
        _SUGGEST,
        "one = Unit(replace=unit.replace)",
        "one = Unit()",
        _LEARNED,
        "a replaced person moves two numbers of rows",
    ),
    _bug(
        _SUGGEST,
        "found = Bounds(tally, share, protected, pay, noise).learn()",
        "found = Bounds(tally, share, Unit(), pay, noise).learn()",
        _LEARNED,
        "bounds are noised for one row",
    ),
    _bug(
        _BOUNDS,
        "        self.left -= spend\n",
        "",
        _LEARNED,
        "the last histogram of bounds spends what is gone",
    ),
]
