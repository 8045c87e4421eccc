import contextlib

import numpy as np
import pytest

from dphist.errors import QueryError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.release.asking import read_question

DOMAIN = Domain(
    [
        Ordinal("age", range(100)),
        Nominal("sex", ["F", "M", "it's"]),
        Ordinal("income", edges=[0, 10, 100, 1000]),
        Ordinal("day", dates=("2024-01-01", "2024-03-01", "1d")),
        Nominal("home town", {"north": ["a", "b"], "south": ["c", "d"]}),
    ]
)
SHAPE = DOMAIN.shape


def selected(text):
    """Which cells a question adds up, found with one-hot counts along each axis."""
    workload = read_question(text, DOMAIN)
    found = []
    for axis, n in enumerate(SHAPE):
        picked = set()
        for low, high in zip(workload.low, workload.high, strict=True):
            picked |= set(range(low[axis], high[axis]))
        found.append(sorted(picked) if len(picked) < n else "all")
    return dict(zip(("age", "sex", "income", "day", "home"), found, strict=True))


@pytest.mark.parametrize(
    ("text", "bins"),
    [
        ("income > 0", ["[0, 10)"]),
        ("income >= 10", []),
        ("income > 10", ["[10, 100)"]),
        ("income <= 10", ["[10, 100)"]),
        ("income <= 9.5", ["[0, 10)"]),
        ("income between 5 and 200", ["[0, 10)", "[100, 1000]"]),
        ("income between 0 and 1000", []),
        ("income = 5", ["[0, 10)"]),
        ("income != 5", ["[0, 10)"]),
        ("income = '[10, 100)'", []),
        ("income in ('[10, 1000]', '[0, 10)')", []),
        ("income >= 1000", ["[100, 1000]"]),
        ("income >= 5 and income < 3", None),
        ("age > 3 and day < 2024-02-03 and sex = 'F'", []),
    ],
)
def test_a_question_that_cuts_a_bin_is_refused_by_its_name(text, bins):
    """Whole bins had been counted: `age = 40` was answered by all from 40 to 44."""
    if bins == []:
        read_question(text, DOMAIN)
        return
    with pytest.raises(QueryError) as refused:
        read_question(text, DOMAIN)
    if bins is not None:
        assert f"nothing looks inside {', '.join(bins)}, which" in str(refused.value)


def test_the_refusal_names_the_next_bounds_and_what_it_proposes_is_answered():
    with pytest.raises(QueryError) as refused:
        read_question("income between 5 and 90", DOMAIN)
    assert str(refused.value) == (
        "income: nothing looks inside [0, 10), [10, 100), which the question cuts. Let bounds lie at 0, 10, 100, as "
        'income >= 10 and income < 100 has them, or take a whole bin by its name, as income = "[0, 10)"; for a guess '
        'with bounds: bins="spread"'
    )
    assert selected("income >= 10 and income < 100")["income"] == [1]
    assert selected('income = "[0, 10)"')["income"] == [0]


@pytest.mark.parametrize(
    ("edges", "text", "refused"),
    [
        # Above 0 there may be 0.5: of a bin of one whole number nobody knows what it holds.
        ([0, 1, 100], "x > 0", True),
        ([0, 1, 100], "x = 0", True),
        ([0, 1, 100], "x < 1", False),
        ([0, 0.5, 2, 4], "x <= 3", True),
        ([0, 0.5, 2, 4], "x <= 1", True),
        ([0, 0.5, 2, 4], "x = '[0.5, 2)'", False),
        ([0, 0.5, 2, 4], "x = '[0.5, 1)'", True),
        (range(0, 101, 5), "x between 40 and 44", False),
        (range(0, 101, 5), "x between 40 and 45", True),
        (range(0, 101, 5), "x > 99", True),
        (range(0, 101, 5), "x > 94", False),
        (range(0, 101, 5), "x between 40 and 44.5", True),
        ([18, 65, 120], "x between 18 and 64", False),
    ],
)
def test_whole_bounds_mean_whole_numbers_where_all_edges_are_whole(edges, text, refused):
    domain = Domain([Ordinal("x", edges=edges)])
    with pytest.raises(QueryError, match="x: ") if refused else contextlib.nullcontext():
        read_question(text, domain)


DATED = Domain(
    [
        Ordinal("month", dates=("2024-01-01", "2025-01-01", "1mo")),
        Ordinal("week", dates=("2024-01-01", "2024-01-20", "1w"), other=True),
        Ordinal("day", dates=("2024-01-01", "2024-03-01")),
    ]
)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("month >= 2024-03-15", ["2024-03"]),
        ("month > 2024-03-15", ["2024-03"]),
        ("month > 2024-03-31", []),
        ("month < 2024-03-02", ["2024-03"]),
        ("month <= 2024-03-31", []),
        ("month between '2024-02-10' and 2024-03-15", ["2024-02", "2024-03"]),
        ("month >= 2023-06-15 and month < 2026-01-02", []),
        ("month = '2024-03'", []),
        ("month != '2024-03'", []),
        ("month != 2024-03-15", ["2024-03"]),
        ("week = '2024-01-15 to 2024-01-19'", []),
        ("month in (2024-03-15, 2024-05-01)", ["2024-03", "2024-05"]),
        ("week <= 2024-01-16", ["2024-01-15 to 2024-01-19"]),
        ("week <= 2024-01-19", []),
        ("week = other", []),
        ("day >= 2024-02-03 and day < 2024-02-10 and day != 2024-02-04", []),
    ],
)
def test_a_question_that_cuts_a_month_is_refused_by_its_name(text, cells):
    """A question from the 15th on was answered from the first on."""
    if not cells:
        read_question(text, DATED)
        return
    with pytest.raises(QueryError, match=f"nothing looks inside {', '.join(cells)}, which"):
        read_question(text, DATED)


@pytest.mark.parametrize(
    ("text", "axis", "cells"),
    [
        ("age between 30 and 32", "age", [30, 31, 32]),
        ("age = 30", "age", [30]),
        ("AGE < 2", "age", [0, 1]),
        ("age >= 97", "age", [97, 98, 99]),
        ("age in (1, 2, 50)", "age", [1, 2, 50]),
        ("age >= 10 and age < 12", "age", [10, 11]),
        ("age > 3.5 and age < 6", "age", [4, 5]),
        ("age != 5 and age < 7", "age", [0, 1, 2, 3, 4, 6]),
        ("sex = 'F'", "sex", [0]),
        ("sex = F", "sex", [0]),
        ("sex = 'it''s'", "sex", [2]),
        ('sex = "it\'s"', "sex", [2]),
        ("sex != 'F'", "sex", [1, 2]),
        ("income = '[10, 100)'", "income", [1]),
        ("income <= 99", "income", [0, 1]),
        ("income >= 10 and income <= 99", "income", [1]),
        ("day < '2024-01-03'", "day", [0, 1]),
        # Without quotes too: it had been read as 2024, and refused with a word about days such as 2024-01-31.
        ("day < 2024-01-03", "day", [0, 1]),
        ("day in (2024-01-01,2024-01-03)and age>=0", "day", [0, 2]),
        ("\"home town\" = 'south'", "home", [2, 3]),
        ("\"home town\" in ('south', 'a')", "home", [0, 2, 3]),
    ],
)
def test_conditions_select_the_cells_they_say(text, axis, cells):
    found = selected(text)
    assert found.pop(axis) == cells
    assert set(found.values()) == {"all"}


def test_nothing_lies_below_the_first_edge_or_above_the_last():
    domain = Domain(
        [Ordinal("income", edges=[0, 10, 100]), Ordinal("week", dates=("2024-01-01", "2024-03-01", "1w"))]
    )
    for text in (
        "income < 0",
        "income > 100",
        "week < '2024-01-01'",
        "week > '2024-02-29'",
        "week > '9999-12-31'",
    ):
        with pytest.raises(QueryError, match="no value"):
            read_question(text, domain)


def test_quotes_of_either_kind_are_written_twice_inside_their_own():
    domain = Domain([Nominal("s", ['a"b', "a'b", 'a""b'])])
    for text, cell in (
        ('s = "a""b"', 0),
        ("s = 'a\"b'", 0),
        ("s = 'a''b'", 1),
        ('s = "a\'b"', 1),
        ("s = 'a\"\"b'", 2),
    ):
        assert read_question(text, domain).low.tolist() == [[cell]]


def test_an_empty_question_is_the_total():
    counts = np.ones(SHAPE)
    assert read_question("", DOMAIN).answer(counts).tolist() == [DOMAIN.size]
    assert read_question("  ", DOMAIN).answer(counts).tolist() == [DOMAIN.size]


def test_listed_values_are_counted_once_however_often_they_are_named():
    counts = np.ones(SHAPE)
    assert read_question("age in (1, 1, 2)", DOMAIN).answer(counts)[0] == counts[1:3].sum()


@pytest.mark.parametrize(
    "text",
    [
        "weight = 3", "age", "age =", "age = 1 and", "age = 1 or age = 2", "not age = 1", "age between 1", "age in ()",
        "age in (1", "age = 1 sex = 'F'", "age = 'F'", "sex = 'X'", "sex < 'F'", "age ~ 3", "age = 1; drop table x",
        "'F' = sex", "age < 3 and age > 5", "age between 5 and 3", "age > 1000", "age < 0", "age between -9 and -1",
        "day between '2024-01-03' and '2024-01-01'", "income > 1e9", "age = 1 --", "home town = 'a'", "x" * 20_000,
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_a_query_error(text):
    with pytest.raises(QueryError):
        read_question(text, DOMAIN)
