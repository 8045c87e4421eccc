"""Questions to a release, from the terminal: nothing is imported here that only who publishes needs."""

from __future__ import annotations

import json
import sys
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from dphist.cli import screen
from dphist.errors import QueryError
from dphist.model.phrases import visible
from dphist.release import Answer, Answers, load
from dphist.release.language import cut_bins, read_questions, read_request


def query_release(
    release: Path,
    question: list[str] | None = None,
    *,
    confidence: float = 0.95,
    guaranteed: bool = False,
    simultaneous: bool = False,
    as_json: bool = False,
) -> None:
    """Print the answer to each question, with its interval and what that is; no question asks for all records."""
    questions = question or [""]
    loaded = load(release)
    kind: Literal["guaranteed", "calibrated"] = "guaranteed" if guaranteed else "calibrated"
    requests = [read_request(each) for each in questions]
    answers: Answers | list[Answer]
    if any(asked is not None for asked in requests):
        if simultaneous:
            raise QueryError("--simultaneous: intervals of measures hold each by itself")
        answers = [loaded.query(each, confidence=confidence, interval=kind) for each in questions]
    else:
        answers = loaded.answer(
            read_questions(questions, loaded.domain),
            confidence=confidence,
            interval=kind,
            simultaneous=simultaneous,
        )
    wheres = [each if asked is None else asked.where for each, asked in zip(questions, requests, strict=True)]
    for said in dict.fromkeys(said for where in wheres for said in cut_bins(where, loaded.domain)):
        sys.stderr.write(visible(f"dphist: note: {said}") + "\n")
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
