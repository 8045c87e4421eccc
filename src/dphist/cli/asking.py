"""Questions to a release: nothing is imported here that only who publishes needs."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from dphist.cli import screen
from dphist.errors import DphistError, QueryError
from dphist.model.phrases import counted
from dphist.release import Answer, Answers, load
from dphist.release.asking import BinsKind
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
