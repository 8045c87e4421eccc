"""The guided start in the terminal: questions one after the other, each step also as the command that does it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import typer

from dphist.cli import handing, screen
from dphist.errors import DphistError, InputError
from dphist.model.domain import Domain
from dphist.model.domain.words import FORMS, attribute_from_words
from dphist.model.exact import positive
from dphist.model.phrases import counted
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.starting import Start, columns
from dphist.release.atomic import atomic

Read = TypeVar("Read")


def guide(source: str, folder: Path, answers: Path | None, browser: bool) -> None:
    """Ask, write schema and budget, rehearse, publish and report."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    ask = _asking(answers)
    start = _answered(source, folder, ask)
    start.write()
    screen.line(f"wrote {start.file('schema')} and a budget for {start.population} in {start.file('ledger')}")
    for step in ("schema", "ledger"):
        _command(start, step)
    screen.line(
        "\nNow the records are read. What follows is about them, without noise: for your eyes only.\n"
    )
    _command(start, "rehearse")
    screen.line(str(start.rehearse()))
    if not ask("\nPublish now? This spends the budget (yes or no)", "no", _yes):
        screen.line("nothing was spent. When you are ready:")
        _command(start, "publish")
        return
    with screen.progress("publishing"):
        release = start.publish()
    screen.line(f"{start.file('release')}: {release.describe()}")
    _command(start, "publish")
    handing.report(start.file("release"), start.file("report"))
    _command(start, "report")
    screen.line("ask it questions in the browser:")
    _command(start, "ask")
    if browser:
        import webbrowser

        webbrowser.open(start.file("report").resolve().as_uri())


def _answered(source: str, folder: Path, ask: Ask) -> Start:
    """Ask all questions; what was answered until somebody stops is not lost."""
    try:
        return _questions(source, folder, ask)
    except (KeyboardInterrupt, typer.Abort):
        place = folder / f"{Start(source=source, public={}).stem}.answers.txt"
        if ask.given and ask.typed and not place.exists():
            with atomic(place) as temporary:
                temporary.write_text("".join(f"{each}\n" for each in ask.given), encoding="utf-8")
            screen.line(
                f"\nyour answers are in {place}; `dphist start {shlex.quote(source)} --answers "
                f"{shlex.quote(str(place))}` goes on from there"
            )
        raise


def _questions(source: str, folder: Path, ask: Ask) -> Start:
    listed = columns(source)
    screen.line(f"{source} has these columns; names and types are all that is taken over from it:")
    screen.table(("column", "type"), listed)
    if ask.typed:
        screen.line("(Ctrl+C keeps what was answered in a file, where it can be changed)")
    screen.line(
        "\n1. Can one person have several rows? Then protecting a row does not protect the person.\n"
        "   row (no, one each) · rows=5 (yes, five at most) · rows=5, id=COLUMN (yes; that column says who it is)\n"
    )
    unit = ask("who is protected", "row", _unit)
    screen.line(f"   {Start(source=source, public={}, unit=unit).promise}")
    screen.line(
        "\n2. What is public about each? It must come from what everybody may know (a code book, the law), never from\n"
        "   the records. Write one of these:\n"
    )
    for form in FORMS.split(" · "):
        screen.line(f"     {form}")
    screen.line("")
    public = {name: ask(f"{name} ({kind})", "", _words_of(name)) for name, kind in listed}
    start = Start(source=source, public=public, folder=folder)
    domain: Domain = start.domain
    screen.line(
        f"   {' × '.join(f'{a.name} {a.size}' for a in domain.attributes)} = {counted(domain.size, 'combination')}"
    )
    screen.line(
        "\n3. What will people ask? It decides the error more than anything else.\n"
        "   cells (single counts) · ranges · prefixes (running totals) · marginals (every attribute by itself) ·\n"
        "   marginals:2 (every table of two) · marginals:age,sex;sex,region (those tables)\n"
    )
    workload = ask("what", start.asked, lambda words: (Workload.parse(domain, words), words)[1])
    start = Start(source=source, public=public, folder=folder, unit=unit, workload=workload)
    screen.line(
        "\n4. How much privacy loss (ε)? Smaller is more private, larger more accurate. Up to 1 is comfortable."
    )
    screen.line(
        "   What an answer would typically be off by, in records (forecast from the schema; no record is read):\n"
    )
    with screen.progress("running the mechanism on made-up records"):
        curve = start.curve()
    most = max((each.error for _, each in curve if each.error), default=1.0)
    for epsilon, each in curve:
        bar = "█" * max(1, round(40 * each.error / most)) if each.error else ""
        screen.line(f"   ε = {epsilon:>4}  {each.said:>22}  {bar}")
    screen.line("")
    epsilon = ask("epsilon", "1", lambda words: (positive(words, "epsilon"), words)[1])
    screen.line(
        "\n5. A ledger keeps account of the ε that may ever be spent on these people, over all releases.\n"
    )
    dataset = ask("name of these people in the ledger", start.population, str)
    total = ask("total", epsilon, lambda words: (positive(words, "total"), words)[1])
    made = Start(
        source=source, public=public, folder=folder, unit=unit, workload=workload, epsilon=epsilon, dataset=dataset,
        total=total,
    )  # fmt: skip
    made.check()
    return made


class Ask:
    """Takes answers from lines, each once; then, at a terminal, asks until an answer can be read."""

    def __init__(self, lines: Sequence[str], *, typed: bool) -> None:
        self.typed, self.lines = typed, iter(lines)
        self.given: list[str] = []

    def __call__(self, question: str, default: str, read: Callable[[str], Read]) -> Read:
        """Ask one question, and give what was read from the answer."""
        while True:
            line = next(self.lines, None)
            if line is not None:
                answer = line.strip() or default
                screen.line(f"{question}: {answer}")
            elif self.typed:
                answer = str(typer.prompt(question, default=default, show_default=bool(default)))
            else:
                raise InputError(f"the answers end before: {question.strip()}")
            try:
                found = read(answer)
            except DphistError as error:
                if line is not None:
                    raise
                screen.line(f"   {error}")
            else:
                self.given.append(answer)
                return found


def _asking(answers: Path | None) -> Ask:
    if answers is None:
        typed = sys.stdin.isatty()
        return Ask([] if typed else sys.stdin.read().splitlines(), typed=typed)
    try:
        lines = answers.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"the answers {answers} cannot be read as a text file") from None
    return Ask(lines, typed=sys.stdin.isatty())


def _words_of(name: str) -> Callable[[str], str]:
    """Words about one column, once they can be read."""

    def read(words: str) -> str:
        attribute_from_words(name, words)
        return words

    return read


def _unit(words: str) -> str:
    """Who is protected, once it can be read; whoever answers the question with no has a row each."""
    if words.strip().lower() in ("yes", "y"):
        raise InputError("how many at most? Write rows=5, or rows=5, id=COLUMN if a column says who it is")
    words = "row" if words.strip().lower() in ("no", "n") else words
    Unit.parse(words)
    return words


def _yes(words: str) -> bool:
    if words.strip().lower() not in ("yes", "y", "no", "n"):
        raise InputError("write yes or no")
    return words.strip().lower().startswith("y")


def _command(start: Start, step: str) -> None:
    screen.line(f"  $ {start.commands[step]}")
