"""What an error reporter that prints local variables would see: nothing that is private."""

import gc
import json
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dphist
from dphist.mechanisms import Laplace
from dphist.sources import count, draft_schema
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
        pd.DataFrame({"x": [complex(SECRET, 1)] * 3, "y": [row] * 3}),
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


def test_frames_can_be_kept_for_debugging(monkeypatch):
    monkeypatch.setenv("DPHIST_TRACEBACK", "1")
    error = failed(lambda: dphist.publish(histogram(), epsilon=1, mechanism=Broken(ValueError("no"))))
    with pytest.raises(AssertionError, match="private value"):
        inspected(error)
