"""What commands that read records share: the schema, who is protected, what will be asked, which ledger pays."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace as change
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist.errors import DomainError, InputError, OutputError
from dphist.model.domain import Domain
from dphist.model.measure import Measure
from dphist.model.schema import Schema
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.release.atomic import atomic

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger


def check_payer(ledger: str | None, dataset: str | None) -> None:
    """Refuse a ledger without a budget in it, or a budget without a ledger."""
    if (ledger is None) != (dataset is None):
        raise InputError("--ledger and --dataset belong together: give both or neither")


def opened(ledger: str | None) -> AbstractContextManager[Ledger | None]:
    """The ledger that pays, if one does; who gives none does not wait for it to be loaded."""
    if ledger is None:
        return nullcontext()
    from dphist.publishing.account import existing

    return existing(ledger)


def read_declared(path: Path) -> Schema:
    """Read a schema file: the domain, and what it says of who is protected and what will be asked."""
    if not path.is_file():
        raise InputError(f"there is no schema {path}; draft one with `dphist schema new`")
    try:
        return Schema.read(path)
    except DomainError as error:
        raise DomainError(f"{path}: {error}") from None


def read_schema(path: Path) -> Domain:
    """Read the domain of a schema file."""
    return read_declared(path).domain


def unit_of(
    declared: Schema,
    rows: int | None,
    replace: bool,
    person: str | None,
    cells: int | None = None,
    per_cell: int | None = None,
) -> Unit:
    """Who is protected: as the schema says, and what the command says instead."""
    if rows is not None and cells is not None:
        raise InputError(
            "--rows and --cells both say how many rows count: give --rows alone, or --cells with --per-cell"
        )
    said = {"rows": rows, "replace": replace or None, "id": person, "cells": cells, "per_cell": per_cell}
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if rows is not None:
        given |= {"cells": None, "per_cell": None}
    elif cells is not None or per_cell is not None:
        given |= {"rows": 1}
    return change(declared.unit or Unit(), **given)


def asked_of(declared: Schema, workload: str | None, marginals: list[str] | None) -> Workload | None:
    """What will be asked: the command's word before the schema's."""
    if workload is not None and marginals:
        raise InputError("--workload and --marginals say the same thing: give one of them")
    if marginals:
        return Workload.parse(declared.domain, "marginals:" + ";".join(marginals))
    return declared.workload if workload is None else Workload.parse(declared.domain, workload)


def added_up(declared: Schema, measures: list[str] | None) -> tuple[Measure, ...]:
    """What is added up: the schema's measures, or those that the command names or defines."""
    if not measures:
        return declared.measures
    known = {measure.name: measure for measure in declared.measures}
    found = []
    for text in measures:
        if ":" not in text and text not in known:
            raise InputError(f"--measure {text}: the schema has no such measure; write {text}:LOW:HIGH")
        found.append(Measure.parse(text) if ":" in text else known[text])
    return tuple(found)


def write_text(text: str, output: Path | None) -> None:
    """Write text to a file that must not exist yet, or to the screen."""
    if output is None:
        sys.stdout.write(text)
        return
    if output.exists():
        raise OutputError(f"{output} exists already; choose another name")
    with atomic(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
