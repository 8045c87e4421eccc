"""What an error reporter that prints local variables would see: nothing that is private."""

import gc
import importlib
import json
import os
import sys
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dphist
from dphist.mechanisms import Laplace
from dphist.private.noise import Noise
from dphist.publishing.suggest import suggest
from dphist.publishing.uncounted import publish_uncounted
from dphist.sources import count, draft_schema
from dphist.sources.coded import coded
from dphist.sources.count import occupied_cells

SECRET = 987_654_321
WORD = "zebra@example.org"
DOMAIN = dphist.Domain([dphist.Ordinal("x", range(4)), dphist.Nominal("y", ["a", WORD])])


def tells(value):
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf" and bool(np.any(value == SECRET))
    if isinstance(value, bool | int | float | np.number):
        return value == SECRET
    if isinstance(value, bytes | bytearray):
        return WORD.encode() in value or str(SECRET).encode() in value
    return isinstance(value, str) and (str(SECRET) in value or (WORD in value and "3,4" in value))


def all_of(error):
    seen, todo = [], [error]
    while todo:
        one = todo.pop()
        if one is None or one in seen:
            continue
        seen.append(one)
        todo += [one.__cause__, one.__context__]
    return seen


def inspected(error):
    """Follow everything that the chain of exceptions and its frames hold, our own frames of this file left out."""
    todo, seen, frames = [], set(), 0  # type: ignore[var-annotated]
    for one in all_of(error):
        todo += [one.args, vars(one), getattr(one, "obj", None), getattr(one, "object", None)]
        trace = one.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_code.co_filename != __file__:
                frames += 1
                todo.append(dict(frame.f_locals))
            trace = trace.tb_next
    while todo:
        value = todo.pop()
        if id(value) in seen or isinstance(
            value,
            types.ModuleType | type | types.FunctionType | types.CodeType | types.FrameType | BaseException,
        ):
            continue
        if isinstance(value, types.TracebackType) or len(seen) > 200_000:
            continue
        seen.add(id(value))
        assert not tells(value), f"an error carries a private value, a {type(value).__name__}"
        todo.extend(gc.get_referents(value))
    return frames


class Broken:
    """A mechanism that asks and then fails in a way nobody foresaw."""

    def __init__(self, failure, ask=True):
        self.failure, self.ask = failure, ask

    def estimate(self, data):
        halves = data.split("1/2", "1/2")
        if self.ask:
            Laplace().estimate(halves[0])
        raise self.failure


def histogram():
    return dphist.Histogram(DOMAIN, np.full((4, 2), SECRET))


def written(path, text):
    path.write_text(text)
    return str(path)


def failed(call):
    with pytest.raises(BaseException) as caught:  # noqa: PT011 -- whatever it is
        call()
    error = caught.value
    assert not isinstance(error, AssertionError)
    return error


FAILURES = [
    ValueError("no"), KeyError(SECRET), KeyboardInterrupt(), MemoryError(), RuntimeError("no"), StopIteration(SECRET),
    AttributeError("no", obj=np.array([SECRET])), ExceptionGroup("many", [ValueError(SECRET)]), ZeroDivisionError(),
    UnicodeDecodeError("utf-8", WORD.encode(), 0, 1, "no"), dphist.errors.MechanismError("no"), OSError(28, "full"),
]  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("ask", [False, True])
def test_a_mechanism_that_fails_midway_carries_no_count(failure, ask):
    failure.__notes__ = [str(SECRET)]
    error = failed(lambda: dphist.publish(histogram(), epsilon=1, mechanism=Broken(failure, ask)))
    assert inspected(error) <= 1


def test_a_ledger_that_fails_carries_no_count(tmp_path, monkeypatch):
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        for broken in (OSError(28, "full"), dphist.errors.LedgerError("no"), KeyboardInterrupt()):

            def reserve(*_, broken=broken, **__):
                raise broken

            monkeypatch.setattr(book, "reserve", reserve)
            inspected(failed(lambda: dphist.publish(histogram(), epsilon=1, ledger=book, dataset="people")))
        monkeypatch.undo()
        inspected(failed(lambda: dphist.publish(histogram(), epsilon=2, ledger=book, dataset="people")))


def test_parts_that_fail_carry_no_count():
    for workers in (1, 2):
        error = failed(
            lambda: dphist.publish(
                histogram(),
                epsilon=1,
                partition_by="x",
                mechanism=Broken(ValueError("no")),
                workers=workers,  # noqa: B023
            )
        )
        assert inspected(error) <= 1


def test_sources_that_fail_carry_no_record(tmp_path):
    row = f"3,4,{SECRET},{WORD}"
    quoted = f'x,y\n1,{WORD}\n"{row}\n'
    objects = json.dumps({"x": SECRET, "y": WORD}) + "\n"
    sources = [
        written(tmp_path / "a.csv", quoted),
        written(tmp_path / "b.csv", f"x,y\n{row}\r{row}\n"),
        written(tmp_path / "c.csv", f"{row}\n{row}\n"),
        written(tmp_path / "d.json", objects + '{"x":'),
        written(tmp_path / "e.json", json.dumps({"x": SECRET, "z": WORD})),
        written(tmp_path / "f.parquet", row),
        written(tmp_path / "g.csv.gz", row),
        pd.DataFrame({"x": np.array([SECRET] * 3, np.longdouble), "y": [row] * 3}),
        pd.DataFrame({"x": [SECRET], "z": [row]}),
        pa.table({"x": [row], "y": [row]}),
        pa.table({"z": [SECRET]}),
        [SECRET, row],
    ]
    for source in sources:
        for door in (
            lambda s: count(s, DOMAIN),
            lambda s: dphist.publish(s, DOMAIN, 1),
            lambda s: dphist.publish(s, DOMAIN, 1, "sparselaplace"),
            lambda s: occupied_cells(s, DOMAIN, dphist.Unit(rows=2, id="y")),
        ):
            assert inspected(failed(lambda: door(source))) <= 1  # noqa: B023 -- called at once
    inspected(failed(lambda: draft_schema(sources[2])))


def people():
    size = 12
    return pd.DataFrame(
        {
            "x": [1, 2, 3] * 4,
            "y": ["a"] * size,
            "cost": [SECRET] * size,
            "page": [f"3,4,{WORD}"] * size,
            "user": range(size),
            **{f"q{i}": ["a"] * size for i in range(30)},
        }
    )


WIDE = dphist.Domain(
    [dphist.Ordinal("x", range(4)), *(dphist.Nominal(f"q{i}", ["a", "b"]) for i in range(30))]
)
NEWER_DOORS = {
    "sums": lambda: dphist.publish(
        people(), DOMAIN, 1, "laplace", measures=[dphist.Measure("cost", 0, 2 * SECRET)]
    ),
    "keys": lambda: dphist.publish(
        people(), dphist.Domain([dphist.Nominal("page", discover=True)]), 1, delta="1e-3"
    ),
    "tables": lambda: dphist.publish(people(), WIDE, 1, "residuals", workload="marginals:1"),
    "uncounted": lambda: publish_uncounted(people(), dphist.Domain([dphist.Ordinal("cost", range(3))]), 1),
    "suggest": lambda: suggest(people(), ["cost"], 1, unit="rows=1, id=user"),
    "sparse": lambda: dphist.publish(people(), DOMAIN, 1, "sparselaplace"),
}


@pytest.mark.parametrize("door", NEWER_DOORS)
def test_noise_that_fails_carries_nothing_through_any_door(door, monkeypatch):
    """What fails last has seen most: the exact numbers, in its arguments."""

    def broken(_, values, *__, **___):
        raise RuntimeError("no", values, people())

    for sampler in ("add_laplace", "add_gaussian"):
        monkeypatch.setattr(Noise, sampler, broken)
    error = failed(NEWER_DOORS[door])
    assert "no" in str(error)
    assert inspected(error) <= 1


FAILS_ELSEWHERE = """
import os, sys
from dataclasses import dataclass
from dphist.mechanisms import Laplace

@dataclass(frozen=True)
class FailsElsewhere:
    process: int

    def estimate(self, data):
        if os.getpid() == self.process:
            return Laplace().estimate(data)
        counts = data._counts if hasattr(data, "_counts") else data
        print("counts", SECRET, file=sys.stderr)
        raise ValueError("counts", SECRET, counts)
""".replace("SECRET", str(SECRET))


@pytest.fixture
def fails_elsewhere(tmp_path, monkeypatch):
    """A mechanism that works in this process and fails in every other, with the counts in its words."""
    (tmp_path / "fails_elsewhere.py").write_text(FAILS_ELSEWHERE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    module = importlib.import_module("fails_elsewhere")
    yield module.FailsElsewhere(os.getpid())
    sys.modules.pop("fails_elsewhere", None)


def test_worker_processes_that_fail_carry_and_print_no_count(fails_elsewhere, capfd):
    mechanism = fails_elsewhere
    error = failed(
        lambda: dphist.publish(histogram(), epsilon=1, partition_by="x", mechanism=mechanism, workers=2)
    )
    assert isinstance(error, dphist.errors.EngineError)
    assert inspected(error) <= 1
    assert str(SECRET) not in "".join(capfd.readouterr()) + str(error)


@pytest.mark.postgres
def test_postgres_that_fails_carries_no_record(postgres_address):
    """The server's own words quote a record, as those of a cast or of a trigger do."""
    import ibis
    import psycopg

    with psycopg.connect(f"{postgres_address}/postgres", autocommit=True) as connection:
        connection.execute("DROP VIEW IF EXISTS quoting; DROP FUNCTION IF EXISTS quoting(bigint)")
        connection.execute(
            "CREATE FUNCTION quoting(bigint) RETURNS bigint LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'bad record %', $1; END $$"
        )
        connection.execute(
            f"CREATE VIEW quoting AS SELECT quoting({SECRET}) AS x, 'a'::text AS y, 1 AS cost, 'u'::text AS who"
        )
        table = ibis.postgres.from_connection(connection).table("quoting")
        for door in (
            lambda: count(table, DOMAIN, dphist.Unit(rows=2, id="who")),
            lambda: dphist.publish(table, DOMAIN, 1),
            lambda: dphist.publish(table, DOMAIN, 1, "sparselaplace"),
            lambda: dphist.publish(table, DOMAIN, 1, measures=[dphist.Measure("x", 0, 9)]),
            lambda: dphist.publish(
                table, dphist.Domain([dphist.Nominal("x", discover=True)]), 1, delta="1e-3"
            ),
            lambda: coded(table, DOMAIN).tables([(0,)]),
        ):
            error = failed(door)
            assert isinstance(error, dphist.errors.DphistError)
            assert inspected(error) <= 1
            assert str(SECRET) not in str(error)
        connection.execute("DROP VIEW quoting; DROP FUNCTION quoting(bigint)")


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_spark_that_fails_carries_no_record(spark_session):
    """Executors fail with a record in their words while they count."""
    quoting = f"raise_error('bad record {SECRET}')"
    frame = spark_session.range(3).selectExpr(
        f"CASE WHEN id >= 0 THEN CAST({quoting} AS BIGINT) END AS x", "'a' AS y", "id AS who"
    )
    for door in (
        lambda: dphist.publish(frame, DOMAIN, 1, unit="rows=2, id=who"),
        lambda: coded(frame, DOMAIN).tables([(0,)]),
    ):
        error = failed(door)
        assert isinstance(error, dphist.errors.DphistError)
        assert inspected(error) <= 1
        assert str(SECRET) not in str(error)


def test_frames_can_be_kept_for_debugging(monkeypatch):
    monkeypatch.setenv("DPHIST_TRACEBACK", "1")
    error = failed(lambda: dphist.publish(histogram(), epsilon=1, mechanism=Broken(ValueError("no"))))
    with pytest.raises(AssertionError, match="private value"):
        inspected(error)
