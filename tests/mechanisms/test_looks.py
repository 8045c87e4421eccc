"""Looks at the most dependent pairs, and a part of everything before the rest is spent."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dphist
from dphist.inference.tables.residuals import Measured, TableResiduals
from dphist.mechanisms import Mixture
from dphist.mechanisms.mixture import Course
from dphist.mechanisms.wide.looks import after_part, goes_on, look, part, seen, strongest
from dphist.mechanisms.wide.outlook import Outlook
from dphist.model.coded import CodedColumns
from dphist.model.law import NoiseLaw
from dphist.private.records import open_records_gate

COLUMNS = 17
PAIRS = tuple(itertools.combinations(range(COLUMNS), 2))
DOMAIN = dphist.Domain([dphist.Nominal(f"q{place}", ["no", "yes"]) for place in range(COLUMNS)])


def outlook(
    total: float = 3_000, kind: Any = "laplace", noise: Fraction = Fraction(1), size: int = 2
) -> Outlook:
    return Outlook(NoiseLaw(kind, noise), (size,) * COLUMNS, PAIRS, PAIRS).counted(total)


def people(rows: int, alike: float) -> pd.DataFrame:
    """Seventeen answers, each like its neighbour in some of the records and by itself in the others."""
    draw = np.random.default_rng(5)
    held = draw.random((rows, COLUMNS)) < 0.4
    for place in range(1, COLUMNS):
        held[:, place] = np.where(draw.random(rows) < alike, held[:, place - 1], held[:, place])
    return pd.DataFrame(np.where(held, "yes", "no"), columns=list(DOMAIN.names))


def test_few_pairs_that_depend_are_seen_where_a_mean_over_all_would_hide_them() -> None:
    """A tenth of the pairs at 0.08 are a mean of 0.008, the noise of a look 0.02: only one of the two tells."""
    before = outlook()
    by_mean, by_top = before.seen(0.012, 0.02), seen(before, 0.08, 0.02)
    assert by_top.losses()[0] < by_top.losses()[1]
    assert by_mean.losses()[1] < by_mean.losses()[0]
    nothing = seen(before, 0.0, 0.005)
    assert nothing.losses()[1] < nothing.losses()[0]
    assert by_top.likely.sum() == pytest.approx(1)


def test_looks_are_small_and_none_is_taken_where_nothing_would_be_done_otherwise() -> None:
    unsure = outlook()
    assert 0 < look(unsure) <= Fraction(1, 64)
    assert look(outlook(total=10**8)) == 0
    sure = seen(unsure, 0.4, 0.005)
    assert look(sure, again=True) == 0
    assert strongest(PAIRS) == 13


def test_a_part_of_everything_is_measured_first_only_where_that_costs_nothing() -> None:
    unsure = outlook(kind="gaussian", noise=Fraction(40))
    share, lost = part(unsure)
    assert share > 0
    assert lost < unsure.losses().min()
    assert part(outlook())[0] == 0
    assert part(outlook(total=10**8, kind="gaussian"))[0] == 0
    # Where pairs depend, single columns alone would be worse than a part of everything, and that than all of it.
    some, more = after_part(unsure, 0.1), after_part(unsure, 0.6)
    assert unsure.together[-1] < more[-1] < some[-1] < unsure.alone[-1]


@pytest.mark.parametrize(("strong", "goes"), [(0.0, False), (0.06, True)])
def test_whether_the_rest_goes_the_same_way_is_judged_pair_by_pair(strong: float, goes: bool) -> None:
    """One pair in two departs, by four deviations of a part's noise and more; or none does."""
    total, share = 3_000.0, 0.4
    before = outlook(total, "gaussian", Fraction(40))
    draw = np.random.default_rng(1)
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]])
    measured = [Measured((), np.array(total), 10.0, 0.0, residual=True)]
    measured += [
        Measured((axis,), draw.normal(0, 25) * np.array([1.0, -1.0]), 1_250.0, 0.0, residual=True)
        for axis in range(COLUMNS)
    ]
    for place, pair in enumerate(PAIRS):
        here = strong * total * (place % 2 == 0) + draw.normal(0, 45)
        measured.append(Measured(pair, here * sign, 8_100.0, 0.0, residual=True))
    assert goes_on(before, TableResiduals((2,) * COLUMNS, measured), share) == goes


@pytest.mark.parametrize(("alike", "way"), [(0.0, "apart"), (0.6, "together")])
def test_a_release_names_the_part_and_replays_it(alike: float, way: str, tmp_path: Any) -> None:
    mechanism = Mixture(classes=6, steps=20)
    release = dphist.publish(people(3_000, alike), DOMAIN, rho="1/30", mechanism=mechanism)
    assert isinstance(release.mechanism, Mixture)
    course = release.mechanism.course
    assert course is not None
    assert (course.part, course.way) == (True, way)
    release.save(tmp_path / "wide.parquet")
    again = dphist.load(tmp_path / "wide.parquet")
    again.verify()
    # Whichever way the rest went, every pair was measured.
    assert again.answer("q3 = 'yes' and q8 = 'no'").low is not None


def test_courses_of_older_files_look_at_all_pairs() -> None:
    """A course that names no number of pairs asked for all of them, and still does."""
    asked = {}
    for course in (
        Course(count=Fraction(1, 400), look=Fraction(1, 50)),
        Course(count=Fraction(1, 400), look=Fraction(1, 50), top=3, again=Fraction(1, 50)),
    ):
        mechanism = Mixture(classes=2, steps=2, course=course)
        codes = tuple((people(50, 0.0) == "yes").to_numpy(np.uint8).T)
        right, transcript = open_records_gate(CodedColumns(DOMAIN, codes), 1, dphist.Unit())
        mechanism.estimate_tables(right)
        asked[course.top] = [entry.question["ask"] for entry in transcript]
    assert asked[0][:2] == ["TableTotals", "Dependence"]
    assert asked[3][:3] == ["TableTotals", "TopDependence", "TopDependence"]
