"""Questions that cut bins: refused by name in every interface, and on request answered by a guess with bounds."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import QueryError

EXACT = 10**6  # noise is nowhere, with probability above 1 − 10⁻⁹
RNG = np.random.default_rng(3)
WHOLE = RNG.integers(0, 101, 4000)
# Sixteenths, so that values lie on edges too.
PARTS = RNG.integers(0, 16 * 8 + 1, 4000) / 16
DAYS = np.datetime64("2024-01-01") + RNG.integers(0, 366, 4000)
COLUMNS: dict[str, tuple[Any, dphist.Ordinal, list[Any]]] = {
    "whole": (WHOLE, dphist.Ordinal("x", edges=[0, 5, 18, 40, 45, 65, 100]), list(range(101))),
    "parts": (PARTS, dphist.Ordinal("x", edges=[0, 0.5, 1, 3, 4.25, 8]), [each / 4 for each in range(33)]),
    "months": (
        DAYS,
        dphist.Ordinal("x", dates=("2024-01-01", "2025-01-01", "1mo")),
        [
            str(np.datetime64("2024-01-01") + day)
            for day in (0, 1, 30, 31, 59, 60, 90, 91, 200, 334, 335, 365)
        ],
    ),
}


def published(name):
    values, attribute, bounds = COLUMNS[name]
    counts = np.bincount(attribute.cells(values), minlength=attribute.size)
    release = dphist.publish(
        dphist.Histogram(dphist.Domain([attribute]), counts), epsilon=EXACT, mechanism="laplace"
    )
    own = [np.datetime64(each) for each in bounds] if name == "months" else bounds
    return release, values, dict(zip(bounds, own, strict=True))


RELEASES = {name: published(name) for name in COLUMNS}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_question_agrees_with_the_records_or_is_refused_and_bounds_hold(data):
    """`<=` was answered as `<`, `=` as the whole bin and `between` without its upper bound, all called exact."""
    release, values, own = RELEASES[data.draw(st.sampled_from(sorted(RELEASES)))]
    one, two = (data.draw(st.sampled_from(list(own))) for _ in range(2))
    low, high = sorted([one, two], key=own.__getitem__)
    a, b = own[low], own[high]
    text, where, held = data.draw(
        st.sampled_from(
            [
                (f"x = {low}", {"x": low}, values == a),
                (f"x != {low}", None, values != a),
                (f"x < {low}", None, values < a),
                (f"x <= {low}", {"x": (None, low)}, values <= a),
                (f"x > {low}", None, values > a),
                (f"x >= {low}", {"x": (low, None)}, values >= a),
                (f"x between {low} and {high}", {"x": (low, high)}, (values >= a) & (values <= b)),
                (f"x >= {low} and x < {high}", None, (values >= a) & (values < b)),
                (f"x in ({low}, {high})", {"x": [low, high]}, (values == a) | (values == b)),
            ]
        )
    )
    asked: Any = [(text,), {}] if where is None or data.draw(st.booleans()) else [(), {"where": where}]
    true = int(held.sum())
    try:
        answer = release.answer(*asked[0], **asked[1])
    except QueryError as error:
        refusal = str(error)
    else:
        assert round(answer.value) == true
        return
    assert refusal.startswith("x: ")
    if "nothing looks inside" in refusal:
        answer = release.answer(*asked[0], **asked[1], bins="spread")
        assert answer.guess
        assert not answer.measured
        assert answer.low <= true <= answer.high
        # From what the question holds whole to all that it touches.
        cells = COLUMNS["whole" if values is WHOLE else "parts" if values is PARTS else "months"][1].cells(
            values
        )
        touched = np.unique(cells[held])
        if touched.size:
            assert answer.high >= np.isin(cells, touched).sum()
    else:
        assert true == 0


def test_a_guess_spreads_the_records_of_a_bin_evenly():
    domain = dphist.Domain([dphist.Ordinal("age", edges=range(0, 101, 5)), dphist.Nominal("sex", ["F", "M"])])
    release = dphist.publish(
        dphist.Histogram(domain, np.full((20, 2), 1000)), epsilon=EXACT, mechanism="laplace"
    )
    for asked, value, low, high in (
        ("age = 40 and sex = F", 200, 0, 1000),
        ("age between 30 and 40", 4400, 4000, 6000),
        ("age in (40, 41)", 800, 0, 2000),
        ("age >= 42 and age <= 43", 800, 0, 2000),
        ("age != 42 and sex = F", 19_800, 19_000, 20_000),
        ("age <= 7 and sex = F", 1600, 1000, 2000),
    ):
        answer = release.answer(asked, bins="spread")
        assert (round(answer.value), round(answer.low), round(answer.high)) == (value, low, high), asked
    whole = release.answer("age between 30 and 39", bins="spread")
    assert whole == release.answer("age between 30 and 39")


def test_bounds_of_a_guess_hold_in_tables_that_were_not_measured_together_and_guaranteed():
    domain = dphist.Domain([dphist.Ordinal("age", edges=range(0, 101, 5)), dphist.Nominal("sex", ["F", "M"])])
    counts = np.random.default_rng(5).poisson(50, domain.shape)
    for mechanism in ("marginals", "adaptivetree", "posterior"):
        release = dphist.publish(
            dphist.Histogram(domain, counts), epsilon=1, mechanism=mechanism, workload="marginals"
        )
        for interval in ("calibrated", "guaranteed"):
            answer = release.answer("age between 30 and 42 and sex = F", bins="spread", interval=interval)
            assert answer.low <= counts[6:8, 0].sum()
            assert counts[6:9, 0].sum() <= answer.high
            assert answer.guess


@pytest.fixture(scope="module")
def release():
    domain = dphist.Domain([dphist.Ordinal("age", edges=range(0, 101, 5)), dphist.Nominal("sex", ["F", "M"])])
    return dphist.publish(dphist.Histogram(domain, np.full((20, 2), 1000)), epsilon=1, mechanism="laplace")


def test_every_interface_refuses_what_cuts_a_bin(release):
    cut = {"age": 40}
    for ask in (
        lambda: release.answer(where=cut),
        lambda: release.answer("age = 40"),
        lambda: release.query("age = 40"),
        lambda: dphist.Workload.where(release.domain, cut),
        lambda: dphist.Workload.where(release.domain, age=(30, 40)),
        lambda: release.mean("age", where={"age": (30, 40)}),
        lambda: release.quantiles("age", where=cut),
        lambda: release.by("sex").dice(age=(30, 40)).count(),
        lambda: release.by("age").slice(age=41),
    ):
        with pytest.raises(QueryError, match=r"age: nothing looks inside \[40, 45\).*bounds lie at 40, 45"):
            ask()


def test_the_command_line_spreads_on_request(release, tmp_path):
    path = tmp_path / "r.parquet"
    release.save(path)
    refused = CliRunner().invoke(app, ["query", str(path), "age = 40"])
    assert isinstance(refused.exception, QueryError)
    done = CliRunner().invoke(app, ["query", str(path), "age = 40", "age < 40", "--bins", "spread", "--json"])
    guess, whole = json.loads(done.output)
    own = release.answer("age = 40", bins="spread")
    assert (guess["value"], guess["low"], guess["high"]) == (own.value, own.low, own.high)
    assert guess["measured"] is False
    assert whole["measured"] is True


def test_the_explorer_spreads_on_request(release):
    from dphist.web.view import View

    asked = {"q": "age = 40 and sex = 'F'", "show": "age"}
    with pytest.raises(QueryError, match="nothing looks inside"):
        View.read(release, asked)
    said = View.read(release, asked | {"bins": "spread"}).to_json()
    own = release.answer(asked["q"], bins="spread")
    assert (said["answer"]["value"], said["answer"]["low"]) == (own.value, own.low)
    assert (said["question"], said["answer"]["measured"], said["bins"]) == (asked["q"], False, "spread")
    assert eval(said["python"], {"release": release}) == own  # noqa: S307 -- our own words
    assert "drawn whole" in said["intervals"]
    whole = View.read(release, {"q": "age < 40", "bins": "spread"}).to_json()
    assert whole["answer"]["measured"] is True
    assert whole["question"] == "age >= 0 and age < 40"


def test_measures_and_workloads_are_not_spread(release):
    with pytest.raises(QueryError, match="asks for whole bins only"):
        release.answer(dphist.Workload.cells(release.domain), bins="spread")
    with pytest.raises(QueryError, match="counts alone"):
        release.query("mean cost where age = 40", bins="spread")
    with pytest.raises(QueryError, match="'whole' or 'spread'"):
        release.answer("age = 40", bins="cut")
