"""Selected cells become words that select the same cells; bars cover every cell once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphist
from dphist.model.workload import Workload
from dphist.release.asking import boxes, read_conditions
from dphist.release.guarantee import Guarantee
from dphist.report.cuts import cut, name_span
from dphist.report.wording import caveats, python, question

ATTRIBUTES: list[dphist.Ordinal | dphist.Nominal] = [
    dphist.Ordinal("age", range(10, 40, 3)),
    dphist.Ordinal("and", range(7), other=True),
    dphist.Ordinal("income", edges=[-5.5, 0, 0.1, 2e6, 1e9]),
    dphist.Ordinal("of age", edges=range(0, 100, 10), other=True),
    dphist.Ordinal("day", dates=("2024-01-01", "2024-03-01", "1w")),
    dphist.Ordinal("date", dates=("2024-02-27", "2024-03-03", "1d")),
    dphist.Ordinal("grade", ["low", "it's", 'so "so"', "high"]),
    dphist.Nominal("sex", ["F", "M"]),
    dphist.Nominal("code", [3, 1, 2], other=True),
    dphist.Nominal("alive", [True, False]),
    dphist.Nominal('pl"ace', {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e'"]}}),
]
DOMAIN = dphist.Domain(ATTRIBUTES)
PROMISE = Guarantee(1, dphist.Unit())


def cells(workload, axis):
    chosen = set()
    for low, high in zip(workload.low[:, axis], workload.high[:, axis], strict=True):
        chosen |= set(range(low, high))
    return chosen


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_words_and_python_select_exactly_the_same_cells(data):
    attribute = data.draw(st.sampled_from(ATTRIBUTES))
    chosen = data.draw(st.sets(st.integers(0, attribute.size - 1), min_size=1))
    spans: list[Any] = []
    for cell in sorted(chosen):
        if spans and spans[-1][1] == cell:
            spans[-1] = (spans[-1][0], cell + 1)
        else:
            spans.append((cell, cell + 1))
    domain = dphist.Domain([attribute])
    words = question(domain, {attribute.name: spans})
    assert cells(boxes(read_conditions(words, domain), domain), 0) == chosen, words
    code = python(domain, {attribute.name: spans})

    class Asked:
        @staticmethod
        def answer(where):
            return Workload.where(domain, where)

    if len(spans) == 1 or not isinstance(attribute, dphist.Ordinal) or attribute.scale.form != "categories":
        assert cells(eval(code, {"release": Asked}), 0) == chosen, code  # noqa: S307 -- our own words


def test_an_empty_selection_is_written_as_one_that_no_cell_meets_and_is_refused():
    words = question(DOMAIN, {"age": [(0, 0)], "sex": [(0, 1)]})
    with pytest.raises(dphist.errors.QueryError, match="nobody"):
        read_conditions(words, DOMAIN)


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.name)
@pytest.mark.parametrize("most", [1, 2, 3, 200])
def test_bars_cover_every_cell_once_in_order(attribute, most):
    cuts = cut(attribute, most)
    assert [cell for start, stop in cuts.spans for cell in range(start, stop)] == list(range(attribute.size))
    assert len(cuts.labels) == len(set(cuts.labels)) == len(cuts)
    assert len(cuts) <= most + (attribute.other_cell is not None)


def test_a_huge_attribute_is_cut_into_few_round_bars():
    cuts = cut(dphist.Ordinal("x", range(10**8)), 200)
    assert len(cuts) == 200
    assert cuts.labels[1] == "500000 to 999999"


def test_long_lists_of_categories_end_in_the_rest():
    cuts = cut(dphist.Nominal("x", [f"c{i}" for i in range(1000)]), 60)
    assert len(cuts) == 60
    assert cuts.labels[-1] == "941 more"
    assert cuts.spans[-1] == (59, 1000)


def test_spans_are_named_in_the_attributes_own_values():
    names = {attribute.name: attribute for attribute in ATTRIBUTES}
    assert name_span(names["income"], (1, 3)) == "[0, 2,000,000)"
    assert name_span(names["day"], (0, 2)) == "2024-01-01 to 2024-01-14"
    assert name_span(names["and"], (5, 8)) == "5 to 6 and other"


def test_a_window_outside_the_cells_is_refused():
    with pytest.raises(dphist.errors.QueryError, match="inside"):
        cut(ATTRIBUTES[0], 10, window=(5, 400))


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("exact: the noise has a known law", "known exactly: 90 of 100"),
        ("calibrated: holds in about 90 of 100 such questions", "about 90 of 100"),
        ("guaranteed: whatever the data", "That is proven"),
        ("noise only: what merging has biased is not covered", "more often than 90 %"),
    ],
)
def test_caveats_are_sentences_without_a_symbol(method, said):
    from dphist.release import Answer

    told = " ".join(caveats(Answer(12.0, 0.0, 15.0, 0.9, method), PROMISE))
    assert said in told
    assert "nobody at all" in told
    assert not set("εδρ") & set(told)
    assert all(sentence.endswith(".") for sentence in caveats(Answer(12.0, 3.0, 15.0, 0.9, method), PROMISE))


def test_what_was_not_measured_is_said_to_be_useless():
    from dphist.release import Answer

    told = caveats(Answer(12.0, float("nan"), float("nan"), 0.95, "not measured"), PROMISE)
    assert "not measured by itself" in told[0]
    assert "do not use it" in told[0]


def test_a_guess_is_said_to_be_one_and_its_bounds_are_told():
    from dphist.release import Answer

    told = caveats(Answer(12.0, 3.0, 40.0, 0.95, "bounds: a guess", guess=True), PROMISE)
    assert "is a guess" in told[0]
    assert "between 3 and 40" in told[1]
    assert "at least 95 of 100 such bounds hold" in told[1]


def test_bars_of_several_cells_say_how_many_and_a_shorter_last_one_too():
    """365 days were 73 bars of five under the name of one day each."""
    for size, most, bars in ((365, 200, 73), (100, 60, 50), (1096, 200, 137)):
        cuts = cut(dphist.Ordinal("x", range(size)), most)
        assert len(cuts) == bars
        assert set(cuts.sizes) == {size // bars}
        assert cuts.title == f"x ({size // bars} values to a bar)"
    cuts = cut(dphist.Ordinal("x", range(97)), 60)
    assert cuts.spans[-1] == (96, 97)
    assert cuts.title == "x (2 values to a bar, the last of 1)"
    # What lies outside the bounds is a bar of its own, and no shorter one.
    assert cut(dphist.Ordinal("x", range(10), other=True), 20).title == "x"
    assert cut(dphist.Ordinal("x", range(40), other=True), 20).title == "x (2 values to a bar)"
    for step, name in (("1d", "days"), ("1w", "weeks"), ("1mo", "months"), ("3d", "periods")):
        dates = dphist.Ordinal("when", dates=("2000-01-01", "2020-01-01", step))
        assert f" {name}" in cut(dates, 60).title
    assert cut(dphist.Ordinal("x", edges=range(0, 1000, 2)), 60).title.endswith(
        "bins to a bar, the last of 9)"
    )


def test_every_day_of_a_year_is_drawn_beside_few_categories_too():
    from dphist.report.figures import table

    day = dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1d"))
    for others in ([], [dphist.Nominal("month", [f"m{i}" for i in range(12)])]):
        domain = dphist.Domain([day, *others])
        made = dphist.publish(
            dphist.Histogram(domain, np.full(domain.shape, 9)), epsilon=1, mechanism="laplace"
        )
        for names in (domain.names, domain.names[::-1]):
            assert len(table(made, names).answers) == domain.size


def test_what_is_drawn_of_bars_that_share_cells_is_their_mean():
    """Of sums the last column, which had fewer days, was dark where nothing had changed."""
    from dphist.report.figures import figure, specification, table

    domain = dphist.Domain([dphist.Ordinal("day", range(401)), dphist.Ordinal("age", range(97))])
    made = dphist.publish(
        dphist.Histogram(domain, np.full(domain.shape, 50)), epsilon=1000, mechanism="laplace"
    )
    numbers = table(made, ["day", "age"])
    rows = specification(numbers)["datasets"]["numbers"]
    assert {round(row["mean"]) for row in rows} == {50}
    assert len({round(row["estimate"]) for row in rows}) > 1
    colour = figure(made, ["day", "age"]).to_dict()["encoding"]["color"]
    assert (colour["field"], colour["title"]) == ("mean", "records per value and value")
    bars = specification(table(made, ["day"]))
    assert bars["layer"][0]["encoding"]["y"]["title"] == "records per value"
    for row in bars["datasets"]["numbers"]:
        assert round(row["mean"]) == 50 * 97
        assert row["low"] <= row["mean"] <= row["high"]
    # The rest of a long list is no town of its own; groups of a hierarchy are what their name says.
    towns = cut(dphist.Nominal("town", [f"t{i}" for i in range(200)]), 60)
    assert towns.sizes == (1,) * 59 + (141,)
    assert cut(dphist.Nominal("town", {"north": list("abcd"), "south": list("ef")}), 2).sizes == (1, 1)


@pytest.mark.parametrize("count", [16, 50, 200])
def test_every_category_is_named_on_its_axis(count: int) -> None:
    """Of 16 names 9 were drawn, of 50 five."""
    from dphist.report.figures import ticks

    cuts = cut(dphist.Nominal("town", [f"t{place}" for place in range(count)]), most=60)
    for across in (True, False):
        axis = ticks(cuts, across=across)
        assert all(f'"{label}"' in axis["labelExpr"] for label in cuts.labels)
        assert axis["labelOverlap"] is False
        # Side by side: what is left of many is no wider than one.
        assert axis["values"] == [place + 0.5 for place in range(len(cuts))]
    assert len(cuts) == min(count, 60)


def test_weeks_are_named_by_their_first_day_below_a_figure():
    """There was room for one day and a half: every name below the bars ended in the middle of a year."""
    from dphist.report.figures import ticks

    weeks = dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1w"), other=True)
    said = ticks(cut(weeks, 200))["labelExpr"]
    assert "2024-01-01" in said
    assert " to " not in said
    ranges = dphist.Ordinal("age", ["0 to 17", "18 to 99"])
    assert "18 to 99" in ticks(cut(ranges, 200))["labelExpr"]
