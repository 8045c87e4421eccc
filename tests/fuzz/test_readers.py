"""Bytes and texts that nobody should send: readers refuse with a reason, never with a traceback, a crash or a hang."""

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dphist
from dphist.errors import DphistError
from dphist.mechanisms.options import from_json, parse, show
from dphist.model.exact import exact, fraction
from dphist.release.asking import read_question
from dphist.release.held import stamped

QUICK = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
FEWER = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(10)),
        dphist.Ordinal("income", edges=[0, 10.5, 30]),
        dphist.Nominal("sex", ["F", "M"]),
    ]
)


def refuses(call):
    """Whatever goes wrong must be an error we raise on purpose."""
    try:
        return call()
    except DphistError:
        return None


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "r.parquet"
    histogram = dphist.Histogram(DOMAIN, np.arange(40).reshape(DOMAIN.shape))
    dphist.publish(histogram, epsilon=1, mechanism="tree").save(path)
    return path


@QUICK
@given(raw=st.binary(max_size=300))
def test_bytes_that_are_no_release(saved, raw):
    bad = saved.with_name("bytes.parquet")
    bad.write_bytes(b"PAR1" + raw + b"PAR1")
    assert refuses(lambda: dphist.load(bad)) is None


ODD_WORDS = [
    "1e999999999", "1/0", "0/0", "nan", "V8", "O", "M8[s]", "(2,)i4", ">i8", "laplace", "../x", [], {}, [[]], "-1",
]  # fmt: skip
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(ODD_WORDS),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.lists(st.integers(-3, 2**66), max_size=4),
)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@FEWER
@given(data=st.data())
def test_tampered_descriptions(saved, data):
    table = pq.read_table(saved)
    story = json.loads(table.schema.metadata[b"dphist"])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([place for place in places(story) if place]))
        holder = story
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = data.draw(ODD)
    bad = saved.with_name("told.parquet")
    pq.write_table(table.replace_schema_metadata(stamped({b"dphist": json.dumps(story).encode()})), bad)
    release = refuses(lambda: dphist.load(bad))
    if release is not None:
        refuses(release.verify)
        refuses(release.answer)
        repr(release)


ODD_PLACES: dict[str, list[tuple[tuple[str | int, ...], Any]]] = {
    "tree": [
        (("bounds", "low"), None),
        (("bounds", "high"), 0),
        (("bounds", "high"), []),
        (("model", "arrays", 0), None),
        (("model", "arrays", 0), {"column": "nowhere", "dtype": "<f8", "shape": [40]}),
        (("model", "arrays", 0), {"column": [], "dtype": "<f8", "shape": [40]}),
    ],
    "sparselaplace": [(("bounds", "low"), None), (("bounds", "high"), []), (("entry", "path"), {})],
}


@pytest.mark.parametrize(
    ("mechanism", "path", "odd"), [(name, *each) for name, some in ODD_PLACES.items() for each in some]
)
def test_descriptions_that_broke_the_reader_once(mechanism, path, odd, tmp_path):
    histogram = dphist.Histogram(DOMAIN, np.arange(40).reshape(DOMAIN.shape))
    dphist.publish(histogram, epsilon=1, mechanism=mechanism).save(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    story = json.loads(table.schema.metadata[b"dphist"])
    *above, last = path
    holder = story
    for key in above:
        holder = holder[key]
    holder[last] = odd
    told = stamped({b"dphist": json.dumps(story).encode()})
    pq.write_table(table.replace_schema_metadata(told), tmp_path / "told.parquet")
    with pytest.raises(DphistError):
        dphist.load(tmp_path / "told.parquet").verify()


def test_a_description_nested_too_deeply(saved):
    table = pq.read_table(saved)
    bad = saved.with_name("deep.parquet")
    pq.write_table(
        table.replace_schema_metadata({b"dphist": b'{"format": 1, "domain": ' + b"[" * 100_000}), bad
    )
    with pytest.raises(DphistError):
        dphist.load(bad)


WORDS = [
    "age", "sex", "income", "and", "or", "in", "between", "=", "<", "!=", "(", ")", ",", "'F'", '"age"', "1", "-3",
    "1e999", "9" * 5000,
]  # fmt: skip


@QUICK
@given(text=st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)))
def test_questions(text):
    workload = refuses(lambda: read_question(text, DOMAIN))
    assert workload is None or workload.domain == DOMAIN


KEYS = ["name", "kind", "range", "edges", "categories", "dates", "other", "attribute"]


@QUICK
@given(
    text=st.one_of(
        st.text(max_size=80), st.dictionaries(st.sampled_from(KEYS), ODD, max_size=4).map(json.dumps)
    )
)
def test_schemas(text):
    refuses(lambda: dphist.Domain.from_toml(text))
    refuses(lambda: dphist.Domain.from_toml("[[attribute]]\n" + text))


@QUICK
@given(
    described=st.lists(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=5), min_size=1, max_size=2),
)
def test_domains_as_json(described):
    refuses(lambda: dphist.Domain.from_json({"attributes": described}))
    refuses(lambda: dphist.Domain.from_json(described))


NAMES = sorted(dphist.list_mechanisms())


@QUICK
@given(
    text=st.one_of(
        st.text(max_size=40),
        st.builds(
            "{}({}={})".format,
            st.sampled_from(NAMES),
            st.sampled_from(["share", "bins", "rounds", "levels", "fanout", "inner", "x"]),
            st.one_of(st.text(max_size=12), ODD.map(repr)),
        ),
    )
)
def test_mechanisms_as_text(text):
    built = refuses(lambda: parse(text))
    if built is not None:
        assert parse(show(built)) == built


@QUICK
@given(
    described=st.one_of(
        ODD, st.fixed_dictionaries({"name": st.one_of(ODD, st.sampled_from(NAMES)), "options": ODD})
    )
)
def test_mechanisms_as_json(described):
    refuses(lambda: from_json(described))


@QUICK
@given(value=st.one_of(ODD, st.text(max_size=70), st.decimals(), st.fractions()))
def test_numbers(value):
    refuses(lambda: exact(value, "epsilon"))
    refuses(lambda: fraction(value))


SQL = ["select", "*", "from", "release", "1", ";", "(", ")", "'", "sum(estimate)", "copy", "to", "$1"]


@FEWER
@given(
    query=st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from(SQL), max_size=9).map(" ".join),
    )
)
def test_sql(saved, query):
    release = dphist.load(saved)
    refuses(lambda: release.sql(query, rows=5))


@pytest.mark.parametrize(
    "text",
    ["\x00", "", "a = " + "[" * 5000, "a = " + "9" * 5000, "[[attribute]]\nrange = [0, " + "9" * 5000 + "]"],
)
def test_schemas_that_broke_the_reader_once(text):
    with pytest.raises(DphistError):
        dphist.Domain.from_toml(text)
