"""*How `auto` decides*: the chart in the docs is drawn from the rule, and every step and mechanism of it is reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chart import FILE, WIDE, drawn

from dphist import Domain, Histogram, Nominal, Ordinal, Workload
from dphist.mechanisms import Auto
from dphist.mechanisms.choosing.pilot import PilotAnswer
from dphist.mechanisms.choosing.request import Request
from dphist.mechanisms.choosing.rule import PILOTS, STEPS
from dphist.mechanisms.registry import entry_of
from dphist.model.budget import Budget
from dphist.testing import open_counts

LINE = Domain([Ordinal("x", range(200))])
SHORT = Domain([Ordinal("x", range(40))])
PLANE = Domain([Ordinal("x", range(64)), Ordinal("y", range(48))])
CUBE = Domain([Ordinal("x", range(12)), Ordinal("y", range(10)), Ordinal("z", range(4))])
AGES = Domain([Ordinal("age", range(4096)), Nominal("sex", ["F", "M"]), Nominal("job", list("abcdefgh"))])
NINE = Domain([Ordinal(f"x{i}", range(4)) for i in range(9)])
PLAIN = PilotAnswer()

# What comes to which step: a domain, what is announced, a budget, and what pilot queries said.
REACHED: tuple[tuple[int, Domain, str | None, float | str, PilotAnswer], ...] = (
    (0, PLANE, "ranges", 1, PilotAnswer(1e5, None, 1e4, ((1, 5),))),
    (1, AGES, "marginals:2 ranges:age", 1, PLAIN),
    (2, LINE, None, 8, PLAIN),
    (2, CUBE, None, 8, PLAIN),
    (3, LINE, "cells", 1, PLAIN),
    (3, PLANE, "cells", 1, PLAIN),
    (4, SHORT, None, 1, PilotAnswer(1e6)),
    (5, CUBE, None, 1, PilotAnswer(1e6, 0.3)),
    (5, CUBE, None, 1, PilotAnswer(100.0, 0.0)),
    (5, CUBE, "cells", 1, PilotAnswer(1e4)),
    (5, CUBE, "marginals:2", 1, PilotAnswer(1e6)),
    (5, CUBE, "ranges", "1/100", PLAIN),
    (5, NINE, "marginals:2", 1, PLAIN),
    (6, LINE, None, 1, PLAIN),
    (6, LINE, "prefixes", 1, PLAIN),
    (6, PLANE, None, 1, PilotAnswer(1e4)),
)


def _request(domain: Domain, asked: str | None, epsilon: Any) -> Request:
    nobody = Histogram(domain, np.zeros(domain.shape, dtype=np.int64))
    told = None if asked is None else Workload.parse(domain, asked)
    return Request(open_counts(nobody, epsilon, workload=told), again=Auto())


def _name(mechanism: object) -> str:
    entry = entry_of(mechanism)
    assert entry is not None
    return entry.name


def test_the_chart_in_the_docs_is_drawn_from_the_rule() -> None:
    assert FILE.read_text(encoding="utf-8") == drawn(), "python tests/mechanisms/chart.py --write"
    assert FILE.name in (FILE.parent / "auto.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("place", "domain", "asked", "epsilon", "seen"), REACHED)
def test_every_step_decides_what_comes_to_it(
    place: int, domain: Domain, asked: str | None, epsilon: float | str, seen: PilotAnswer
) -> None:
    request = _request(domain, asked, epsilon)
    found = [step.choose(request, seen) for step in STEPS[: place + 1]]
    assert found[:-1] == [None] * place
    mechanism, reason = found[place]  # type: ignore[misc]
    assert _name(mechanism) in STEPS[place].names
    assert request.data.domain is not None
    told = request.data.workload
    assert (mechanism, reason) == Auto().choose(open_counts(
        Histogram(domain, np.zeros(domain.shape, dtype=np.int64)), epsilon, workload=told), seen)  # fmt: skip


def test_no_step_and_no_mechanism_of_the_chart_is_idle() -> None:
    assert {place for place, *_ in REACHED} == set(range(len(STEPS)))
    for place, step in enumerate(STEPS):
        assert set(step.names) == _chosen(place), step.when


def _chosen(place: int) -> set[str]:
    """The mechanisms that a step chooses among in some examples; what is whole under ε and ρ, full and sparse."""
    found = set()
    for at, domain, asked, epsilon, seen in REACHED:
        for budget in (epsilon, 40, Budget.of(rho=400)) if at == 2 else (epsilon,):
            if at == place and (choice := STEPS[at].choose(_request(domain, asked, budget), seen)):
                found.add(_name(choice[0]))
    return found


@pytest.mark.parametrize(
    ("place", "domain", "asked"),
    [(0, PLANE, None), (1, SHORT, None), (2, LINE, None), (2, CUBE, "marginals:1"), (3, CUBE, "marginals:2"),
     (3, Domain([Ordinal("x", range(30)), Nominal("sex", ["F", "M"])]), None), (4, CUBE, None)],
)  # fmt: skip
def test_every_pilot_query_is_asked_by_what_comes_to_it(
    place: int, domain: Domain, asked: str | None
) -> None:
    request = _request(domain, asked, 1)
    assert [pilot.holds(request) for pilot in PILOTS[: place + 1]] == [False] * place + [True]


@pytest.mark.parametrize(("columns", "asked"), [(60, None), (60, "marginals:2")])
def test_of_more_cells_than_can_be_held_tables_are_published(columns: int, asked: str | None) -> None:
    domain = Domain([Nominal(f"c{i}", ["a", "b"]) for i in range(columns)])
    told = None if asked is None else Workload.parse(domain, asked)
    assert Auto().goes_wide(domain, told)
    assert not Auto().goes_wide(CUBE, None)
    assert set(WIDE[2]) == {"residuals", "mixture"}
