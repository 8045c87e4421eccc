"""The parts of a release in the JSON of a file's footer, written and read: promise, mechanism, questions, answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
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

FORMAT = "1.0"
"""Which way of writing a release down. Of a higher minor number fields may be new, and are passed over; a file of
another major one is not read."""
KEY = b"dphist"
"""Where in a file's metadata the description stands."""
DIGEST = b"digest"
"""Where a fingerprint of all other metadata stands: pages carry checksums, a footer has none of its own."""


def stamped(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Metadata with the SHA-256 of all others: of keys in order, each with its value behind it and a zero behind both.

    It tells damage, not forgery: whoever changes a file on purpose writes another, and `Release.verify` finds that.
    """
    told = (key + b"\0" + metadata[key] + b"\0" for key in sorted(metadata) if key != DIGEST)
    return {**metadata, DIGEST: sha256(b"".join(told)).hexdigest().encode()}


def is_readable(version: Any) -> bool:
    """Whether a file of this format can be read: one of the same major number."""
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", version) if isinstance(version, str) else None
    return found is not None and found[1] == FORMAT.split(".")[0]


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
