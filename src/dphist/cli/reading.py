"""Questions to a release, its verification and its page: nothing is imported here that only who publishes needs."""

from __future__ import annotations

from contextlib import nullcontext
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from dphist.cli import screen
from dphist.errors import DphistError, OutputError, QueryError
from dphist.model.exact import shown
from dphist.model.phrases import counted
from dphist.release import Answer, Answers, load
from dphist.release.asking import BinsKind
from dphist.release.atomic import atomic, check_page_name
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
        screen.data(found[0] if len(found) == 1 else found)
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


def verify_release(
    release: Path,
    ledger: str | None = None,
    as_json: bool = False,
    choice: bool = False,
    exact: bool = False,
) -> None:
    """Replay the mechanism with no data, and say that the release is the same."""
    # Loaded here: only this replays the mechanism, or asks a ledger.
    from dphist.publishing.account import existing
    from dphist.publishing.checking import verify_file

    with existing(ledger) if ledger else nullcontext() as book, screen.progress():
        loaded = verify_file(release, book, choice=choice, exact=exact)
    budget, spent = loaded.budget, loaded.spent
    facts = {"verified": True, budget.currency: str(budget.amount), "spent": str(spent)}
    if as_json:
        screen.data(facts)
    else:
        paid = f"{counted(loaded.questions, 'paid answer')}, spent {shown(spent)} of {shown(budget.amount)} "
        paid += budget.symbol
        screen.line(f"verified: {paid}; run again without the data, they give the same release")


def write_report(release: Path, output: Path = Path("report.html"), title: str | None = None) -> None:
    """Write the page of a release."""
    from dphist.report import report_page

    check_copy(output, release, force=True)
    # A page is made anew as often as one likes; what is no page is somebody's, and stays.
    if not _is_page(output):
        raise OutputError(f"{output} exists already and is no page; choose another name")
    check_page_name(output)
    loaded = load(release)
    page = report_page(loaded, title=title or loaded.about.title or release.stem, file=release.name)
    with atomic(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    screen.line(f"{output}: open it in any browser; it needs no network")


def _is_page(path: Path) -> bool:
    """Whether what is there, if anything, is a page that may be written over."""
    try:
        if not path.is_file():
            return True
        with path.open("rb") as file:
            return file.read(15).lower() in (b"", b"<!doctype html>")
    except OSError:
        # Nothing is there, or nothing that can be read: who writes will say what is wrong.
        return True


def check_copy(output: Path, release: Path, force: bool) -> None:
    """Refuse to write over the release that is read, which nobody could pay for again, or over what else is there.

    A table of a release, or synthetic records, would naturally go by the name that the true records have.
    """
    if not output.exists():
        return
    if release.exists() and output.samefile(release):
        raise OutputError(f"{output} is the release itself, which was paid for; choose another name")
    if not force:
        raise OutputError(f"{output} exists already; choose another name, or say --force")
