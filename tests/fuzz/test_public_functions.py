# ruff: noqa: PT017 -- whether a call raises, and what, is the outcome that is looked at
"""Every public name, given arguments of every kind: an answer, or an error of ours that says what was wrong.

No crash, no hang, no error of Python's own. And whatever `publish` refuses, it has not spent anything.
"""

import datetime as dt
import inspect
import itertools
import signal
import threading
import zlib
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphist
import surface
from dphist.errors import DphistError
from dphist.mechanisms import CLASSES, Laplace

DOMAIN = dphist.Domain([dphist.Ordinal("age", range(4)), dphist.Nominal("sex", ["F", "M"])])
HISTOGRAM = dphist.Histogram(DOMAIN, np.ones((4, 2), dtype=np.int64))
RELEASE = dphist.publish(HISTOGRAM, epsilon=1, mechanism="laplace")
WORKLOAD = dphist.Workload.cells(DOMAIN)
# Calls of each function or method, of all that there could be.
TRIED = 8
OWNERS: dict[str, Any] = {
    "Domain": lambda: DOMAIN,
    "Ordinal": lambda: DOMAIN.attributes[0],
    "Nominal": lambda: DOMAIN.attributes[1],
    "Histogram": lambda: HISTOGRAM,
    "Unit": dphist.Unit,
    "Workload": lambda: WORKLOAD,
    "Measure": lambda: dphist.Measure("income", 0, 100),
    "Release": lambda: RELEASE,
    "Cube": lambda: dphist.uses.Cube(RELEASE),
    "ReleaseID3": lambda: dphist.uses.ReleaseID3("sex").fit(RELEASE),
    "Blocking": lambda: dphist.uses.Blocking.from_releases(RELEASE, RELEASE),
    "Ledger": lambda: opened(Path("budget.db")),
}

JUNK = [
    None, True, False, 0, -1, 1, 2, 2**70, -(2**70), 0.5, float("nan"), float("inf"), -0.0, "", "x", "age", "\x00",
    "\ud800", "9" * 5000, "1/0", b"x", [], [1], [[1, 2], [3]], ["a", "a"], (), ("a",), (3, 1), {}, {"a": 1}, {1: 2},
    {"age": (0, 9)}, {"age": object()}, object(), Fraction(1, 2), Fraction(-1), Fraction(0), Fraction(10**400, 3),
    Decimal("NaN"), Decimal("0.1"), range(3), range(0), set(), np.array([1, 2]), np.array([[0, 1]]), np.array(["a"]),
    np.array([np.nan]), np.array(5), np.int64(3), np.float32(0.1), np.array([1], dtype=object), len, int, DOMAIN,
    HISTOGRAM, RELEASE, WORKLOAD, dt.date(2020, 1, 1), 1j, "laplace", Laplace(), Laplace, dphist.Unit(),
    ...,
]  # fmt: skip

GOOD = {
    "domain": DOMAIN, "counts": np.ones((4, 2), dtype=np.int64), "source": HISTOGRAM, "workload": WORKLOAD,
    "epsilon": 1, "name": "a", "values": range(3), "attributes": [dphist.Ordinal("a", range(2))],
    "low": [[0, 0]], "high": [[1, 1]], "purpose": "p", "total": 10, "categories": ["a"], "metric": "absolute",
    "mechanism": Laplace(),
    "dataset": "people",
}  # fmt: skip


def opened(path):
    """A ledger with plenty in it."""
    book = dphist.Ledger.open(path)
    if "people" not in book.datasets():
        book.create("people", 10**6)
    return book


class TooSlow(BaseException):
    """Not an Exception, so that nothing on the way swallows it."""


@contextmanager
def soon(seconds=60):
    """Processor time, so that a busy machine does not look like a hang; compiling takes some of it once."""

    def stop(*_):
        raise TooSlow

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def calls(function, owner=None):
    """Arguments for a function: all as they should be, junk for each in turn, junk for all."""
    takes = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    needed = {p.name: GOOD.get(p.name, "x") for p in takes if p.default is p.empty}
    if owner is not None:
        needed[takes.pop(0).name] = OWNERS[owner.__name__]()
    yield needed
    for parameter in takes:
        for value in JUNK:
            yield {**needed, parameter.name: value}
    for turn in range(20):
        yield needed | {p.name: JUNK[(turn * 7 + place * 13) % len(JUNK)] for place, p in enumerate(takes)}


def call(function, arguments):
    """Call with names, or by position where names are not taken."""
    kinds = inspect.signature(function).parameters
    first = [arguments[name] for name in arguments if kinds[name].kind is kinds[name].POSITIONAL_ONLY]
    rest = {
        name: value
        for name, value in arguments.items()
        if kinds[name].kind is not kinds[name].POSITIONAL_ONLY
    }
    with soon():
        answer = function(*first, **rest)
        if inspect.isgenerator(answer):
            list(itertools.islice(answer, 5))
        return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of its own: what calls write lands there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fuzz"))
        yield


@pytest.mark.parametrize("target", sorted(surface.targets()))
def test_anything_is_answered_or_refused_by_name(target, folder):
    function, owner = surface.targets()[target]
    tried = list(calls(function, owner))
    # Some of many, the same every time and others for each.
    step = max(1, len(tried) // (60 if target.startswith("Ledger") else TRIED))
    for arguments in tried[zlib.crc32(target.encode()) % step :: step]:
        try:
            call(function, arguments)
        except DphistError as error:
            assert str(error).strip(), arguments


def test_what_is_left_out_is_said_and_still_there():
    names = surface.names()
    for name in (*surface.LEFT_OUT, *surface.FILLED, *surface.INNER):
        owner, _, method = name.rpartition(".")
        assert name in names or method in dict(surface.methods(names[owner])), name


@pytest.fixture
def book(tmp_path):
    with opened(tmp_path / "budget.db") as made:
        yield made


def test_the_front_door_raises_our_errors_and_spends_nothing_on_them(book):
    for arguments in calls(dphist.publish):
        if "ledger" not in arguments and "dataset" not in arguments:
            arguments |= {"ledger": book, "dataset": "people"}
        before = book.spent("people")
        try:
            call(dphist.publish, arguments)
        except DphistError as error:
            assert str(error)
            assert book.spent("people") == before, arguments


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        (name, getattr(dphist.mechanisms, name))
        for name in CLASSES
        if hasattr(getattr(dphist.mechanisms, name), "estimate") and name not in ("MWEM", "SPA")
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mechanism_of_odd_options_is_refused_before_it_is_paid(name, mechanism, book):
    # Some of many, the same every time and others for each.
    for arguments in list(calls(mechanism))[zlib.crc32(name.encode()) % 3 :: 3]:
        try:
            built = call(mechanism, arguments)
        except (DphistError, TypeError, ValueError, ArithmeticError, Warning):
            continue
        before = book.spent("people")
        try:
            with soon():
                dphist.publish(HISTOGRAM, epsilon=1, mechanism=built, ledger=book, dataset="people")
        except DphistError as error:
            assert str(error)
            assert book.spent("people") == before, arguments


def test_running_sums_of_another_shape_are_not_read_past_their_end():
    # This ended the process once.
    for table in (np.array(5), np.zeros((5, 2)), np.zeros((5, 3), dtype=object), np.zeros((3, 5)), [[1]]):
        with pytest.raises(DphistError, match="table"):
            WORKLOAD.answer_from(table)  # type: ignore[arg-type]
