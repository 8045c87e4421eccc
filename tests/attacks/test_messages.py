"""What is said besides the numbers: errors, causes, representations, files, progress. None of it may tell a count."""

import gc
import logging
import pickle
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dphist
from dphist.errors import DphistError
from dphist.mechanisms.options import parse
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.sources import count
from dphist.testing.gates import as_histogram
from dphist_bench.audit.campaign import claims

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(4))])
SECRET = 987_654_321


def whole_story(error):
    """Everything an error drags along: its words, and those of what caused it."""
    seen, words = [], []
    while error is not None and error not in seen:
        seen.append(error)
        words.append(f"{type(error).__name__} {error} {error.args} {getattr(error, '__notes__', '')}")
        error = error.__cause__ or error.__context__
    return "\n".join(words)


def story_of(call):
    try:
        call()
    except DphistError as error:
        return whole_story(error)
    return ""


@pytest.mark.parametrize(
    "text",
    [
        f"x\n1\n{SECRET}zebra\n2\n",
        f"x,y\n1,2\n{SECRET}\n",
        f'x\n"{SECRET}\n',
        f"x\n1\n2,3,{SECRET},4\n",
        "x\n\xff\xfe" + str(SECRET),
    ],
)
def test_errors_of_engines_do_not_quote_records(text, tmp_path):
    for name in ("d.csv", "d.parquet", "d.json", "d.jsonl"):
        path = tmp_path / name
        path.write_text(text, encoding="latin-1")
        told = story_of(lambda: count(str(path), DOMAIN))  # noqa: B023 -- called at once
        assert str(SECRET) not in told
        assert "zebra" not in told


def test_errors_of_frames_do_not_quote_records():
    # Read value by value: what is no number has no cell, and nothing is said of it.
    assert count(pd.DataFrame({"x": [1, f"{SECRET} zebra", object(), 2.5]}), DOMAIN).counts.sum() == 1
    for column in ([complex(SECRET, 1)], pd.to_datetime(["2024-01-01"]), pd.Categorical(["zebra"])):
        told = story_of(lambda: count(pd.DataFrame({"x": column}), DOMAIN))  # noqa: B023 -- called at once
        assert str(SECRET) not in told
        assert "zebra" not in told


def test_errors_of_histograms_do_not_quote_counts():
    for counts in (
        [-SECRET, 1, 2, 3],
        [SECRET + 0.5, 1, 2, 3],
        [SECRET, 2],
        np.array([2**63 + SECRET] * 4, dtype=np.uint64),
    ):
        with pytest.raises(DphistError) as caught:
            dphist.Histogram(DOMAIN, counts)
        assert str(SECRET) not in whole_story(caught.value)


def test_nothing_that_prints_shows_a_count():
    histogram = dphist.Histogram(DOMAIN, np.array([SECRET, SECRET, SECRET, SECRET]))
    right, transcript = open_gate(histogram, 1, Unit())
    for thing in (histogram, right, transcript, right._layout):
        assert str(SECRET) not in repr(thing) + str(thing)
    assert not hasattr(histogram, "_repr_html_")


def test_a_release_says_the_same_of_neighbours():
    said = []
    for counts in ([0, 0, 0, 0], [1, 0, 0, 0]):
        release = dphist.publish(dphist.Histogram(DOMAIN, np.array(counts)), epsilon=1)
        said.append(
            (repr(release), repr(release.transcript), release.note, [e.path for e in release.transcript])
        )
    assert said[0] == said[1]


@pytest.mark.parametrize("text", [text for text in claims() if not text.startswith("mwem")])
def test_nothing_in_a_release_leads_back_to_the_counts(text):
    """Follow every reference from a release: the secret array, or one that shares its memory, must not be found."""
    counts = np.array([SECRET, 5, 0, 3, 2, 2, 9, 1])
    histogram = as_histogram(counts)
    release = dphist.publish(histogram, epsilon=1, mechanism=parse(text))
    secret = histogram.counts
    del histogram, counts
    todo: list[Any] = [release]
    seen: set[int] = set()
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(
            thing, types.ModuleType | type | types.FunctionType | types.BuiltinFunctionType
        ):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            assert not np.shares_memory(thing, secret)
        todo.extend(gc.get_referents(thing))
        if isinstance(thing, np.ndarray) and thing.base is not None:
            todo.append(thing.base)
    assert len(seen) > 20


def test_a_pickled_release_holds_nothing_secret():
    domain = dphist.Domain([dphist.Ordinal("x", range(3000))])
    counts = np.full(3000, SECRET)
    release = dphist.publish(dphist.Histogram(domain, counts), epsilon="1e-6", mechanism="laplace")
    raw = pickle.dumps(release)
    assert int(np.frombuffer(raw[: len(raw) // 8 * 8], dtype=np.int64).tolist().count(SECRET)) < 3
    again = pickle.loads(raw)  # noqa: S301 -- our own bytes
    assert np.array_equal(again.counts, release.counts)
    again.verify()


def test_a_right_cannot_be_pickled_or_copied():
    import copy

    right, _ = open_gate(dphist.Histogram(DOMAIN, np.arange(4)), 1, Unit())
    for steal in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(DphistError):
            steal(right)


def test_publishing_logs_and_prints_nothing(capfd, caplog):
    with caplog.at_level(logging.DEBUG):
        dphist.publish(dphist.Histogram(DOMAIN, np.array([SECRET, 0, 0, 0])), epsilon=1)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert str(SECRET) not in caplog.text


def test_the_file_depends_on_released_values_only(tmp_path):
    """Two data sets, one released table: byte for byte the same file (were the noise to make up the difference)."""
    from dataclasses import replace

    one = dphist.publish(dphist.Histogram(DOMAIN, np.array([7, 0, 0, 0])), epsilon=1)
    other = dphist.publish(dphist.Histogram(DOMAIN, np.array([0, 0, 0, 8])), epsilon=1)
    same = replace(other, cells=one.cells, transcript=one.transcript)
    one.save(tmp_path / "one.parquet")
    same.save(tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()


def test_output_keys_are_the_domain_whatever_the_data(tmp_path):
    import pyarrow.parquet as pq

    domain = dphist.Domain([dphist.Nominal("place", ["a", "b", "c"]), dphist.Ordinal("x", range(3))])
    keys = []
    for frame in (
        pd.DataFrame({"place": ["a"], "x": [1]}),
        pd.DataFrame({"place": ["a", "zebra"], "x": [1, 99]}),
        pd.DataFrame({"place": pd.Series([], dtype=str), "x": pd.Series([], dtype="int64")}),
    ):
        path = tmp_path / "r.parquet"
        dphist.publish(frame, domain, 1, allow_dropped=1).save(path)
        table = pq.read_table(path)
        keys.append(
            (table.column("place").to_pylist(), table.column("x").to_pylist(), str(table.schema.field("x")))
        )
    assert keys[0] == keys[1] == keys[2]
    assert len(keys[0][0]) == 9
