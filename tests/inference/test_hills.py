"""Lines and planes that rise and fall gently: better where the evidence says so, untouched where it does not."""

from fractions import Fraction

import numpy as np
import pytest

from dphist import load, publish
from dphist.inference.measured import MeasuredTree
from dphist.inference.neighbours import hills, loggaussian
from dphist.inference.neighbours.hills import how_gentle, with_hills
from dphist.kernels.definite import CurvedRoot
from dphist.kernels.summed_area import box_sums
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.trees.growing import grow
from dphist.mechanisms.trees.planning import PlannedBoxes, Planner
from dphist.model.budget import Budget
from dphist.model.workload import Workload
from dphist.testing import open_counts, run
from dphist.testing.gates import as_histogram
from dphist_bench.data import sample
from dphist_bench.data.planes import heaped, smooth_hills


def _errors(counts, epsilon, draws, ways=({}, {"hills": True})):
    """Mean squared errors of rectangles in two ways, without hills and with them, over the same noise."""
    asked = Workload.random(as_histogram(counts).domain, 500, seed=3)
    found = np.zeros(2)
    for seed in range(draws):
        for place, told in enumerate(ways):
            tree = AdaptiveTree(estimator="averaged", **told)
            off = run(tree, counts, epsilon, seed=seed, workload=asked).counts - counts
            found[place] += np.mean(np.asarray(asked.answer(off)) ** 2) / draws
    return found


@pytest.mark.parametrize(("side", "draws"), [(64, 6), (128, 2)])
def test_hills_that_end_in_nothing_are_read_as_such(side, draws):
    counts = sample(smooth_hills((side, side), 2), 10_000, 1)
    plain, better = _errors(counts, "0.1", draws)
    assert better < 0.8 * plain


def test_a_model_that_cannot_win_is_not_followed_and_the_best_one_is_the_same():
    counts = sample(smooth_hills((64, 64), 0), 10_000, 1)
    data = open_counts(counts, "1", seed=5)
    tree, _ = grow(data, PlannedBoxes(Planner.for_ranges(data.shape, None, data.domain, data.law())))
    bins = hills._Bins.of(tree, 16)
    assert bins is not None
    held = bins.sums(tree.cells(tree.nonnegative()))
    about, level = np.maximum(held, 1.0), bins.level(held)
    alone = [bins.fit(model, about, level, about) for model in hills._GENTLE]
    fits, chance, gentle = hills._weighed(bins, hills._GENTLE, hills._ROUGH, about, level)
    best = int(np.argmax(bins.weighed(alone)))
    assert best == int(np.argmax(chance))
    # Both end where a step gains next to nothing.
    assert fits[best].likely == pytest.approx(alone[best].likely, abs=2.0)
    assert gentle == pytest.approx(1.0)
    left = [each.evidence < alone[best].evidence - loggaussian.HOPELESS for each in alone]
    assert any(left)
    assert all(part < 1e-6 for part, far in zip(chance, left, strict=False) if far)
    followed = [each.likely - other.likely for each, other in zip(alone, fits, strict=False)]
    assert max(followed) > 10.0


def test_evidence_of_near_models_is_by_the_curvature_where_they_end():
    precise, model = np.diag(np.full(12, 4.0)), (2.0, 1.0, 0.5)
    about = np.full(12, 3.0)
    bins = loggaussian.SumsOfBins((3, 4), np.ones(12), precise, precise @ np.arange(1.0, 13.0))
    fits = [bins.fit(each, about, 5.0, about) for each in (model, (1.0, 1.0, 0.5))]
    found = bins.weighed(fits)
    for each, evidence in zip(fits, found, strict=True):
        spread = loggaussian.Prior.of((3, 4), *each.model).covariance
        scaled = each.bins[:, None] * precise * each.bins
        curved = np.linalg.slogdet(np.eye(12) + spread @ scaled)[1]
        off, logs = each.bins - about, np.log(each.bins) - np.log(5.0)
        likely = (np.arange(1.0, 13.0) - about) @ precise @ off - 0.5 * off @ precise @ off
        likely -= 0.5 * logs @ np.linalg.solve(spread, logs)
        assert evidence == pytest.approx(likely - 0.5 * curved, rel=1e-6)


@pytest.mark.parametrize(("seed", "epsilon"), [(0, "1"), (3, "0.1")])
def test_bins_that_nothing_tells_apart_are_solved_together_and_give_the_same(monkeypatch, seed, epsilon):
    counts = sample(smooth_hills((64, 64), seed), 1_000, seed)
    data = open_counts(counts, epsilon, seed=seed)
    tree, _ = grow(data, PlannedBoxes(Planner.for_ranges(data.shape, None, data.domain, data.law())))
    before, rows = tree.cells(tree.nonnegative()), []

    def counted(*given):
        root = CurvedRoot(*given)
        rows.append(root.rows)
        return root

    monkeypatch.setattr(loggaussian, "CurvedRoot", counted)
    together = with_hills(tree, before)
    assert max(rows) < 0.6 * 32 * 32
    monkeypatch.setattr(loggaussian, "_FEW_GROUPS", 0.0)
    assert np.array_equal(with_hills(tree, before), together)
    assert max(rows) == 32 * 32
    assert (together != before).any()


@pytest.mark.parametrize("within", [np.arange(30) // 3, np.minimum(np.arange(30), 7), np.arange(30) % 11])
def test_a_root_of_groups_is_that_of_their_bins(within):
    draws, model = np.random.default_rng(7), (2.0, 1.5, 0.1)
    factor = draws.standard_normal((within.max() + 1, within.max() + 1))
    groups = factor @ factor.T + np.eye(len(factor))
    precise, scale, right = (
        groups[np.ix_(within, within)],
        draws.uniform(0.1, 3.0, 30),
        draws.standard_normal(30),
    )
    prior = loggaussian.Prior.of((5, 6), *model)
    assert np.allclose(prior.covariance @ prior.inverse, np.eye(30), atol=1e-6)
    assert np.allclose(prior.covariance @ right, prior.times(right), rtol=1e-9, atol=1e-9)
    told = loggaussian.Groups.of(precise, within)
    root = loggaussian.GroupedRoot(told, prior, told.begun(prior), scale)
    whole = loggaussian.WholeRoot(precise, prior, scale)
    for found, expected in zip(root.solve(right), whole.solve(right), strict=True):
        assert np.allclose(found, expected, rtol=1e-7, atol=1e-7)
    assert root.log_determinant == pytest.approx(whole.log_determinant, abs=1e-7)


def test_a_lattice_of_full_cells_stays_as_it_is():
    plain, after = _errors(sample(heaped((128, 128)), 100_000, 1), "0.1", 1)
    assert after < 1.03 * plain


def test_what_is_nearly_known_stays_exactly_as_it_is():
    counts = sample(smooth_hills((64, 64), 2), 10_000_000, 1)
    plain, after = (
        run(AdaptiveTree(estimator="averaged", hills=told), counts, 1, seed=1).counts
        for told in (False, True)
    )
    assert (plain == after).all()


def _hump(size, records):
    """A hump on nothing."""
    place = (np.arange(size) + 0.5) / size
    return sample(np.exp(-0.5 * ((place - 0.4) / 0.08) ** 2), records, 1)


def test_lines_that_end_in_nothing_are_read_as_such():
    plain, better = _errors(_hump(1024, 10_000), "0.1", 8)
    assert better < 0.7 * plain


def test_blocks_of_gentle_lines_are_measured_again_with_their_neighbours():
    counts = _hump(1024, 3_000)
    plain, gentle = (
        AdaptiveTree(hills=told).grow(open_counts(counts, "0.1", seed=2))[0] for told in (False, True)
    )
    assert np.count_nonzero(gentle.size == 1.0) < 0.3 * np.count_nonzero(plain.size == 1.0)
    assert np.count_nonzero(gentle.size[gentle.pool] == 8 * 16) >= 2


def test_what_repeats_inside_of_full_blocks_is_measured():
    comb = _hump(1024, 200_000) * np.where(np.arange(1024) % 16 == 3, 16, 0)
    plain, gentle = (
        AdaptiveTree(hills=told).grow(open_counts(comb, "0.1", seed=2))[0] for told in (False, True)
    )
    teeth = np.argsort(comb)[-8:]
    assert (plain.size[plain.leaf[teeth]] == 1.0).all()
    assert (gentle.size[gentle.leaf[teeth]] == 1.0).all()


def test_a_block_that_stands_out_is_split_however_gentle_a_line_looks(monkeypatch):
    counts = _hump(1024, 5_000)
    counts[700] += 1_500
    monkeypatch.setattr(hills, "how_gentle", lambda *_: 1.0)
    tree = AdaptiveTree(hills=True).grow(open_counts(counts, "0.1", seed=2))[0]
    assert tree.size[tree.leaf[700]] == 1.0
    assert np.mean(tree.size[tree.leaf[200:600]] > 1.0) > 0.5


@pytest.mark.parametrize("rest", [0, 6])
def test_tall_cells_of_a_line_stay_exactly_as_they_are(rest):
    # On a level, too, of which a surface would take what one bin has for everybody's.
    counts = np.full(4096, rest, dtype=np.int64)
    counts[[700, 3900]] = 4_000, 12_000
    plain, after = (
        run(AdaptiveTree(estimator="averaged", hills=told), counts, "0.1", seed=3).counts
        for told in (False, True)
    )
    assert (plain == after).all()


@pytest.mark.parametrize("size", [1, 63, 64, 100, 1000, 1025])
def test_lines_of_any_length_stay_above_nothing(size):
    counts = np.full(size, 3, dtype=np.int64)
    tree = AdaptiveTree(hills=True).grow(open_counts(counts, "0.1", seed=5))[0]
    before = tree.cells(tree.nonnegative())
    after = with_hills(tree, before)
    assert after.shape == (size,)
    assert (after >= 0.0).all()
    assert after.sum() == pytest.approx(before.sum(), rel=0.3, abs=150)


def test_nothing_is_added_up_where_a_line_has_nothing():
    counts = np.concatenate([np.zeros(512, dtype=np.int64), _hump(512, 10_000)])
    tree = AdaptiveTree(hills=True).grow(open_counts(counts, "0.1", seed=2))[0]
    before = tree.cells(tree.nonnegative())
    after = with_hills(tree, before)
    assert (after != before).any()
    empty = before[:512].reshape(-1, 16).sum(axis=1) == 0.0
    assert empty.any()
    assert (after[:512].reshape(-1, 16)[empty] == 0.0).all()


def test_a_curve_further_off_than_noise_is_not_heard(monkeypatch):
    tree = AdaptiveTree().grow(open_counts(_hump(1024, 10_000), "0.1", seed=2))[0]
    counts = tree.cells(tree.nonnegative())
    assert how_gentle(tree, counts) > 0.9
    # As if noise were less: no curve is as near as that.
    monkeypatch.setattr(hills, "_OFF", -5.6)
    assert how_gentle(tree, counts) == 0.0


def test_what_others_were_heard_of_is_not_moved_again():
    tree = AdaptiveTree(hills=True).grow(open_counts(_hump(1024, 10_000), "0.1", seed=2))[0]
    before = tree.cells(tree.nonnegative())
    whole, half, none = (with_hills(tree, before, heard) - before for heard in (0.0, 0.5, 1.0))
    assert np.abs(whole).max() > 0.0
    assert half == pytest.approx(0.5 * whole, abs=0.002 * np.abs(whole).max())
    assert (none == 0.0).all()


@pytest.mark.parametrize("shape", [(50, 200), (17, 300), (100, 30), (1000, 3), (16, 16), (2, 2)])
def test_planes_of_any_shape_stay_above_nothing(shape):
    counts = np.full(shape, 2, dtype=np.int64)
    data = open_counts(counts, "0.1", seed=5)
    tree, _ = grow(data, PlannedBoxes(Planner.for_ranges(data.shape, None, data.domain, data.law())))
    before = tree.cells(tree.nonnegative())
    after = with_hills(tree, before)
    assert after.shape == shape
    assert (after >= 0.0).all()
    assert after.sum() == pytest.approx(before.sum(), rel=0.3)


@pytest.mark.parametrize("shape", [(50, 200), (100, 30), (129, 64)])
@pytest.mark.parametrize("most", [16, 32])
def test_everything_measured_is_a_sum_of_bins_once(shape, most):
    # With totals that are exact, no bin would rather be another than it is.
    counts = np.random.default_rng(4).poisson(3.0, shape).astype(np.float64)
    data = open_counts(counts.astype(np.int64), "0.3", seed=6)
    tree, _ = grow(data, PlannedBoxes(Planner.for_ranges(data.shape, None, data.domain, data.law())))
    exact = MeasuredTree.of(
        *(shape, tree.parent, tree.low, tree.high, box_sums(counts, tree.low, tree.high), tree.variance)
    )
    bins = hills._Bins.of(exact, most)
    assert bins is not None
    assert bins.weighted == pytest.approx(bins.precise @ bins.sums(counts))
    assert bins.part.sum() * np.prod(bins.side) == counts.size


def test_answers_keep_what_surfaces_say_of_the_inside_of_leaves():
    # Plain least squares spreads leaves evenly: that what is published departs from it there is no bias.
    counts = sample(smooth_hills((128, 128), 20), 10_000, 103)
    domain = as_histogram(counts).domain
    told = run(
        AdaptiveTree(estimator="averaged", hills=True),
        *(counts, "0.1"),
        seed=103,
        workload=Workload.random(domain, 500, seed=7),
    )
    small = Workload.random(domain, 500, seed=5)
    small = Workload(domain, small.low, np.minimum(small.low + 8, small.high))
    true, summed = (np.asarray(small.answer(each)) for each in (counts, told.counts))
    answered = told.errors.answer(small, summed)
    assert np.mean((answered - true) ** 2) < 1.05 * np.mean((summed - true) ** 2)


@pytest.mark.parametrize("across", [(8, 6), (5, 8), (8, 5), (7, 3), (1, 4)])
def test_mirror_images_give_the_inverse_of_the_whole(across):
    places = np.indices(across).reshape(2, -1)
    apart = np.hypot(*(each[:, None] - each for each in places)) * np.sqrt(3.0) / 2.0
    covariance = 2.25 * (1.0 + apart) * np.exp(-apart) + 100.0 + 0.25 * np.eye(places.shape[1])
    precision, log_root = loggaussian.covariance_inverse(across, 2.0, 1.5, 0.5)
    assert precision == pytest.approx(np.linalg.inv(covariance), abs=1e-9)
    assert log_root == pytest.approx(0.5 * np.linalg.slogdet(covariance)[1])


@pytest.mark.parametrize("asked", ["prefixes", None])
def test_auto_reads_lines_so_whatever_is_asked_of_sums(tmp_path, asked):
    counts = as_histogram(_hump(1024, 5_000))
    told = Workload.prefixes(counts.domain) if asked else None
    release = publish(counts, epsilon="0.1", mechanism="auto", workload=told)
    assert "hills=True" in repr(release.mechanism)
    release.save(tmp_path / "line.parquet")
    load(tmp_path / "line.parquet").verify()


def test_teeth_that_single_cells_would_show_under_rho_are_measured():
    # 1,000 deviations of a cell's noise, sixteen in every tooth: blocks of 16 cells look even.
    comb = np.where(np.arange(1024) % 16 == 0, 160, 0)
    alone = 0.0
    for seed in range(4):
        data = open_counts(comb, Budget.of(rho=Fraction(1, 200)), seed=seed)
        tree = AdaptiveTree(hills=True).grow(data)[0]
        alone += float((tree.size[tree.leaf] == 1.0).mean()) / 4
    assert alone > 0.97
