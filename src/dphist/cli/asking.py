"""Questions to a release, from the terminal: nothing is imported here that only who publishes needs."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from dphist.cli import screen
from dphist.errors import QueryError
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
    answers: Answers | list[Answer]
    if bins != "whole" or any(read_request(each) is not None for each in questions):
        if simultaneous:
            raise QueryError(
                "--simultaneous: intervals of measures, and bounds of cut bins, hold each by itself"
            )
        answers = [loaded.query(each, confidence=confidence, interval=kind, bins=bins) for each in questions]
    else:
        answers = loaded.answer(
            read_questions(questions, loaded.domain),
            confidence=confidence,
            interval=kind,
            simultaneous=simultaneous,
        )
    if as_json:
        keys = ("value", "low", "high", "confidence", "measured", "method", "details")
        # JSON has no word for "not a number": what nothing can be said of has no bounds.
        found = [
            {key: None if unknown(each) else each for key in keys for each in (getattr(answers[i], key),)}
            for i in range(len(questions))
        ]
        screen.line(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False))
        return
    for i, asked in enumerate(questions):
        screen.line(f"{asked}: {answers[i]}" if len(questions) > 1 else str(answers[i]))
    for method in dict.fromkeys(answers[i].method for i in range(len(questions))):
        screen.line(f"interval: {method}")


def unknown(value: Any) -> bool:
    """Whether JSON has no word for it: not a number, or without an end."""
    return isinstance(value, float) and not isfinite(value)
