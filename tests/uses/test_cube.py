"""The cube: navigation gives the counts one would add up by hand, and intervals hold what they promise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dphist import Histogram, publish
from dphist.errors import QueryError
from dphist.mechanisms.options import parse
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.making import release_of
from dphist.release.cube import Cube
from dphist.release.cube.moments import read_line

PLACES = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}
DOMAIN = Domain([Ordinal("age", range(20, 60)), Nominal("sex", ["F", "M"]), Nominal("place", PLACES)])


def counts_of(seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(30.0, DOMAIN.shape)
    return counts * (1 + np.arange(40)[:, None, None] // 10)


def seeded(counts, mechanism, epsilon, seed, domain=DOMAIN):
    from fractions import Fraction

    noise = Noise(Keystream.for_tests(seed))
    return release_of(Histogram(domain, counts), Fraction(epsilon), parse(mechanism), Unit(), None, noise)


@pytest.fixture(scope="module")
def release():
    return publish(Histogram(DOMAIN, counts_of()), epsilon=1, mechanism="privelet(plain=())")


def whole_line(release, name):
    everything = Workload.where(release.domain, {})
    return read_line(release, name, None, everything.low, everything.high)


def test_slice_dice_and_count(release):
    cube = Cube(release)
    table = cube.slice(sex="F").dice(age=(30, 39)).by("place").count()
    assert table.labels == {"place": ["a", "b", "c", "d", "e"]}
    assert np.allclose(table.value, release.counts[10:20, 0].sum(axis=0))
    assert (table.low <= table.value).all()
    assert (table.value <= table.high).all()
    whole = cube.count()
    assert len(whole) == 1
    assert whole.value[0] == pytest.approx(release.counts.sum())


def test_roll_up_and_drill_down_are_sums_of_one_another(release):
    cube = Cube(release).by("place")
    assert cube.roll_up("place").groups == (("place", 2),)
    coarse = cube.roll_up("place").roll_up("place")
    table = coarse.count()
    assert table.labels["place"] == ["north", "south"]
    assert np.allclose(table.value, [release.counts[..., :2].sum(), release.counts[..., 2:].sum()])
    assert coarse.roll_up("place").groups == ()
    down = coarse.drill_down("place")
    # Categories right below a group stand for themselves.
    assert down.count().labels["place"] == ["a", "b", "coast", "hills"]
    assert down.drill_down("place").groups == (("place", None),)
    assert Cube(release).drill_down("sex").groups == (("sex", None),)
    with pytest.raises(QueryError, match="values already"):
        Cube(release).by("sex").drill_down("sex")
    with pytest.raises(QueryError, match="not told apart"):
        Cube(release).roll_up("sex")


def test_a_group_that_a_condition_cuts_is_counted_once(release):
    table = Cube(release).dice(place=["a", "d"]).by(place=1).count()
    assert table.labels["place"] == ["north", "south"]
    assert np.allclose(table.value, [release.counts[..., 0].sum(), release.counts[..., 3].sum()])
    table = Cube(release).dice(place=["d", "a", "c"]).by(place=1).count()
    assert np.allclose(table.value, [release.counts[..., 0].sum(), release.counts[..., 2:4].sum()])


def test_sum_and_mean_are_those_of_the_released_counts(release):
    ages = np.arange(20, 60)
    by_age = release.counts.sum(axis=(1, 2))
    assert Cube(release).sum("age").value[0] == pytest.approx(ages @ by_age)
    mean = Cube(release).mean("age")
    assert mean.value[0] == pytest.approx(ages @ by_age / by_age.sum())
    grouped = Cube(release).dice(age=(30, 49)).by("sex").mean("age")
    inside = release.counts[10:30, 0].sum(axis=1)
    assert grouped.value[0] == pytest.approx(ages[10:30] @ inside / inside.sum())
    assert len(grouped) == 2


def test_bins_count_as_their_middles_and_say_so():
    domain = Domain([Ordinal("income", edges=[0, 10, 30, 100])])
    release = publish(Histogram(domain, np.array([500, 300, 200])), epsilon=100)
    mean = Cube(release).mean("income")
    assert mean.value[0] == pytest.approx((500 * 5 + 300 * 20 + 200 * 65) / 1000, rel=0.01)
    assert "bin" in mean.details


@pytest.mark.parametrize("workload", [None, "marginals:1"])
@pytest.mark.parametrize("value", [2001.0, 2401.0, 4999.0])
def test_moments_of_bins_hold_wherever_in_its_bin_a_record_lies(workload, value):
    records = pd.DataFrame({"cost": np.repeat([value, 7000.0], [700, 300]), "sex": ["F", "M"] * 500})
    domain = Domain([Ordinal("cost", edges=[0, 2000, 5000, 10_000]), Nominal("sex", ["F", "M"])])
    mechanism = "laplace" if workload is None else "marginals"
    release = publish(records, domain, 100, mechanism, workload=workload)
    of_one = records[records.sex == "F"].cost
    for asked, truth in (({}, records.cost), ({"sex": "F"}, of_one)):
        mean, total = release.mean("cost", where=asked), release.sum("cost", where=asked)
        assert mean.low <= truth.mean() <= mean.high
        assert total.low <= truth.sum() <= total.high
        median = release.quantiles("cost", [0.5], where=asked)
        assert median.low[0] <= truth.median() <= median.high[0]
        assert "wherever in their bins" in mean.details
    assert (release.quantiles("cost", [0.5]).low[0], release.quantiles("cost", [0.5]).high[0]) == (2000, 5000)


@pytest.mark.parametrize("mechanism", ["laplace", "privelet(plain=())", "tree(nonnegative=False)"])
def test_intervals_of_sums_means_and_quantiles_cover(mechanism):
    counts = counts_of(3)
    ages = np.arange(20, 60)
    by_age = counts.sum(axis=(1, 2))
    total, mean = ages @ by_age, ages @ by_age / by_age.sum()
    share = np.cumsum(by_age) / by_age.sum()
    median = ages[np.argmax(share >= 0.5)]
    hits = np.zeros(4)
    runs = 60
    for seed in range(runs):
        cube = Cube(seeded(counts, mechanism, "1/4", seed))
        table = cube.sum("age")
        hits[0] += table.low[0] <= total <= table.high[0]
        table = cube.mean("age")
        hits[1] += table.low[0] <= mean <= table.high[0]
        table = cube.quantiles("age", [0.5])
        hits[2] += table.low[0] <= median <= table.high[0]
        table = cube.cdf("age")
        hits[3] += np.mean((table.low <= share) & (share <= table.high))
    # 95 % each: 60 fixed seeds below 50 would have a chance under 1e-4, and seeds are fixed.
    assert (hits >= 50).all(), hits
    # Not idle either: an interval is far narrower than the range it lies in.
    assert table.high[19] - table.low[19] < 0.2


def test_covariances_equal_those_of_simulated_noise():
    counts = np.full((8,), 300)
    domain = Domain([Ordinal("x", range(8))])
    noise = np.array([seeded(counts, "privelet(plain=())", "1", s, domain).counts for s in range(1000)]) - 300
    line = whole_line(seeded(counts, "privelet(plain=())", "1", 0, domain), "x")
    scale = line._covariance.diagonal().max()
    assert np.abs(np.cov(noise.T) - line._covariance).max() < 0.2 * scale  # entries deviate by about 5 %


def test_quantiles_and_cdf_are_monotone():
    domain = Domain([Ordinal("x", range(50))])
    counts = np.zeros(50, dtype=np.int64)
    counts[10] = 40
    for seed in range(10):
        cube = Cube(seeded(counts, "laplace", "1/10", seed, domain))
        levels = [0.1, 0.25, 0.5, 0.75, 0.9]
        table = cube.quantiles("x", levels, simultaneous=True)
        for numbers in (table.value, table.low, table.high):
            assert (np.diff(numbers) >= 0).all()
        assert ((table.low <= table.value) & (table.value <= table.high)).all()
        shares = cube.cdf("x")
        for numbers in (shares.value, shares.low, shares.high):
            assert (np.diff(numbers) >= 0).all()
        assert shares.value[-1] == 1
        backwards = cube.quantiles("x", levels[::-1], simultaneous=True)
        assert np.array_equal(backwards.low, table.low[::-1])


@pytest.mark.parametrize("levels", [[0.5, float("nan")], [0.0], [1.0], []])
def test_levels_that_are_no_shares_are_refused(release, levels):
    with pytest.raises(QueryError, match="levels"):
        Cube(release).quantiles("age", levels)


def test_attributes_may_be_called_like_the_columns_of_an_answer():
    domain = Domain([Ordinal("level", range(3)), Ordinal("value", range(4)), Nominal("to", ["a", "b"])])
    release = publish(Histogram(domain, np.full((3, 4, 2), 500)), epsilon=1, mechanism="laplace")
    found = release.by("level", "to").quantiles("value", [0.25, 0.5])
    assert list(found.labels) == ["level", "to", "level_", "value", "from", "to_"]
    assert {len(texts) for texts in found.labels.values()} == {12}
    frame = found.to_pandas()
    assert list(frame.columns) == [*found.labels, "value_", "low", "high", "measured"]
    assert frame["level_"].tolist() == ["0.25", "0.5"] * 6
    assert release.by("value").count().to_pandas()["value"].tolist() == ["0", "1", "2", "3"]


def test_attributes_may_be_called_like_the_arguments_of_a_question():
    names = "self", "where", "names", "conditions", "domain", "fixed"
    domain = Domain([Ordinal(name, range(3)) for name in names])
    release = publish(Histogram(domain, np.full(domain.shape, 9)), epsilon=9, mechanism="laplace")
    for name in names:
        other = names[name == "self"]
        assert release.answer(where={name: 1}).value == Cube(release).dice({name: 1}).count().only().value
        assert Cube(release).slice(**{name: 1}).count().only().value == release.answer(where={name: 1}).value
        assert len(release.by(**{name: 1}).mean(other).value) == 3
        assert release.mean(other, where={name: (0, 1)}).value == pytest.approx(1, abs=0.1)
        assert release.quantiles(other, [0.5], where={name: 1}).value == 1
        assert release.mean(name, where={name: (0, 0)}).value == 0


def test_a_confidence_is_checked_before_it_is_divided(release):
    with pytest.raises(QueryError, match="confidence"):
        Cube(release).quantiles("age", [0.25, 0.75], confidence=-0.5, simultaneous=True)


def test_long_lines_and_unions_are_wider_never_narrower():
    domain = Domain([Ordinal("x", range(500)), Nominal("y", ["a", "b", "c"])])
    release = publish(Histogram(domain, np.full((500, 3), 20)), epsilon=1, mechanism="laplace")
    long = Cube(release).mean("x")
    short = Cube(release).dice(x=(0, 99)).mean("x")
    assert "added" in long.details
    assert "covariances" in short.details
    union = Cube(release).dice(x=(0, 99), y=["a", "c"]).mean("x")
    assert "added" in union.details
    assert union.low[0] <= union.value[0] <= union.high[0]


def test_a_quantile_may_be_any_cell_of_a_block_that_was_not_divided():
    domain, counts = Domain([Ordinal("x", range(100))]), np.zeros(100, dtype=np.int64)
    counts[::32] = 75
    levels = [0.05, 0.1, 0.25]
    low = [Cube(seeded(counts, "auto", "1/10", seed, domain)).quantiles("x", levels).low for seed in range(8)]
    # All of them are in the first cell, at the end of a block.
    assert np.mean(np.array(low) == 0) >= 0.93
    release = seeded(counts, "auto", "1/10", 0, domain)
    starts = release._estimate.errors.blocks
    assert starts[0] == 0
    assert 1 < starts.size < 100
    line = whole_line(release, "x")
    variance = np.random.default_rng(1).random(100)
    wider = line._anywhere(variance)
    assert (wider >= variance).all()
    assert all(np.ptp(part) == 0 for part in np.split(wider, starts[1:]))


def test_a_group_that_may_be_empty_has_any_mean():
    domain = Domain([Ordinal("x", range(10))])
    release = seeded(np.zeros(10, dtype=np.int64), "laplace", "1/10", 1, domain)
    mean = Cube(release).mean("x")
    assert mean.low[0] == 0
    assert mean.high[0] == 9


def test_wrong_questions_are_refused(release):
    cube = Cube(release)
    for wrong in (
        lambda: cube.slice(age=(30, 40)),
        lambda: cube.dice(age=(30, 40)).dice(age=(35, 36)),
        lambda: cube.by("age", "age"),
        lambda: cube.by(place=9),
        lambda: cube.mean("sex"),
        lambda: cube.by("age").mean("age"),
        lambda: cube.by("age").quantiles("age", [0.5]),
        lambda: cube.quantiles("age", [0.0]),
        lambda: cube.quantiles("age", []),
        lambda: cube.dice(age=[20, 40]).mean("age"),
    ):
        with pytest.raises(QueryError):
            wrong()
    words = Domain([Ordinal("grade", ["low", "middle", "high"])])
    graded = publish(Histogram(words, np.array([50, 90, 10])), epsilon=10)
    with pytest.raises(QueryError, match="not numbers"):
        Cube(graded).mean("grade")
    assert Cube(graded).quantiles("grade", [0.5]).labels["grade"] == ["middle"]


def test_means_of_groups_that_look_filled_by_luck_are_not_said_to_be_known() -> None:
    """Of what is said to be known as much holds as is promised, however many groups are empty."""
    towns, ages = 300, 20
    domain = Domain([Nominal("town", [f"t{town}" for town in range(towns)]), Ordinal("age", range(ages))])
    counts = np.zeros((towns, ages), dtype=np.int64)
    counts[:30] = np.arange(ages)
    filled = np.arange(towns) < 30
    truth = float((np.arange(ages) ** 2).sum() / np.arange(ages).sum())
    told = right = 0
    for _ in range(2):
        release = publish(Histogram(domain, counts), epsilon=1, mechanism="laplace")
        mean = release.by("town").mean("age")
        known = (mean.low > 0) | (mean.high < ages - 1)
        told += int(known.sum())
        right += int((known & filled & (mean.low <= truth) & (mean.high >= truth)).sum())
    # Sixty are filled; told one by one some twenty of the empty ones look so, too, and a quarter of all is wrong.
    assert told >= 56
    assert right / told > 0.88


def test_quantiles_and_shares_of_groups_that_look_filled_by_luck_are_not_told() -> None:
    towns, ages, levels = 300, 20, [0.25, 0.5, 0.75]
    domain = Domain([Nominal("town", [f"t{town}" for town in range(towns)]), Ordinal("age", range(ages))])
    counts = np.zeros((towns, ages), dtype=np.int64)
    counts[:30] = np.arange(ages)
    share = np.cumsum(counts[0]) / counts[0].sum()
    truth = np.searchsorted(share, levels)
    for seed in range(2):
        release = seeded(counts, "laplace", "1", seed, domain)
        quantiles, shares = release.by("town").quantiles("age", levels), release.by("town").cdf("age")
        low, high = (end.reshape(towns, -1) for end in (quantiles.low, quantiles.high))
        # Told one by one, some twenty-five of the empty groups had quantiles, and six shares.
        assert ((low == 0) & (high == ages - 1)).all(axis=1)[30:].sum() >= 268
        assert ((low <= truth) & (truth <= high))[:30].mean() > 0.95
        low, high = (end.reshape(towns, -1)[:, :-1] for end in (shares.low, shares.high))
        assert ((low == 0) & (high == 1)).all(axis=1)[30:].sum() >= 268
        assert ((low <= share[:-1]) & (share[:-1] <= high))[:30].mean() > 0.93
        # A group that is clearly filled is told nearly as if nobody had asked of the others.
        alone = release.cdf("age", where={"town": "t3"})
        assert (high[3] - low[3]).mean() < 1.3 * (alone.high - alone.low)[:-1].mean()
        assert ((low[3] <= alone.low[:-1]) & (high[3] >= alone.high[:-1])).all()


def test_a_line_that_may_be_empty_has_its_median_anywhere() -> None:
    domain, none = Domain([Ordinal("x", range(100))]), np.zeros(100, dtype=np.int64)
    told = 0
    for seed in range(40):
        line = whole_line(seeded(none, "laplace", "1", seed, domain), "x")
        _, low, high = line.quantiles(np.array([0.5]), 0.95)
        told += int(low[0] > 0 or high[0] < 99)
    # Two are expected, and more than seven in one of ten thousand runs. Where the interval ended at the first cell that
    # noise lifts far enough, ten were.
    assert told <= 7


FALLS = 840 / np.arange(1, 41)


@pytest.mark.parametrize(
    ("what", "line", "seeds", "least"),
    [
        # Drawn towards each other, the largest group is too low all along: seven in ten held.
        ("sum", np.full(40, 90), 8, 0.88),
        # Tails of a line that falls are drawn together; beside a tall cell variances of ranges are no law.
        ("mean", FALLS, 16, 0.93),
        ("mean", np.where(np.arange(40) == 13, 3600, 0), 16, 0.95),
        ("mean", 450 * np.exp(-np.arange(40) / 8.0), 16, 0.93),
        ("cdf", FALLS, 8, 0.93),
    ],
)
def test_what_is_said_by_group_of_inferred_cells_holds(
    what: str, line: np.ndarray, seeds: int, least: float
) -> None:
    domain = Domain([Ordinal("x", range(40)), Nominal("g", ["a", "b", "c"])])
    counts = np.rint(np.outer(line, [0.6, 0.3, 0.1])).astype(np.int64)
    sums, records = counts.T @ np.arange(40.0), counts.sum(axis=0)
    truths = {"sum": sums, "mean": sums / records, "cdf": (np.cumsum(counts, axis=0) / records).T.reshape(-1)}
    truth, held = truths[what], []
    for seed in range(seeds):
        said = getattr(seeded(counts, "posterior", "1/10", seed, domain).by("g"), what)("x")
        held.append((said.low <= truth + 1e-6) & (truth - 1e-6 <= said.high))
        assert ((said.low <= said.value) & (said.value <= said.high)).all()
        if what == "sum":
            # No wider than the noise of the cells makes a weighted sum of them, but where both may be right.
            noise = 1.96 * np.sqrt(200 * (np.arange(40.0) ** 2).sum())
            assert np.median(said.high - said.low) <= 3 * noise
    assert np.mean(held) > least


def test_sums_of_values_that_are_not_negative_have_intervals_that_are_not():
    """The number is as it came, so that groups add up; its interval is of what a sum can be."""
    domain = Domain([Nominal("g", [str(i) for i in range(40)]), Ordinal("v", range(20))])
    counts = np.zeros(domain.shape, dtype=np.int64)
    release = publish(Histogram(domain, counts), epsilon="0.2", mechanism="laplace", unattended=True)
    sums = Cube(release).by("g").sum("v")
    assert (sums.value < 0).any()
    assert sums.value.sum() == pytest.approx(Cube(release).sum("v").value.item())
    assert (sums.low >= 0).all()
    # Below zero no interval says that the sum is zero for certain: it reaches from there as far up as noise does.
    assert np.ptp(sums.high - sums.low) <= 1.01 * np.min(sums.high - sums.low)
    below = Domain([domain.attributes[0], Ordinal("v", range(-19, 1))])
    sums = (
        Cube(publish(Histogram(below, counts), epsilon="0.2", mechanism="laplace", unattended=True))
        .by("g")
        .sum("v")
    )
    assert (sums.high <= 0).all()
    assert (sums.low <= 0).all()
