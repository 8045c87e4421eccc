"""Domains: cells, labels, spans, files."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist.errors import DomainError, InputError, QueryError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.domain.scales import Dates
from dphist.model.measure import Measure
from dphist.model.workload import Workload

PLACES = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}


def test_a_range_of_ten_million_cells_costs_a_few_bytes() -> None:
    attribute = Ordinal("x", range(10**7))
    assert attribute.size == 10**7
    assert len(pickle.dumps(attribute)) < 500
    assert sys.getsizeof(attribute.scale.values) < 100  # type: ignore[union-attr]
    assert attribute.labels[9_999_999] == "9999999"
    assert list(attribute.labels[3:6]) == ["3", "4", "5"]


def test_labels_read_well() -> None:
    assert list(Ordinal("i", edges=[0, 10_000, 25_000, 1e6]).labels) == [
        "[0, 10000)",
        "[10000, 25000)",
        "[25000, 1000000]",
    ]
    assert Ordinal("d", dates=("2024-01-30", "2024-02-03", "1d")).labels[2] == "2024-02-01"
    assert list(Ordinal("d", dates=("2024-01-01", "2024-04-01", "1mo")).labels) == [
        "2024-01",
        "2024-02",
        "2024-03",
    ]
    assert Ordinal("d", dates=("2024-01-01", "2024-01-10", "1w")).labels[1] == "2024-01-08 to 2024-01-09"
    assert list(Nominal("s", ["F", "M"], other=True).labels) == ["F", "M", "other"]
    assert list(Nominal("s", [False, True]).labels) == ["false", "true"]


@pytest.mark.parametrize(
    ("attribute", "value", "cell"),
    [
        (Ordinal("a", range(18, 100)), 18, 0),
        (Ordinal("a", range(18, 100)), 99.0, 81),
        (Ordinal("a", range(0, 100, 5)), 10, 2),
        (Ordinal("e", edges=[0, 1.5, 3]), 1.5, 1),
        (Ordinal("e", edges=[0, 1.5, 3]), 3, 1),
        (Ordinal("e", edges=range(0, 101, 10)), 100, 9),
        (Ordinal("e", edges=range(0, 101, 10)), 9.99, 0),
        (Ordinal("g", ["low", "high"]), "high", 1),
        (Ordinal("d", dates=("2024-01-15", "2025-01-15", "1mo")), "2024-02-14", 0),
        (Ordinal("d", dates=("2024-01-15", "2025-01-15", "1mo")), dt.date(2024, 2, 15), 1),
        (Ordinal("d", dates=("2020-01-01", "2025-01-01", "1y")), dt.datetime(2024, 12, 31, 23), 4),
        (Nominal("p", PLACES), "d", 3),
        (Nominal("p", PLACES), "coast", 2),
        (Nominal("n", [3, 1, 2]), 1, 1),
        (Ordinal("a", range(5), other=True), "other", 5),
    ],
)
def test_index(attribute: Ordinal | Nominal, value: object, cell: int) -> None:
    assert attribute.index(value) == cell


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (Ordinal("a", range(5)), 5),
        (Ordinal("a", range(5)), 2.5),
        (Ordinal("a", range(5)), math.nan),
        (Ordinal("a", range(5)), math.inf),
        (Ordinal("a", range(5)), "3"),
        (Ordinal("a", range(5)), True),
        (Ordinal("e", edges=[0, 1]), -0.001),
        (Ordinal("e", edges=[0, 1]), math.nan),
        (Ordinal("e", edges=[0, 1]), None),
        (Ordinal("g", ["low"]), "LOW"),
        (Ordinal("d", dates=("2024-01-01", "2024-02-01", "1d")), "2024-02-01"),
        (Ordinal("d", dates=("2024-01-01", "2024-02-01", "1d")), "soon"),
        (Nominal("n", [0, 1]), True),
        (Nominal("p", PLACES), "north"),
    ],
)
def test_values_without_a_cell(attribute: Ordinal | Nominal, value: object) -> None:
    with pytest.raises(QueryError, match=attribute.name):
        attribute.index(value)
    assert attribute.cells([value])[0] == -1


@pytest.mark.parametrize(
    ("attribute", "bounds", "cells"),
    [
        (Ordinal("a", range(18, 100)), (30, 40), (12, 23)),
        (Ordinal("a", range(18, 100)), (None, math.inf), (0, 82)),
        (Ordinal("a", range(0, 100, 5)), (1, 11), (1, 3)),
        (Ordinal("e", edges=[0, 10, 25, 100]), (0, 9), (0, 1)),
        (Ordinal("e", edges=[0, 10, 25, 100]), (10, 100), (1, 3)),
        (Ordinal("e", edges=[0, 10, 25, 100]), (-math.inf, 24), (0, 2)),
        (Ordinal("g", ["l", "m", "h"]), ("m", None), (1, 3)),
        (Ordinal("d", dates=("2024-01-01", "2025-01-01", "1mo")), ("2024-02-01", "2024-03-31"), (1, 3)),
        (Ordinal("a", range(4), other=True), (0, 99), (0, 4)),
        (Nominal("p", PLACES), ("south", None), (2, 5)),
        (Nominal("p", PLACES), ("hills", None), (3, 5)),
        (Nominal("p", PLACES), ("b", "coast"), (1, 3)),
        (Nominal("p", PLACES, other=True), ("other", None), (5, 6)),
    ],
)
def test_span(attribute: Ordinal | Nominal, bounds: tuple[object, object], cells: tuple[int, int]) -> None:
    assert attribute.span(*bounds) == cells


@pytest.mark.parametrize(
    ("attribute", "bounds", "why"),
    [
        (Ordinal("a", range(18, 100)), (-5, 17), "from 18 to 99"),
        (Ordinal("a", range(18, 100)), (40, 30), "backwards"),
        (Ordinal("a", range(0, 100, 5)), (1, 2), "no value"),
        (Ordinal("e", edges=[0, 10, 25, 100]), (101, 200), "no value"),
        (Ordinal("e", edges=[0, 10, 25, 100]), (0, 10), "nothing looks inside"),
        (Ordinal("e", edges=[0, 10, 25, 100]), (10, 10), "nothing looks inside"),
        (Ordinal("e", edges=[0, 10, 25, 100]), (12, 13), "nothing looks inside"),
        (Ordinal("e", edges=[0, 10, 25, 100]), (100, 100), "nothing looks inside"),
        (
            Ordinal("d", dates=("2024-01-01", "2025-01-01", "1mo")),
            ("2024-02-10", "2024-03-31"),
            "nothing looks inside",
        ),
        (Ordinal("e", edges=[0, 10, 25, 100]), (20, 10), "backwards"),
        (Ordinal("g", ["l", "m", "h"]), ("h", "l"), "backwards"),
        (Ordinal("d", dates=("2024-01-01", "2025-01-01", "1mo")), ("2025-02-10", "2025-03-01"), "no value"),
        (Ordinal("d", dates=("2024-01-01", "2025-01-01", "1mo")), ("2024-03-01", "2024-02-01"), "backwards"),
        (Nominal("p", PLACES), ("coast", "b"), "backwards"),
    ],
)
def test_a_range_without_a_cell_or_across_one_is_refused(
    attribute: Ordinal | Nominal, bounds: tuple[object, object], why: str
) -> None:
    with pytest.raises(QueryError, match=f"{attribute.name}: .*{why}"):
        attribute.span(*bounds)
    domain = Domain([attribute])
    if attribute.kind == "ordinal":
        with pytest.raises(QueryError, match=why):
            Workload.where(domain, {attribute.name: bounds})
    with pytest.raises(QueryError, match="empty"):
        Workload.where(domain, {attribute.name: []})


@pytest.mark.parametrize("depth", [65, 330, 900, 100_000])
def test_groups_lie_in_each_other_so_deep_that_files_can_say_it(depth: int) -> None:
    def nested(depth: int) -> Any:
        tree: Any = ["a", "b"]
        for level in range(depth):
            tree = {f"g{level}": tree, f"h{level}": [f"c{level}"]} if level % 2 else [{f"g{level}": tree}]
        return tree

    with pytest.raises(DomainError, match="64 deep at most"):
        Nominal("place", nested(depth))
    deep = Domain([Nominal("place", nested(64))])
    assert Domain.from_json(json.loads(json.dumps(deep.to_json()))) == deep
    assert Domain.from_toml(deep.to_toml()) == deep


def test_hierarchy_arrays() -> None:
    tree = Nominal("p", PLACES).hierarchy
    assert tree.names == ("p", "north", "south", "a", "b", "coast", "hills", "c", "d", "e")
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2, 5, 6, 6]
    assert tree.start.tolist() == [0, 0, 2, 0, 1, 2, 3, 2, 3, 4]
    assert tree.stop.tolist() == [5, 2, 5, 1, 2, 3, 5, 3, 4, 5]
    assert tree.levels == 4
    assert tree.fanout.tolist() == [2, 2, 2, 0, 0, 1, 2, 0, 0, 0]
    assert tree.leaves.tolist() == [3, 4, 7, 8, 9]
    for node in range(tree.size):
        below = np.arange(tree.children[node], tree.children[node + 1])
        assert np.array_equal(below, np.flatnonzero(tree.parent == node))
    flat = Nominal("s", ["F", "M"], other=True).hierarchy
    assert (flat.levels, flat.size, flat.names[-1]) == (2, 4, "other")
    assert flat.parent.tolist() == [-1, 0, 0, 0]


def test_other_is_a_child_of_the_root_and_last() -> None:
    attribute = Nominal("p", PLACES, other=True)
    tree = attribute.hierarchy
    place = tree.names.index("other")
    assert tree.parent[place] == 0
    assert (tree.start[place], tree.stop[place]) == (5, 6)
    assert attribute.cells(["zz", None, "a"]).tolist() == [5, 5, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ordinal("", range(3)),
        lambda: Ordinal("a"),
        lambda: Ordinal("a", range(3), edges=[0, 1]),
        lambda: Ordinal("a", range(0)),
        lambda: Ordinal("a", range(5, 0, -1)),
        lambda: Ordinal("a", range(2**64)),
        lambda: Ordinal("a", [1, 2]),  # type: ignore[list-item]
        lambda: Ordinal("a", ["x", "x"]),
        lambda: Ordinal("a", []),
        lambda: Ordinal("a", "abc"),
        lambda: Ordinal("a", ["other", "x"], other=True),
        lambda: Ordinal("a", edges=[0]),
        lambda: Ordinal("a", edges=[0, 2, 1]),
        lambda: Ordinal("a", edges=[0, 1, 1]),
        lambda: Ordinal("a", edges=[0, math.nan]),
        lambda: Ordinal("a", edges=[0, math.inf]),
        lambda: Ordinal("a", edges=["0", "1"]),  # type: ignore[list-item]
        lambda: Ordinal("a", dates=("2024-01-01", "2024-01-01", "1d")),
        lambda: Ordinal("a", dates=("2024-01-01", "2025-01-01", "0d")),
        lambda: Ordinal("a", dates=("2024-01-01", "2025-01-01", "1h")),
        lambda: Ordinal("a", dates=("2024-01-31", "2025-01-01", "1mo")),
        lambda: Ordinal("a", dates=("tomorrow", "2025-01-01", "1d")),
        lambda: Ordinal("a", dates=("2024-01-01",)),  # type: ignore[arg-type]
        lambda: Nominal("a", []),
        lambda: Nominal("a", {"g": []}),
        lambda: Nominal("a", ["x", "x"]),
        lambda: Nominal("a", ["x", 1]),
        lambda: Nominal("a", [1.5]),
        lambda: Nominal("a", "abc"),
        lambda: Nominal("a", {"g": ["x"], "h": ["x"]}),
        lambda: Nominal("a", {"g": {"k": ["x"]}, "h": {"k": ["y"]}}),
        lambda: Nominal("a", ["other"], other=True),
        lambda: Domain([]),
        lambda: Domain([Ordinal("a", range(2)), Nominal("a", ["x"])]),
        lambda: Domain(["a"]),  # type: ignore[list-item]
    ],
)
def test_nonsense_is_refused(make: object) -> None:
    with pytest.raises(DomainError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("range = [100, 0]", "its end must be above its start"),
        ("categories = []", "there are no categories; list at least one"),
        ('categories = ["a", "other"]\nother = true', "what counts everything else is called other"),
        (
            'range = [0, 9]\nworkload = "ranges"',
            "workload does not belong to an attribute; write it before the first",
        ),
        ('range = [0, 9]\nunit = "row"', "unit does not belong to an attribute; write it before the first"),
    ],
)
def test_a_mistake_in_a_schema_says_what_to_do(text: str, told: str) -> None:
    kind = "nominal" if "categories" in text else "ordinal"
    with pytest.raises(DomainError, match=f"^x: .*{told}"):
        Domain.from_toml(f'[[attribute]]\nname = "x"\nkind = "{kind}"\n{text}\n')


def test_a_schema_may_begin_with_a_byte_order_mark(tmp_path) -> None:
    place = tmp_path / "schema.toml"
    place.write_bytes(b"\xef\xbb\xbf" + everything().to_toml().encode())
    assert Domain.from_toml(place) == everything()
    place.write_bytes("# caf\xe9".encode("latin-1"))
    with pytest.raises(DomainError, match="save it as UTF-8"):
        Domain.from_toml(place)


def everything() -> Domain:
    return Domain(
        [
            Ordinal("age", range(100)),
            Ordinal("step", range(5, 100, 7), other=True),
            Ordinal("income", edges=[0, 10_000, 25_000.5, 1e6]),
            Ordinal("weight", edges=range(0, 1001, 10)),
            Ordinal("grade", ["low", "middle", "high"]),
            Ordinal("day", dates=("2024-01-01", "2025-01-01", "1w"), other=True),
            Nominal("sex", ["F", "M"]),
            Nominal("code", [3, 1, 2], other=True),
            Nominal("flag", [True, False]),
            Nominal("place", PLACES),
            Nominal("mixed", ["x", {"g": ["y", {"h": ["z"]}]}, "w"]),
        ]
    )


def test_round_trips() -> None:
    domain = everything()
    assert Domain.from_json(json.loads(json.dumps(domain.to_json(), sort_keys=True))) == domain
    assert Domain.from_toml(domain.to_toml()) == domain
    copy = pickle.loads(pickle.dumps(domain))  # noqa: S301 -- our own bytes
    assert copy == domain
    assert hash(copy) == hash(domain)
    assert repr(copy) == repr(domain)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5, unique=True),
    st.text("a b\"'\\\n", min_size=1),
)
def test_any_text_survives_a_schema_file(categories: list[str], name: str) -> None:
    domain = Domain([Nominal("x" + name, {"g" + name: categories}), Ordinal("y", categories)])
    assert Domain.from_toml(domain.to_toml()) == domain


def test_toml_as_a_person_writes_it(tmp_path: object) -> None:
    text = """
    # who answered
    [[attribute]]
    name = "age"
    kind = "ordinal"
    range = [0, 100]

    [[attribute]]
    name = "day"
    kind = "ordinal"
    dates = [2024-01-01, 2025-01-01, "1mo"]

    [[attribute]]
    name = "weight"
    kind = "ordinal"
    edges = {from = 0, to = 200, width = 5}
    other = true

    [[attribute]]
    name = "place"
    kind = "nominal"
    [attribute.categories]
    north = ["a", "b"]
    south = {coast = ["c"], hills = ["d", "e"]}
    """
    domain = Domain.from_toml(text)
    assert domain.shape == (100, 12, 41, 5)
    assert domain.attribute("place") == Nominal("place", PLACES)
    path = tmp_path / "schema.toml"  # type: ignore[operator]
    path.write_text(text)
    assert Domain.from_toml(path) == Domain.from_toml(str(path)) == domain


@pytest.mark.parametrize(
    "text",
    [
        "attribute = 3",
        "[[attribute]]\nkind = 'ordinal'",
        "[[attribute]]\nname = 'a'\nkind = 'ordinal'",
        "[[attribute]]\nname = 'a'\nkind = 'ordinal'\nrange = [0, 10]\nedges = [0, 1]",
        "[[attribute]]\nname = 'a'\nkind = 'sortable'\nrange = [0, 10]",
        "[[attribute]]\nname = 'a'\nkind = 'nominal'\nrange = [0, 10]",
        "[[attribute]]\nname = 'a'\nkind = 'ordinal'\nrange = [0, 10]\nothers = true",
        "[[attribute]]\nname = 'a'\nkind = 'ordinal'\nrange = [0.5, 10]",
        "[[attribute]]\nname = 'a'\nkind = 'ordinal'\nedges = {from = 0, to = 10, width = 3}",
        "[[attribute]]\nname = 'a'\nkind = 'ordinal'\nrange = [0, 10]\nother = 'yes'",
        "[[attribute]\n",
        "no-such-file.toml",
    ],
)
def test_bad_schemas(text: str) -> None:
    with pytest.raises(DomainError):
        Domain.from_toml(text)


def test_projection_and_axes() -> None:
    domain = everything()
    assert domain.axis("sex") == 6
    assert domain.project(["sex", "age"]).names == ("sex", "age")
    assert domain.project(["sex", "age"]).shape == (2, 100)
    assert domain.size == math.prod(domain.shape)
    with pytest.raises(DomainError, match="sex"):
        domain.axis("gender")


numbers = st.one_of(
    st.integers(-50, 150), st.floats(allow_nan=True, allow_infinity=True), st.floats(-20, 120)
)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(numbers, min_size=1, max_size=20), st.integers(-10, 10), st.integers(1, 7), st.integers(1, 30)
)
def test_cells_agree_with_index(values: list[float], start: int, step: int, size: int) -> None:
    scales = [
        Ordinal("r", range(start, start + size * step, step)),
        Ordinal("e", edges=range(start, start + size * step + 1, step)),
        Ordinal("u", edges=sorted({start, start + 0.5, start + size * 1.25})),
    ]
    for attribute in scales:
        expected = []
        for value in values:
            try:
                expected.append(attribute.index(value))
            except QueryError:
                expected.append(-1)
        assert attribute.cells(values).tolist() == expected
        assert attribute.cells(np.array(values, dtype=object)).tolist() == expected


@settings(deadline=None, max_examples=100)
@given(
    st.dates(dt.date(2019, 1, 1), dt.date(2027, 1, 1)),
    st.sampled_from(["1d", "3d", "1w", "2w", "1mo", "5mo", "1y"]),
)
def test_every_day_lies_in_its_cell(day: dt.date, step: str) -> None:
    attribute = Ordinal("d", dates=("2020-02-15", "2026-01-03", step))
    cell = int(attribute.cells(np.array([day], dtype="datetime64[D]"))[0])
    inside = dt.date(2020, 2, 15) <= day < dt.date(2026, 1, 3)
    assert (cell >= 0) == inside
    if inside:
        assert attribute.index(day) == cell
        assert isinstance(attribute.scale, Dates)
        assert attribute.scale.begin(cell) <= day < attribute.scale.begin(cell + 1)


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["above", "below"])
def test_whole_numbers_too_long_for_a_float_are_only_out_of_the_domain(value):
    age = Ordinal("age", range(8))
    assert age.span(-(10**400), 10**400) == (0, 8)
    for ask in (lambda: age.index(value), lambda: age.span(value, value)):
        with pytest.raises(QueryError):
            ask()


def test_whole_floats_are_the_integers_that_a_missing_value_made_them_of() -> None:
    children = Nominal("children", [0, 1, 5])
    assert children.cells(np.array([0.0, 1.0, 5.0, np.nan, 1.5, np.inf])).tolist() == [0, 1, 2, -1, -1, -1]
    assert children.cells([True, "1", None]).tolist() == [-1, -1, -1]
    assert Nominal("asked", [False, True]).cells([1.0, True]).tolist() == [-1, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ordinal("\ud800", range(3)),
        lambda: Nominal("x\udfff", ["a"]),
        lambda: Nominal("x", ["a", "\ud800"]),
        lambda: Nominal("x", {"\ud800": ["a"]}),
        lambda: Ordinal("x", ["low", "\ud800"]),
        lambda: Domain.from_json(
            {"attributes": [{"name": "x", "kind": "nominal", "categories": ["\ud800"]}]}
        ),
    ],
)
def test_half_a_character_is_refused(make) -> None:
    """Such a release could be paid for and not saved."""
    with pytest.raises(DomainError):
        make()
    with pytest.raises(InputError, match="name of a column"):
        Measure("\ud800", 0, 5)


def test_names_of_many_attributes_are_compared_each_with_few():
    compared = []

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    attributes = [Nominal(Name(f"a{i}"), ["x", "y"]) for i in range(300)]
    compared.clear()
    assert Domain(attributes).size == 2**300
    assert len(compared) < 10 * 300
