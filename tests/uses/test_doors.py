"""What people do with a release is found on the release itself, and is the same as on the floors that do it."""

import subprocess
import sys

import numpy as np
import pytest

import dphist
from dphist.errors import QueryError
from dphist.uses import Cube

DOMAIN = dphist.Domain(
    [dphist.Ordinal("age", range(20, 60)), dphist.Nominal("place", {"north": ["a", "b"], "south": ["c"]})]
)


@pytest.fixture(scope="module")
def release():
    counts = np.random.default_rng(3).integers(0, 300, DOMAIN.shape)
    return dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=2, mechanism="laplace")


@pytest.mark.parametrize("what", ["sum", "mean"])
def test_sums_and_means_are_the_cubes(release, what):
    for where in (None, {"place": "north"}, {"age": (30, 40), "place": "c"}):
        table = getattr(Cube(release).dice(**(where or {})), what)("age", confidence=0.9)
        answer = getattr(release, what)("age", where=where, confidence=0.9)
        assert (answer.value, answer.low, answer.high) == (table.value[0], table.low[0], table.high[0])
        assert answer.confidence == 0.9
        assert answer.low <= answer.value <= answer.high


def test_groups_quantiles_and_shares_are_the_cubes(release):
    assert release.by("place").mean("age").labels == {"place": ["a", "b", "c"]}
    assert release.by(place=1).count().labels == {"place": ["north", "south"]}
    within = Cube(release).dice(place="north")
    mine = release.quantiles("age", where={"place": "north"})
    assert mine.labels == within.quantiles("age", [0.25, 0.5, 0.75]).labels
    assert np.array_equal(release.cdf("age", where={"place": "north"}).low, within.cdf("age").low)


def test_questions_and_sql_are_those_of_the_command_line(release):
    text = "age between 30 and 40 and place = 'a'"
    assert release.query(text) == release.answer(text)
    assert release.query().value == pytest.approx(float(release.counts.sum()))
    assert release.query(text, interval="guaranteed").method.startswith("guaranteed")
    query = "select place, sum(estimate) from release where age > ? group by place order by place"
    assert release.sql(query, parameters=[50]).rows == release.sql(query, parameters=[50]).rows


def test_wrong_questions_are_refused_by_name(release):
    for ask in (
        lambda: release.mean("place"),
        lambda: release.mean("height"),
        lambda: release.sum("age", where="north"),
        lambda: release.std("age", where={(1,): "north"}),
        lambda: release.answer(where={"age": np.array(-5.0)}),
        lambda: release.quantiles("age", [2]),
        lambda: release.by("age").cdf("age"),
    ):
        with pytest.raises((QueryError, dphist.errors.DomainError)):
            ask()


def test_what_answers_is_loaded_when_it_is_asked():
    code = (
        "import sys, dphist.release\nprint({'dphist.release.cube', 'dphist.release.sql'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_quantiles_and_distributions_of_every_group():
    domain = dphist.Domain([dphist.Ordinal("age", range(20)), dphist.Nominal("sex", ["F", "M"])])
    counts = np.zeros((20, 2), dtype=int)
    counts[5:10, 0], counts[12:18, 1] = 4000, 4000
    release = dphist.publish(dphist.Histogram(domain, counts), epsilon=1, mechanism="laplace")
    table = release.by("sex").quantiles("age", [0.25, 0.5])
    assert table.labels["sex"] == ["F", "F", "M", "M"]
    assert table.labels["level"] == ["0.25", "0.5"] * 2
    alone = [release.quantiles("age", [0.25, 0.5], where={"sex": sex}).value.tolist() for sex in "FM"]
    assert table.value.tolist() == alone[0] + alone[1]
    shares = release.by("sex").cdf("age")
    assert len(shares) == 40
    assert shares.labels["sex"][20] == "M"
    with pytest.raises(dphist.errors.QueryError, match="told apart"):
        release.by("age").quantiles("age", [0.5])
