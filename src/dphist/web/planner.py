"""Choosing ε with open eyes: what each mechanism's answers will be off by, before anything is spent.

Everything here comes from a schema and from made-up data. No record and no release is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as change
from functools import lru_cache
from typing import Any

from dphist.errors import InputError
from dphist.model.budget import Budget
from dphist.model.conversion import rho_of_epsilon
from dphist.model.exact import positive
from dphist.model.schema import Schema
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.currencies import OF_RHO, Quote
from dphist.planning.forecast import MECHANISMS as OF_EITHER
from dphist.planning.forecast import Forecast, plan
from dphist.release.asking import read_question

MECHANISMS = (*OF_EITHER, *OF_RHO)
WORKLOADS = ("cells", "prefixes", "ranges", "marginals")
_EXAMPLE = """\
# What is public about the records; no data are read here.
[[attribute]]
name = "age"
kind = "ordinal"
range = [0, 100]

[[attribute]]
name = "sex"
kind = "nominal"
categories = ["F", "M"]
"""
_DEFAULTS = {
    "schema": _EXAMPLE,
    "epsilon": "1",
    "delta": "1e-9",
    "rho": "",
    "records": "100000",
    "question": "age between 30 and 40",
    "error": "100",
    "rows": "",
    "replace": "",
}


def start(begin: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Give the empty planner: an example to begin with, or what ``begin`` says, and no forecast yet."""
    return {
        "form": {**_DEFAULTS, **(begin or {})},
        "mechanisms": MECHANISMS,
        "workloads": WORKLOADS,
    }


def forecast(form: Mapping[str, str]) -> dict[str, Any]:
    """Forecast one mechanism: its error on every workload and on one question, and the ε that question needs."""
    unknown = set(form) - {*_DEFAULTS, "mechanism", "only"}
    if unknown:
        raise InputError(f"there is no field {min(unknown)[:40]!r}")
    given = {**_DEFAULTS, "replace": "", **form}
    name = given.get("mechanism") or MECHANISMS[0]
    if name not in MECHANISMS:
        raise InputError("the planner does not know this mechanism; `dphist plan` takes any")
    budgets = _budgets(given["epsilon"], given["delta"], given["rho"])
    wanted = _number(given["error"], "the wanted error", 1e-9, 1e12)
    records = int(_number(given["records"], "records", 0, 1e12))
    rows = int(_number(given["rows"], "rows", 1, 1e6)) if given["rows"].strip() else None
    replace = given["replace"] not in ("", "0", "no")
    # A curve over several ε is about one kind of question; the table is about all of them.
    if given.get("only", "") not in ("", "question"):
        raise InputError("only must be question")
    only = bool(given.get("only"))
    return _forecast(name, given["schema"], budgets, records, given["question"], wanted, rows, replace, only)


def _budgets(epsilon: str, delta: str, rho: str) -> tuple[Budget, ...]:
    """Pure ε, (ε, δ) if a δ is said, and ρ: that which pure ε costs by default."""
    pure = positive(epsilon, "epsilon")
    bought = (Budget.of(pure, delta=delta),) if delta.strip() else ()
    return Budget.of(pure), *bought, Budget.of(rho=rho.strip() or rho_of_epsilon(pure))


@lru_cache(maxsize=512)
def _forecast(
    name: str, schema: str, budgets: tuple[Budget, ...], records: int, question: str, wanted: float,
    rows: int | None, replace: bool, only: bool,
) -> dict[str, Any]:  # fmt: skip
    # A text with a line end in it is never taken for the name of a file.
    declared = Schema.read(f"{schema}\n")
    domain = declared.domain
    # A page must answer while somebody waits; the command line takes its time.
    if domain.size > 1 << 22:
        raise InputError(f"{domain.size:,} counts are too many for this page; use `dphist plan`")
    said: dict[str, Any] = {"rows": rows, "replace": replace or None}
    unit = change(
        declared.unit or Unit(), **{name: value for name, value in said.items() if value is not None}
    )
    made: dict[str, Any] = {"mechanism": name, "cells": domain.size, "basis": ""}
    made |= {"errors": {}, "shown": {}, "limits": {}}
    # Where the page has one kind of question to compare by, it is the reader's own, or ranges.
    main = "question" if question.strip() else "ranges"
    own: list[str | Workload] = [read_question(question, domain)] if question.strip() else []
    asked: list[str | Workload] = (own or ["ranges"]) if only else [*WORKLOADS, *own]

    def one(budget: Budget, workload: str | Workload, goal: float | None = None) -> Forecast:
        return plan(
            domain, budget, workload, mechanisms=[name], records=records, error=goal, unit=unit,
            measures=declared.measures,
        )[0]  # fmt: skip

    for workload in asked:
        label = workload if isinstance(workload, str) else "question"
        goal = wanted if not only and label == main else None
        found = one(budgets[0], workload, goal)
        made["limits"][label], made["basis"] = found.limit, found.basis
        made["errors"][label], made["shown"][label] = found.error, found.shown
        if goal is not None:
            made["epsilon_needed"] = found.epsilon_needed
            every = (found, *(one(budget, workload) for budget in budgets[1:]))
            made["currencies"] = [
                {"budget": Quote(budget, None, ()).label, "shown": each.shown, "error": each.error, "limit": each.limit}
                for budget, each in zip(budgets, every, strict=True)
            ]  # fmt: skip
    return made


def _number(text: str, what: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{what} must be a number") from None
    if not low <= value <= high:
        raise InputError(f"{what} must lie between {low:g} and {high:g}")
    return value
