"""Questions to a release, SQL and synthetic records: nothing is imported here that only who publishes needs."""

from __future__ import annotations

import json
import sys
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from dphist.cli import screen
from dphist.cli.files import check_copy
from dphist.errors import DphistError, InputError, QueryError
from dphist.model.phrases import counted
from dphist.release import Answer, Answers, load
from dphist.release.asking import BinsKind
from dphist.release.atomic import atomic
from dphist.release.language import read_questions, read_request


def query_release(
    release: Path,
    question: list[str] | None = None,
    *,
    confidence: float = 0.95,
    guaranteed: bool = False,
    simultaneous: bool = False,
    bins: BinsKind = "whole",
    as_json: bool = False,
) -> None:
    """Print the answer to each question, with its interval and what that is; no question asks for all records."""
    questions = question or [""]
    loaded = load(release)
    kind: Literal["guaranteed", "calibrated"] = "guaranteed" if guaranteed else "calibrated"
    answers: Answers | list[Answer | DphistError]
    if simultaneous:
        if bins != "whole" or any(read_request(each) is not None for each in questions):
            raise QueryError(
                "--simultaneous: intervals of measures, and bounds of cut bins, hold each by itself"
            )
        answers = loaded.answer(
            read_questions(questions, loaded.domain), confidence=confidence, interval=kind, simultaneous=True
        )
    else:
        answers = []
        for each in questions:
            try:
                answers.append(loaded.query(each, confidence=confidence, interval=kind, bins=bins))
            except DphistError as error:
                # The others are answered all the same.
                answers.append(error)
    told = [answers[i] for i in range(len(questions))]
    refused = [each for each in told if isinstance(each, DphistError)]
    if len(refused) == len(told):
        raise refused[0]
    if as_json:
        found = [_facts(each) for each in told]
        screen.line(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False))
    else:
        for asked, one in zip(questions, told, strict=True):
            said = f"not answered: {one}" if isinstance(one, DphistError) else str(one)
            screen.line(f"{asked}: {said}" if len(questions) > 1 else said)
        for method in dict.fromkeys(each.method for each in told if isinstance(each, Answer)):
            screen.line(f"interval: {method}")
    if refused:
        raise QueryError(f"{len(refused)} of {counted(len(told), 'question')} not answered: {refused[0]}")


def _facts(answer: Answer | DphistError) -> dict[str, Any]:
    if isinstance(answer, DphistError):
        return {"error": str(answer)}
    keys = ("value", "low", "high", "confidence", "measured", "method", "details")
    # JSON has no word for "not a number": what nothing can be said of has no bounds.
    return {key: None if unknown(each) else each for key in keys for each in (getattr(answer, key),)}


def unknown(value: Any) -> bool:
    """Whether JSON has no word for it: not a number, or without an end."""
    return isinstance(value, float) and not isfinite(value)


def show_sql(release: Path, query: str, *, as_json: bool) -> None:
    """Print the rows of one SELECT over a release."""
    found = load(release).sql(query)
    if as_json:
        screen.line(json.dumps(found.records(), ensure_ascii=False, default=str))
    else:
        screen.table(found.columns, [[_text(value) for value in row] for row in found.rows])


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    # Shares and means are small, and not whole.
    return f"{value:,.4g}" if abs(value) < 10 and not value.is_integer() else f"{value:,.1f}"


def write_records(release: Path, count: int | None, seed: int, output: Path | None, force: bool) -> None:
    """Write synthetic records as CSV or Parquet."""
    kind = output.suffix.lower() if output is not None else ""
    if output is not None:
        if kind not in (".csv", ".parquet"):
            raise InputError(f"--output {output}: the name must end in .csv or .parquet")
        check_copy(output, release, force)
    made = load(release).records(count, seed=seed)
    if output is None:
        # As in a file, whatever the screen can show: a label must not change on its way.
        sys.stdout.flush()
        made.to_csv(sys.stdout.buffer, index=False, encoding="utf-8")
        return
    with atomic(output) as temporary:
        if kind == ".parquet":
            made.to_parquet(temporary, index=False)
        else:
            made.to_csv(temporary, index=False)
