"""Records of many columns: what is measured by which budget, what is published, and what it is worth."""

import itertools

import numpy as np
import pytest

from dphist.mechanisms import Mixture
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, code_type
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.private.noise import Keystream, Noise
from dphist.publishing.making import release_of

SHAPE = (2, 3, 12, 5, 8, 4, 2, 6)
QUICK = Mixture(classes=16, steps=150)


def off(codes, table, axes):
    """The total variation distance between records' table and the published one."""
    cell = np.ravel_multi_index([codes[:, axis] for axis in axes], table.shape)
    found = np.bincount(cell, minlength=table.size).reshape(table.shape)
    return 0.5 * np.abs(found / len(codes) - table / table.sum()).sum()


def records(rows, dependence, shape=SHAPE, seed=3):
    draw = np.random.default_rng(seed)
    hidden = draw.random(rows)
    columns = []
    for size in shape:
        own = draw.random(rows)
        value = np.where(draw.random(rows) < dependence, hidden, own)
        columns.append(np.minimum((value**1.5 * size).astype(int), size - 1).astype(code_type(size)))
    domain = Domain(
        [
            Ordinal(f"x{j}", range(size)) if j % 2 else Nominal(f"x{j}", [f"v{v}" for v in range(size)])
            for j, size in enumerate(shape)
        ]
    )
    return CodedColumns(domain, tuple(columns))


def released(held, budget, seed=1, mechanism=QUICK):
    noise = Noise(Keystream.for_tests(seed))
    return release_of(held, budget, mechanism, Unit(), None, noise=noise)


def variation(held, tables):
    rows = held.rows
    pairs = list(itertools.combinations(range(len(held.domain.shape)), 2))
    exact = held.tables(pairs)
    return np.mean(
        [
            0.5 * np.abs(x / rows - tables[p] / tables[p].sum()).sum()
            for p, x in zip(pairs, exact, strict=True)
        ]
    )


def independent(held):
    ones = held.tables([(j,) for j in range(len(held.domain.shape))])
    pairs = itertools.combinations(range(len(ones)), 2)
    return variation(held, {(a, b): np.outer(ones[a], ones[b]).astype(float) for a, b in pairs})


RICH, CHOSEN, SINGLE = "measured together", "chosen where", "whole budget"


@pytest.mark.parametrize(
    ("budget", "dependence", "rows", "shape", "how"),
    [
        (Budget.of(epsilon=10), 0.7, 20_000, SHAPE, RICH),
        (Budget.of(epsilon=1, delta="1e-9"), 0.7, 20_000, SHAPE, RICH),
        (Budget.of(epsilon=1), 0.45, 30_000, (60, 20, 2, 30, 90, 50, 4, 25, 3), CHOSEN),
        (Budget.of(epsilon="0.1", delta="1e-9"), 0.0, 2_000, SHAPE, SINGLE),
        (Budget.of(epsilon="0.1"), 0.5, 2_000, SHAPE, SINGLE),
    ],
    ids=["ε rich", "ρ rich", "ε chosen", "ρ weak", "ε weak"],
)
def test_what_is_measured_follows_what_the_budget_can_see(budget, dependence, rows, shape, how):
    held = records(rows, dependence, shape)
    release = released(held, budget)
    assert how in release.note
    said = (
        "No pair of columns was measured: the budget is too small. Numbers about pairs assume independence."
    )
    assert release.note.startswith(said) == release.describe().endswith(said) == (how == SINGLE)
    assert release.transcript.spent() <= budget.amount
    release.verify()
    if how == RICH:
        assert variation(held, release.cells.tables) < 0.9 * independent(held)
    for axes, table in release.cells.tables.items():
        assert table.min() >= 0
        for place in range(len(axes)):
            smaller = release.cells.tables[tuple(axis for axis in axes if axis != axes[place])]
            assert np.allclose(table.sum(axis=place), smaller, rtol=0.02, atol=2.0)


def test_intervals_hold_where_something_was_measured_and_bounds_elsewhere():
    held = records(5_000, 0.6)
    pairs = list(itertools.combinations(range(len(SHAPE)), 2))
    exact = dict(zip(pairs, held.tables(pairs), strict=True))
    held_share: dict[tuple[int, ...], list[float]] = {pair: [] for pair in pairs}
    for seed in range(4):
        release = released(held, Budget.of(epsilon=4), seed, Mixture(classes=8, steps=40))
        for pair in pairs:
            names = [held.domain.names[axis] for axis in pair]
            shown = release.project(*names)
            held_share[pair].append(np.mean((shown.low <= exact[pair]) & (exact[pair] <= shown.high)))
    assert np.mean([np.mean(share) for share in held_share.values()]) >= 0.94
    names = held.domain.names
    guess = release.answer(where={names[1]: 0, names[3]: 1, names[5]: 2})
    assert np.isfinite(guess.value)
    assert not guess.measured
    assert guess.low <= held.tables([(1, 3, 5)])[0][0, 1, 2] <= guess.high


def test_records_of_all_columns_keep_the_published_pairs():
    held = records(4_000, 0.7)
    release = released(held, Budget.of(epsilon=10))
    frame = release.records()
    assert list(frame.columns) == list(held.domain.names)
    assert len(frame) == round(float(release.cells.tables[()]))
    assert set(frame["x0"]) <= {"v0", "v1"}
    assert frame["x1"].max() <= 2
    model = release._estimate.model
    codes = np.stack(model.sample(len(frame), 0), axis=1)
    far = [off(codes, table, axes) for axes, table in release.cells.tables.items() if len(axes) == 2]
    assert np.mean(far) < 0.02
