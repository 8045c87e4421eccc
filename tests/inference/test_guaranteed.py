"""Guaranteed intervals: weights that were settled before their noise, and coverage on data made to break it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dphist
from dphist.errors import QueryError
from dphist.inference import guaranteed
from dphist.inference.estimate import IndependentNoise
from dphist.inference.guaranteed import NoisySums, PredictableTree, martingale_widths
from dphist.inference.intervals import Spread, chernoff_widths, half_widths
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.errors import PredictiveErrors
from dphist.kernels.trees.predictable import cut_boxes, whole_nodes
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.testing import run
from dphist.testing.gates import as_histogram

CELLS = 256
PLACE = np.arange(CELLS)
LINES = {
    "hump": np.rint(900 * np.exp(-(((PLACE - 90) / 25.0) ** 2))),
    "spike": (PLACE == 77) * 5_000,
    "empty": PLACE * 0,
    "flat": PLACE * 0 + 20,
    "comb of two": PLACE % 2 * 60,
    "comb of sixteen": (PLACE % 16 == 0) * 40,
    "steps": PLACE // 64 * 30,
}


def _theorem(counts, epsilon, seed):
    errors = run(AdaptiveTree(), counts.astype(np.int64), epsilon, seed=seed).errors
    assert isinstance(errors, PredictiveErrors)
    theorem = errors.measured.theorem
    assert isinstance(theorem, PredictableTree)
    return theorem


def _tree(counts, epsilon, seed):
    return _theorem(counts, epsilon, seed).tree


@pytest.mark.parametrize("far", [100.0, 900.0])
def test_below_zero_intervals_reach_as_far_up_as_around_zero(far):
    """Whatever a sum of noise has come to, "0 to 0" would say that there is certainly nobody."""
    domain, law = Domain([Ordinal("x", range(4))]), NoiseLaw("laplace", 50)
    asked, noisy = Workload(domain, [[0], [1]], [[4], [2]]), np.array([0.0, -far, 0.0, 0.0])
    summed, width = np.full(2, -far), half_widths(Spread.of_terms(np.array([4, 1]), law), 0.95)
    for proven in (False, True):
        found = IndependentNoise(law, exact=True).interval(asked, summed, 0.95, guaranteed=proven)
        assert found.low.tolist() == [0.0, 0.0]
        assert found.high == pytest.approx(width)
    low, high = NoisySums(noisy, law).bounds(asked.low, asked.high, 0.95)
    assert low.tolist() == [0.0, 0.0]
    assert high == pytest.approx(width)


@pytest.mark.parametrize("name", LINES)
def test_they_hold_on_any_line(name):
    counts = LINES[name].astype(np.int64)
    workload = Workload.random(as_histogram(counts).domain, 60, seed=1)
    truth = workload.answer(counts)
    held = []
    for seed in range(16):
        for epsilon in ("1/10", "2"):
            theorem = _theorem(counts, epsilon, seed)
            low, high = theorem.bounds(workload.low, workload.high, 0.9)
            assert (low >= 0).all()
            held.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
    # 32 releases of 60 questions; at 0.9 the bound has much to spare, so falling below means that it is wrong.
    assert np.mean(held, axis=0).min() >= 0.9


def test_they_hold_on_a_plane():
    rows, columns = np.indices((24, 20))
    counts = (rows * 31 + columns * 17) % 97 * (rows < 9)
    workload = Workload.random(as_histogram(counts).domain, 60, seed=1)
    truth = workload.answer(counts)
    held = []
    for seed in range(16):
        low, high = PredictableTree(_tree(counts, 1, seed)).bounds(workload.low, workload.high, 0.9)
        held.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
    assert np.mean(held, axis=0).min() >= 0.9


def test_a_reach_is_never_exceeded_more_often_than_allowed():
    # One draw, and many: the tail beyond the reach by its exact law.
    for draws, scale in ((1, 1.0), (4, 2.0), (60, 0.5)):
        noise = np.array([[draws * scale**2, draws * scale**4, scale, 0.0]])
        reach = martingale_widths(noise, 0.02, 0.5 * np.array(guaranteed._DEVIATIONS), guaranteed._MASSES)[0]
        law = stats.norm(0, 1)
        # A sum of m Laplace draws is normal with variance 2 s² · Gamma(m).
        gammas = stats.gamma(draws).ppf((np.arange(20_000) + 0.5) / 20_000)
        tail = float(np.mean(law.sf(reach / (scale * np.sqrt(2 * gammas)))))
        assert tail <= 0.02


@pytest.mark.parametrize("draws", [1, 3, 40])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_known_weights_have_widths_that_are_never_too_narrow(draws, confidence):
    scale = 1.7
    width = chernoff_widths(np.array([2 * draws * scale**2]), np.array([scale]), confidence)[0]
    gammas = stats.gamma(draws).ppf((np.arange(20_000) + 0.5) / 20_000)
    outside = 2 * float(np.mean(stats.norm.sf(width / (scale * np.sqrt(2 * gammas)))))
    assert outside <= 1 - confidence
    # And not absurdly wide: within twice the normal width and a few scales.
    assert width <= 2 * np.sqrt(2 * draws) * scale * stats.norm.ppf((1 + confidence) / 2) + 4 * scale


RELEASED = ["laplace", "posterior", "adaptivetree", "tree", "privelet", "marginals", "noisefirst", "auto"]


@pytest.mark.parametrize("name", RELEASED)
def test_releases_answer_with_guarantees(name):
    domain = Domain([Ordinal("x", range(40)), Nominal("sex", ["F", "M"])])
    counts = np.random.default_rng(1).poisson(9, domain.shape)
    line, table = Workload.random(domain, 80, seed=2), Workload.marginals(domain)
    asked = table if name == "marginals" else line
    truth, held = asked.answer(counts), []
    for _ in range(16):
        release = dphist.publish(Histogram(domain, counts), epsilon=1, mechanism=name)
        answers = release.answer(asked, confidence=0.9, interval="guaranteed")
        assert answers.method.startswith("guaranteed: holds with at least 90 %")
        # A noisy count may be published below zero, where no interval reaches.
        value = np.maximum(answers.value, 0.0)
        assert ((answers.low <= value + 1e-9) & (value <= answers.high + 1e-9)).all()
        held.append((answers.low <= truth + 1e-9) & (truth <= answers.high + 1e-9))
    # Questions of one release share their noise, releases do not: five deviations of the releases' mean.
    shares = np.mean(held, axis=1)
    assert shares.mean() >= 0.9 - 5 * shares.std(ddof=1) / np.sqrt(len(shares))


def test_all_at_once_is_wider_and_says_so():
    domain = Domain([Ordinal("x", range(64))])
    release = dphist.publish(Histogram(domain, np.full(64, 30)), epsilon=1)
    asked = Workload.random(domain, 50, seed=3)
    for kind in ("calibrated", "guaranteed"):
        one = release.answer(asked, interval=kind)
        every = release.answer(asked, interval=kind, simultaneous=True)
        assert (every.high - every.low).sum() > (one.high - one.low).sum()
        assert "at once" in every.method


def test_a_question_of_several_boxes_is_guaranteed_by_its_boxes_together():
    domain = Domain([Ordinal("x", range(64))])
    release = dphist.publish(Histogram(domain, np.full(64, 30)), epsilon=1)
    answer = release.answer(where={"x": [3, 9, 40]}, interval="guaranteed", confidence=0.99)
    assert answer.low <= 90 <= answer.high


def test_no_theorem_no_guarantee():
    domain = Domain([Ordinal("x", range(64))])
    release = dphist.publish(Histogram(domain, np.full(64, 30)), epsilon=1, mechanism="efpa")
    with pytest.raises(QueryError, match="guaranteed"):
        release.answer(where={"x": (3, 9)}, interval="guaranteed")


LAMBDAS = {
    "anywhere": (guaranteed._DEVIATIONS, guaranteed._MASSES),
    "lines": (guaranteed._OF_FULL_LINES, guaranteed._MASSES_ON_LINES),
}


@pytest.mark.parametrize("where", LAMBDAS)
@pytest.mark.parametrize("draws", [1, 7, 80])
@pytest.mark.parametrize("error", [0.2, 0.01, 1e-6])
def test_the_reach_is_where_the_mixture_comes_to_one_over_the_error(where, draws, error):
    """Of equal draws ψ is known exactly, so Markov's inequality can be written out beside the bisection."""
    made_for, shared = LAMBDAS[where]
    masses, deviations, scale = (
        np.array(shared),
        np.array(made_for) * (0.7 if where == "anywhere" else 9.0),
        1.5,
    )
    assert masses.sum() <= 1 + 1e-12
    reach = martingale_widths(
        np.array([[draws * scale**2, draws * scale**4, scale, 0.0]]), error, deviations, shared
    )[0]
    rates = np.sqrt(2 * np.log(1 / (error * masses.max()))) / deviations
    exists = rates * scale < 1
    cost = -draws * np.log1p(-((rates[exists] * scale) ** 2))
    reached = np.sum(masses[exists] * np.exp(rates[exists] * reach - cost))
    assert reached * error == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("shape", [(64,), (4096,), (12, 10)])
def test_the_error_is_shared_by_all_that_may_err(shape, monkeypatch):
    """Two sides of the noise, and on a line the blocks of all levels at two ends: no more than was asked for."""
    asked, reached = [], []

    def reach(noise, error, deviations, masses):
        asked.append(error)
        return martingale_widths(noise, error, deviations, masses)

    def cut(*arguments):
        reached.append(arguments[-1])
        return cut_boxes(*arguments)

    monkeypatch.setattr(guaranteed, "martingale_widths", reach)
    monkeypatch.setattr(guaranteed, "cut_boxes", cut)
    counts = np.arange(np.prod(shape)).reshape(shape) % 3
    # Of a line whose blocks of three levels may be pooled; Laplace noise is beyond x scales with e^−x at most.
    levels = 3 if len(shape) == 1 else 0
    theorem = PredictableTree(_theorem(counts, 1, 2).tree, levels)
    theorem.bounds(np.array([[3] * len(shape)]), np.array([[9] * len(shape)]), 0.9)
    assert np.isinf(reached[0]) == (levels == 0)
    assert len(asked) == 2
    assert sum(asked) + 2 * levels * np.exp(-reached[0]) == pytest.approx(0.1)


def _pooled(counts, side):
    """Blocks of a line, every second of which was measured once more together with the others of these."""
    low = np.arange(0, counts.size, side)
    pooled = np.arange(low.size) % 2 == 0
    order = np.argsort(pooled, kind="stable")
    alone = low.size - pooled.sum()
    parent = np.concatenate([[-1, 0], np.zeros(alone, dtype=int), np.ones(pooled.sum(), dtype=int)])
    lows = np.concatenate([[0, 0], low[order]])
    highs = np.concatenate([[counts.size, low[pooled].max() + side], low[order] + side])
    value = np.array([counts[a:b].sum() for a, b in zip(lows, highs, strict=True)], dtype=float)
    value[1] = value[2 + alone :].sum()
    pool = np.arange(value.size) == 1
    variance = np.where(pool, 20_000.0, 80_000.0)
    return MeasuredTree.of((counts.size,), parent, lows[:, None], highs[:, None], value, variance, pool=pool)


@pytest.mark.parametrize("far", [np.inf, 1.0])
def test_what_encloses_a_range_does_so_whatever_lies_inside_blocks(far):
    """With true totals in place of noisy ones nothing errs: one sum is never above the truth, the other never below."""
    for name in ("flat", "comb of two", "comb of sixteen", "hump"):
        counts = np.tile(LINES[name], 8).astype(np.int64)
        theorem = PredictableTree(_pooled(counts, 32), 1)
        grown, running = theorem.tree, np.concatenate([[0], np.cumsum(counts)]).astype(float)
        totals = running[grown.high[:, 0]] - running[grown.low[:, 0]]
        for node in np.flatnonzero(grown.pool):
            totals[node] = totals[grown.first[node] : grown.last[node]].sum()
        first, last, pool, low, high, size, _, scale, _, seen_scale, part, trust = theorem._arrays
        exact = (first, last, pool, low, high, size, totals, scale, totals, seen_scale, part, trust)
        whole = whole_nodes(first, last, pool, totals, scale, totals, seen_scale, part, trust)
        ends = np.sort(np.random.default_rng(1).choice(counts.size + 1, (200, 2)), axis=1)
        found, _, beyond = cut_boxes(*exact, *whole, ends[:, :1].copy(), ends[:, 1:].copy(), far)
        truth = running[ends[:, 1]] - running[ends[:, 0]]
        assert (found[:, 0] - beyond[:, 0] <= truth + 1e-6).all()
        assert (truth <= found[:, 1] + beyond[:, 1] + 1e-6).all()
        # There are pools that are cut, and it matters what stands for their blocks.
        assert beyond.any() == np.isfinite(far)


def test_weights_are_settled_before_the_noise_they_weigh():
    """Move what was measured of one block: only what is measured after it may be weighed otherwise."""
    theorem = PredictableTree(_pooled(np.tile(LINES["flat"], 8).astype(np.int64), 32), 1)
    tree, before = theorem.tree, theorem._trust
    for node in [*np.flatnonzero(tree.pool)[:8], *np.flatnonzero(~tree.pool)[:20]]:
        moved = tree.value.copy()
        moved[node] += 1_000.0
        after = PredictableTree(replace(tree, value=moved), theorem.levels)._trust
        changed = np.flatnonzero(after != before)
        below = [i for i in changed if node in (tree.parent[i], tree.parent[tree.parent[i]])]
        assert len(below) == len(changed)
        assert not (tree.pool[node] and changed.size)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("name", ["hump", "comb of two"])
def test_every_draw_is_counted_with_the_weight_it_has(name, side):
    """Estimates are linear in what was measured: a weight is what an estimate moves by if one measurement does."""
    grown = _tree(LINES[name][:96].astype(np.int64), "2", 3)
    tree = PredictableTree(grown)
    first, last, pool, low, high, size, value, scale, seen, seen_scale, part, trust = tree._arrays
    assert np.allclose(2 * scale[np.isfinite(scale)] ** 2, grown.again()[1][np.isfinite(scale)])
    ends = np.sort(np.random.default_rng(1).choice(97, (40, 2)), axis=1)
    asked = (np.ascontiguousarray(ends[:, :1]), np.ascontiguousarray(ends[:, 1:]))

    def estimated(value, seen):
        total, made = whole_nodes(first, last, pool, value, scale, seen, seen_scale, part, trust)
        found, noise, _ = cut_boxes(
            first,
            last,
            pool,
            low,
            high,
            size,
            value,
            scale,
            seen,
            seen_scale,
            part,
            trust,
            total,
            made,
            *asked,
            np.inf,
        )
        return total, found[:, side], made[:, 0], noise[:, side, 0]

    zero = np.zeros(len(value))
    nodes, boxes = np.zeros(len(value)), np.zeros(len(ends))
    for measured, scales in ((0, scale), (1, seen_scale)):
        for node in np.flatnonzero(np.isfinite(scales)):
            moved = [zero.copy(), zero.copy()]
            moved[measured][node] = 1.0
            total, found, *_ = estimated(*moved)
            nodes += (total * scales[node]) ** 2
            boxes += (found * scales[node]) ** 2
    *_, made, noise = estimated(value, seen)
    assert np.allclose(made, nodes)
    assert np.allclose(noise, boxes)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_sums_of_draws_are_held_as_often_as_they_say(confidence):
    cells, scale = 5, Fraction(3)
    alpha = float(np.exp(-1 / float(scale)))
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-400, 401))
    whole = law
    for _ in range(cells - 1):
        whole = np.convolve(whole, law)
    truth, middle = 10_000, len(whole) // 2
    held = 0.0
    for noise in range(-200, 201):
        noisy = np.full(cells, truth // cells)
        noisy[0] += noise
        low, high = NoisySums(noisy, NoiseLaw("laplace", scale)).bounds(
            np.array([[0]]), np.array([[cells]]), confidence
        )
        held += whole[middle + noise] * bool(low[0] <= truth <= high[0])
    # Not too rarely, and not so much too often that twice the error would pass.
    assert confidence - 1e-9 <= held < 1 - (1 - confidence) / 2
