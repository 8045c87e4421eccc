"""What a mutant is, and the list of all, room by room: a text file each, beside this one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


@dataclass(frozen=True)
class Planted:
    """One bug: which text of which file becomes what, the tests that must notice, and what would go wrong."""

    room: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.file.removeprefix('src/dphist/')}: {self.why}"

    def edited(self, root: Path = ROOT) -> str:
        """The file with the bug in it; ValueError if its text does not occur exactly once."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1 or self.old == self.new:
            raise ValueError(f"{self.room}: stale mutant of {self.file}: {self.why}")
        return text.replace(self.old, self.new)


def every() -> Iterator[Planted]:
    """All mutants, room by room."""
    for place in sorted(Path(__file__).parent.glob("*.txt")):
        yield from read(place.stem, place.read_text(encoding="utf-8"))


def read(room: str, text: str) -> Iterator[Planted]:
    r"""Read the mutants of a room, which are written as changes are: what goes after ``-``, what comes after ``+``.

    ``@`` names the file of all that follow, ``?`` the tests, a plain line says what would go wrong.
    """
    file = why = ""
    tests: tuple[str, ...] = ()
    sides: dict[str, list[str]] = {"-": [], "+": []}

    def finished() -> Iterator[Planted]:
        if why:
            yield Planted(room, file, "\n".join(sides["-"]), "\n".join(sides["+"]), tests, why)
        for side in sides.values():
            side.clear()

    for line in text.split("\n"):
        mark, rest = line[:1], line[1:]
        if mark in sides:
            sides[mark].append(rest)
            continue
        yield from finished()
        why = ""
        if mark == "@":
            file = rest.strip()
        elif mark == "?":
            tests = tuple(shlex.split(rest))
        elif mark != "#":
            why = line
    yield from finished()
