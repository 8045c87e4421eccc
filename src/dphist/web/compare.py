"""Two releases side by side: the same question, both answers, and whether noise alone could explain the difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist.errors import QueryError
from dphist.release import Release
from dphist.report.page import embed
from dphist.web.view import View


def compare(
    title: str, one: Release, other_title: str, other: Release, asked: Mapping[str, str]
) -> dict[str, Any]:
    """Ask both releases the same; they must share the attributes that the question names."""
    both = [name for name in one.domain.names if name in other.domain.names]
    if not both:
        raise QueryError("these releases have no attribute in common")
    question = {key: value for key, value in asked.items() if key in ("q", "show", "confidence")}
    question.setdefault("show", both[0])
    if question["show"] not in both:
        raise QueryError(f"the releases share only {', '.join(both)}")
    shown = [View.read(release, question).to_json() for release in (one, other)]
    first, second = (each["answer"] for each in shown)
    # Neither has a number where a question lies in no published table.
    known = first["value"] is not None and second["value"] is not None
    measured = first["measured"] and second["measured"]
    bounded = first["low"] is not None and second["low"] is not None
    apart = bounded and (first["low"] > second["high"] or second["low"] > first["high"])
    return {
        "question": shown[0]["question"],
        "show": question["show"],
        "both": both,
        "confidence": shown[0]["confidence"],
        "difference": first["value"] - second["value"] if known else None,
        "apart": apart,
        "measured": measured,
        "sides": [
            {
                "title": name,
                "answer": each["answer"],
                "guarantee": release.guarantee.describe(),
                "spec": embed(each["spec"]),
                "id": f"side{place}",
            }
            for place, (name, release, each) in enumerate(
                ((title, one, shown[0]), (other_title, other, shown[1]))
            )
        ],
    }
