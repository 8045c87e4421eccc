"""The parts of a release in the JSON of a file's footer, written and read: promise, mechanism, questions, answers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.model.budget import Budget
from dphist.model.exact import fraction
from dphist.model.transcript import Entry
from dphist.model.unit import Unit
from dphist.release.guarantee import Guarantee, Receipt
from dphist.release.packed import unpack

FORMAT = 3
"""Which way of writing a release down; a file of another is not read."""
KEY = b"dphist"
"""Where in a file's metadata the description stands."""


def write_entry(entry: Entry, budget: Budget) -> dict[str, Any]:
    """One question, and what its answer looks like; where the answer stands is for the caller to say."""
    return {
        "path": entry.path,
        "verb": entry.verb,
        "question": entry.question,
        budget.currency: str(entry.cost),
        "dtype": str(entry.answer.dtype),
        "shape": list(entry.answer.shape),
    }


def read_entry(described: dict[str, Any], currency: str, columns: Mapping[str, NDArray[Any]]) -> Entry:
    """Read one question and its answer; the file may come from anybody, so nothing in it is taken on trust."""
    path, verb, question = described["path"], described["verb"], described["question"]
    if not (
        isinstance(path, str) and isinstance(verb, str) and isinstance(question, dict) and "ask" in question
    ):
        raise ReleaseError("a question of the transcript cannot be read")
    dtype, shape = np.dtype(str(described["dtype"])), tuple(described["shape"])
    if dtype.kind not in "iuf" or not all(type(side) is int and side >= 0 for side in shape):
        raise ReleaseError("an answer of the transcript has an unknown type or shape")
    if "column" in described:
        answer = columns[described["column"]].astype(dtype, copy=False)
    else:
        answer = np.frombuffer(unpack(described["data"], prod(shape) * dtype.itemsize), dtype=dtype)
    answer = answer.reshape(shape)
    answer.setflags(write=False)
    return Entry(path, verb, question, fraction(described[currency]), answer)


def write_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """What was promised, and for whom."""
    told: dict[str, Any] = guarantee.budget.to_json() | {"unit": guarantee.unit.to_json()}
    if guarantee.delta:
        told["discovered"] = {"delta": str(guarantee.delta), "threshold": guarantee.threshold}
    return told


def read_guarantee(told: dict[str, Any]) -> Guarantee:
    """What `write_guarantee` wrote."""
    budget, unit = Budget.from_json(told), Unit.from_json(told["unit"])
    found = told.get("discovered")
    if found is None:
        return Guarantee(budget, unit)
    delta, level = fraction(found["delta"]), found["threshold"]
    if not 0 < delta < 1 or type(level) is not int or level < 1:
        raise ValueError("not a chance and a threshold")
    return Guarantee(budget, unit, delta, level)


def read_receipt(told: Any) -> Receipt | None:
    """The budget that paid, the number of the reservation and the hash of its line, if somebody did."""
    if told is None:
        return None
    dataset, payment, line = told
    return Receipt(str(dataset), int(payment), str(line))
