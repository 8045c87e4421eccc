"""How far the strongest pairs are from independence, asked of records."""

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.queries.tables import TopDependence
from dphist.private.questions import Layout

DOMAIN = Domain([Ordinal("age", range(5)), Nominal("sex", ["F", "M"])])
CODES = np.random.default_rng(1).integers(0, [5, 2], (200, 2))


def opened(epsilon=10**6):
    records = CodedColumns(DOMAIN, (CODES[:, 0].astype(np.uint8), CODES[:, 1].astype(np.uint8)))
    return open_gate(records, epsilon, Unit())


def test_dependence_is_what_it_says():
    cube = np.zeros((5, 2))
    np.add.at(cube, (CODES[:, 0], CODES[:, 1]), 1)
    apart = np.abs(cube - np.outer(cube.sum(1), cube.sum(0)) / 200).sum()
    assert opened()[0].measure(TopDependence(((0, 1),), 1)).values.tolist() == [int(apart)]


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
