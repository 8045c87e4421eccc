"""Contrasts of trees inside tables: brute-force sensitivities, exact variances, ranges that gain by them."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.errors import MechanismError, QueryError
from dphist.inference.tables.residuals import centred
from dphist.mechanisms import Residuals
from dphist.mechanisms.residuals import measure_residuals
from dphist.mechanisms.wide import ranges as rangeplan
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, code_type
from dphist.model.contrasts import contrasts_of
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries.tables import RangedTables
from dphist.private.questions import Layout
from dphist.publishing.making import release_of

GROUPS = Nominal("place", {"n": ["a"], "s": {"t": ["b", "c", "d"], "u": ["e", "f"]}})
DOMAIN = Domain([Nominal("p", ["a", "b", "c"]), Ordinal("x", range(5)), GROUPS])
WEIGHTS = ((1, (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))), (2, (Fraction(1, 4),) * 4))


def basis(tree):
    return np.array([tree.of(unit, 0) for unit in np.eye(tree.size)]).T


@pytest.mark.parametrize("attribute", [Ordinal("x", range(7)), Ordinal("x", range(2)), GROUPS])
def test_contrasts_are_orthogonal_and_go_back(attribute):
    tree = contrasts_of(attribute)
    every = basis(tree)
    assert np.allclose(every @ every.T, np.diag(tree.squares))
    assert np.allclose(every.sum(axis=1), 0)
    values = np.random.default_rng(1).random((3, attribute.size, 2))
    back = tree.back(tree.of(values, 1), 1)
    assert np.allclose(back, values - values.mean(axis=1, keepdims=True))
    low, high = np.array([0, 1, 1]), np.array([1, 2, attribute.size])
    inside = (np.arange(attribute.size) >= low[:, None]) & (np.arange(attribute.size) < high[:, None])
    assert np.allclose(tree.meets(low, high), inside @ every.T)


def test_every_group_is_a_node():
    tree, held = contrasts_of(GROUPS), GROUPS.hierarchy
    parts = {
        (a, b)
        for a, m, c in zip(tree.start, tree.middle, tree.stop, strict=True)
        for a, b in ((a, c), (a, m), (m, c))
    }
    assert {(int(a), int(b)) for a, b in zip(held.start, held.stop, strict=True)} <= {
        (int(a), int(b)) for a, b in parts
    }


@pytest.mark.parametrize("centred_axes", [False, True])
def test_a_step_moves_what_is_promised_and_no_more(centred_axes):
    tables = ((0, 1), (1, 2), (2,), (0, 1, 2))
    query = RangedTables(tables, (Fraction(1, 4),) * 4, WEIGHTS, centred=centred_axes)
    layout = Layout(DOMAIN.shape, domain=DOMAIN)
    empty = query.answer(np.zeros(DOMAIN.size, dtype=np.int64), layout)
    largest = [Fraction(0), Fraction(0)]
    for cell in range(DOMAIN.size):
        one = np.zeros(DOMAIN.size, dtype=np.int64)
        one[cell] = 1
        moved = query.answer(one, layout) - empty
        for place, (sizes, power) in enumerate(((query.scales(layout), 1), (query.variances(layout), 2))):
            assert sizes.index.size == moved.size
            spent = sum(
                (
                    Fraction(int(abs(moved[k]))) ** power / sizes.values[sizes.index[k]]
                    for k in np.flatnonzero(moved)
                ),
                Fraction(0),
            )
            largest[place] = max(largest[place], spent)
    assert all(Fraction(3, 10) < spent <= 1 for spent in largest)


@pytest.mark.parametrize("power", [1, 2])
def test_a_residual_alone_moves_exactly_what_is_promised(power):
    query = RangedTables(((0,),), (Fraction(1),), WEIGHTS, centred=True)
    layout = Layout(DOMAIN.shape, domain=DOMAIN)
    one = np.zeros(DOMAIN.size, dtype=np.int64)
    one[0] = 1
    sizes = query.scales(layout) if power == 1 else query.variances(layout)
    moved = query.answer(one, layout)
    assert (
        sum(Fraction(abs(int(m))) ** power / sizes.values[i] for m, i in zip(moved, sizes.index, strict=True))
        == 1
    )


def test_large_counts_are_cut_before_they_overflow():
    domain = Domain([Ordinal("x", range(4096))])
    query = RangedTables(((0,),), (Fraction(1),), ((0, (Fraction(1, 12),) * 12),))
    full = np.repeat(np.array([2**62, 0]), 2048)
    answer = query.answer(full, Layout(domain.shape, domain=domain))
    # Only the two halves differ, the first being full: 2,048 of these against 2,048 of those.
    assert answer.max() > 2**60
    assert np.count_nonzero(answer) == 1


def test_promises_need_trees_that_are_there():
    layout = Layout(DOMAIN.shape, domain=DOMAIN)
    for trees in (((1, (Fraction(1, 2),)),), ((7, (Fraction(1),)),)):
        with pytest.raises(MechanismError, match="trees"):
            RangedTables(((1,),), (Fraction(1),), trees).scales(layout)
    with pytest.raises(MechanismError, match="once"):
        RangedTables(((1,),), (Fraction(1),), ((1, (Fraction(1),)), (1, (Fraction(1),))))
    with pytest.raises(MechanismError, match="above 1"):
        RangedTables(((1,),), (Fraction(1),), ((1, (Fraction(2, 3), Fraction(2, 3))),))


def records(shape, rows=4_000, seed=5):
    draw = np.random.default_rng(seed)
    hidden = draw.random(rows)
    columns = [
        np.minimum(
            (np.where(draw.random(rows) < 0.5, hidden, draw.random(rows)) * size).astype(int), size - 1
        )
        for size in shape
    ]
    return tuple(column.astype(code_type(size)) for column, size in zip(columns, shape, strict=True))


@pytest.fixture
def trees_everywhere(monkeypatch):
    """Small attributes gain nothing by a tree, and must be right with one all the same."""
    monkeypatch.setattr(rangeplan, "_GAINS", 1e9)


@pytest.mark.usefixtures("trees_everywhere")
@pytest.mark.parametrize("budget", [Budget.of(epsilon=1), Budget.of(rho="1/50")], ids=["ε", "ρ"])
def test_answers_are_unbiased_and_their_variances_exact(budget):
    held = CodedColumns(DOMAIN, records(DOMAIN.shape, 300))
    wanted, draws = ((0, 1), (1, 2)), 160
    low = np.array([[0, 1, 0], [2, 0, 1], [0, 2, 3], [1, 0, 0], [0, 4, 1]])
    high = np.array([[1, 4, 6], [3, 5, 6], [3, 5, 4], [2, 5, 6], [3, 5, 4]])
    held_by = [(0, 1), None, (1, 2), (0, 1), (1, 2)]
    tables = dict(zip(wanted, held.tables(wanted), strict=True))
    squares, spread = [], None
    for seed in range(draws):
        right, _ = open_gate(held, budget, Unit(), noise=Noise(Keystream.for_tests(seed)))
        known = measure_residuals(right, wanted, (1, 2))
        assert sorted(known.trees) == [1, 2]
        answers = known.answers(low, high)
        variance, _ = known.spread(low, high)
        spread = variance if spread is None else spread
        assert np.allclose(variance, spread, equal_nan=True)
        assert np.isnan(answers[1])
        truth = [
            np.nan
            if axes is None
            else tables[axes][tuple(slice(low[k, axis], high[k, axis]) for axis in axes)].sum()
            for k, axes in enumerate(held_by)
        ]
        squares.append((answers - truth) ** 2 / variance)
    seen = np.delete(np.array(squares), 1, axis=1)
    # The mean of 160 squares in units of their variance: six deviations are far beyond a part in a million.
    deviation = np.sqrt((2.0 if not budget.pure else 5.0) / draws)
    assert np.all(np.abs(seen.mean(axis=0) - 1) < 6 * deviation)


@pytest.mark.usefixtures("trees_everywhere")
def test_least_squares_with_trees_is_that_of_matrices():
    """The variance of every interval of one axis, from the noisy contrasts' own covariance."""
    domain = Domain([Ordinal("x", range(6)), Ordinal("y", range(3))])
    held = CodedColumns(domain, records(domain.shape, 50))
    right, _ = open_gate(held, Budget.of(rho=1), Unit(), noise=Noise(Keystream.for_tests(1)))
    known = measure_residuals(right, ((0, 1),), (0,))
    noise = known.trees[0]
    every = basis(noise.tree)
    column = (
        every.T
        / noise.tree.squares
        @ np.diag(noise.noise[noise.tree.depth])
        @ (every / noise.tree.squares[:, None])
    )
    ends = [(a, b) for a in range(6) for b in range(a + 1, 7)]
    for (a, b), (c, d) in itertools.product(ends, [(0, 1), (1, 3), (0, 3)]):
        one, two = np.zeros(6), np.zeros(3)
        one[a:b], two[c:d] = 1, 1
        want = sum(
            (one @ column @ one if 0 in s else one.mean() ** 2)
            * (centred(two) @ two if 1 in s else two.mean() ** 2)
            / known.residuals[s].precision
            for s in known.residuals
        )
        found = known.spread(np.array([[a, c]]), np.array([[b, d]]))[0][0]
        assert found == pytest.approx(want)
    cells = known.cell_spread((0, 1))[0]
    assert cells[4, 1] == pytest.approx(known.spread(np.array([[4, 1]]), np.array([[5, 2]]))[0][0])


@pytest.mark.parametrize(
    ("budget", "size"), [(Budget.of(epsilon=1), 3000), (Budget.of(rho="1/50"), 128)], ids=["ε", "ρ"]
)
def test_ranges_that_were_announced_are_known_better(budget, size):
    shape = (size, 4, 3)
    domain = Domain([Ordinal(f"c{place}", range(size)) for place, size in enumerate(shape)])
    held = CodedColumns(domain, records(shape))
    asked = Workload.parse(domain, "marginals:2 ranges:c0,c1")
    made = {
        name: release_of(held, budget, Residuals(), Unit(), workload, noise=Noise(Keystream.for_tests(3)))
        for name, workload in (("tree", asked), ("cells", Workload.parse(domain, "marginals:2")))
    }
    question = Workload.where(
        domain, [{"c0": (a * size // 100, a * size // 100 + size // 2), "c1": 2} for a in range(0, 40, 4)]
    )
    widths = {
        name: float(np.mean((found := each.answer(question)).high - found.low)) for name, each in made.items()
    }
    assert widths["tree"] < 0.75 * widths["cells"]
    made["tree"].verify()
    shown = made["tree"].project("c0", "c1")
    assert np.isfinite(shown.low).all()
    assert (shown.low <= shown.high).all()


def test_workloads_name_ranges():
    domain = Domain([Ordinal("age", range(9)), Nominal("sex", ["F", "M"]), GROUPS])
    named = Workload.parse(domain, "marginals:2 ranges:age")
    assert named.ranges == (0,)
    assert Workload.parse(domain, {"marginals": 2, "ranges": ["*"]}).ranges == (0, 2)
    assert Workload.from_json(domain, named.to_json()) == named != Workload.parse(domain, "marginals:2")
    for wrong in ("marginals:2 ranges:sex", "marginals:2 ranges:nobody", "cells ranges:age"):
        with pytest.raises(QueryError, match=r"ranges|attribute"):
            Workload.parse(domain, wrong)
    with pytest.raises(MechanismError, match="ranges"):
        Residuals(ranges=(1,)).estimate_tables(
            open_gate(CodedColumns(domain, records(domain.shape, 9)), 1, Unit())[0]
        )


@pytest.mark.usefixtures("trees_everywhere")
def test_tables_that_are_added_ask_the_same_contrasts():
    domain = dphist.Domain([Ordinal(f"c{place}", range(size)) for place, size in enumerate((40, 3, 2))])
    held = CodedColumns(domain, records(domain.shape))
    from dphist.mechanisms import Added

    first = Residuals(tables=((0, 1),), ranges=(0,))
    made = release_of(
        held,
        Budget.of(rho=1),
        Added(first=first, tables=((0, 2),)),
        Unit(),
        None,
        noise=Noise(Keystream.for_tests(3)),
    )
    made.verify()
    assert np.isfinite(made.answer(Workload.where(domain, c0=(3, 30), c2=1)).low)
