"""Merging values behind the gate over records, and how far tables are from a model."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import MechanismError, RightUsed
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.queries.dependence import TableDistances, TopDependence
from dphist.private.queries.tables import TableTotals
from dphist.private.questions import Layout
from dphist.private.records import PrivateRecords, open_records_gate, open_records_replay

DOMAIN = Domain([Ordinal("age", range(5)), Nominal("sex", ["F", "M"])])
CODES = np.random.default_rng(1).integers(0, [5, 2], (200, 2))
GROUPS = [np.array([0, 0, 1, 2, 2]), np.array([0, 1])]
WHOLE = TableTotals(((0,), (0, 1)), (Fraction(1, 2), Fraction(1, 2)))


def opened(epsilon=10**6):
    records = CodedColumns(DOMAIN, (CODES[:, 0].astype(np.uint8), CODES[:, 1].astype(np.uint8)))
    return open_records_gate(records, epsilon, Unit())


def wanted():
    cube = np.zeros((3, 2), dtype=np.int64)
    np.add.at(cube, (GROUPS[0][CODES[:, 0]], CODES[:, 1]), 1)
    return np.concatenate([cube.sum(axis=1), cube.reshape(-1)])


def test_merged_records_and_merged_cells_give_merged_tables():
    right, transcript = opened()
    merged = right.merge(GROUPS)
    assert merged.shape == (3, 2)
    noisy = merged.measure(WHOLE)
    assert np.array_equal(noisy.values, wanted())
    counts = np.zeros((5, 2), dtype=np.int64)
    np.add.at(counts, (CODES[:, 0], CODES[:, 1]), 1)
    cells, _ = open_gate(Histogram(DOMAIN, counts), 10**6, Unit())
    assert np.array_equal(PrivateRecords(cells).merge(GROUPS).measure(WHOLE).values, wanted())
    again, replay = open_records_replay(DOMAIN, 10**6, Unit(), transcript)
    assert np.array_equal(again.merge(GROUPS).measure(WHOLE).values, noisy.values)
    replay.finish()


def test_merged_values_may_bring_all_rows_of_a_person_together():
    records = CodedColumns(DOMAIN, (CODES[:, 0].astype(np.uint8), CODES[:, 1].astype(np.uint8)))
    right, _ = open_records_gate(records, Budget.of(rho=1), Unit(id="user", cells=3, per_cell=1))
    apart, alike = (right.law(moves=moves).variance for moves in ("disjoint", "nonnegative"))
    assert apart < alike
    assert right.merge(GROUPS).law(moves="disjoint").variance == alike


def test_merging_uses_the_right_up_and_groups_cannot_be_changed_afterwards():
    right, _ = opened()
    groups = [group.copy() for group in GROUPS]
    merged = right.merge(groups)
    groups[0][:] = 0
    assert np.array_equal(merged.measure(WHOLE).values, wanted())
    with pytest.raises(RightUsed):
        right.merge(GROUPS)


@pytest.mark.parametrize(
    "groups",
    [
        GROUPS[:1],
        [GROUPS[0][:4], GROUPS[1]],
        [np.array([0, 0, 2, 2, 2]), GROUPS[1]],
        [GROUPS[0] - 1, GROUPS[1]],
    ],
)
def test_groups_that_do_not_fit_are_refused(groups):
    with pytest.raises(MechanismError, match="groups"):
        opened()[0].merge(groups)


def test_dependence_and_distances_are_what_they_say():
    cube = np.zeros((5, 2))
    np.add.at(cube, (CODES[:, 0], CODES[:, 1]), 1)
    apart = np.abs(cube - np.outer(cube.sum(1), cube.sum(0)) / 200).sum()
    assert opened()[0].measure(TopDependence(((0, 1),), 1)).values.tolist() == [int(apart)]
    guess = np.full(10, 20)
    far = int(np.abs(cube.reshape(-1) - 20).sum())
    for penalty in (0, 10, 10**6):
        asked = TableDistances(((0, 1),), guess, np.array([penalty]))
        assert opened()[0].measure(asked).values.tolist() == [max(0, far - penalty)]
    with pytest.raises(MechanismError, match="each cell"):
        opened()[0].measure(TableDistances(((0,),), guess, np.array([0])))
    with pytest.raises(MechanismError, match="penalties"):
        TableDistances(((0,),), guess, np.array([0, 1]))


def test_one_record_moves_the_strongest_pairs_together():
    """One record unlike all others makes every pair dependent: the price is of all pairs that are added up."""
    same = np.zeros((2, 2, 2), dtype=np.int64)
    same[0, 0, 0] = 1_000
    other = same.copy()
    other[1, 1, 1] += 1
    layout = Layout((2, 2, 2))
    pairs = ((0, 1), (0, 2), (1, 2))
    for top in (1, 2, 3):
        asked = TopDependence(pairs, top)
        before, after = (int(asked.answer(each.reshape(-1), layout)[0]) for each in (same, other))
        assert after - before == 3 * top
        assert 3 * asked.scales(layout) == 4 * (after - before)
    with pytest.raises(MechanismError, match="top"):
        TopDependence(((0, 1),), 2)
    with pytest.raises(MechanismError, match="pairs"):
        TopDependence(((0,),), 1)
