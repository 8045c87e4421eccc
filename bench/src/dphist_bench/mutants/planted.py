"""What a mutant is, and the list of all, room by room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

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
    for found in sorted(iter_modules([str(Path(__file__).parent)]), key=lambda module: module.name):
        for entry in getattr(import_module(f"{__package__}.{found.name}"), "MUTANTS", ()):
            tests = entry["tests"]
            listed = tuple(tests.split()) if isinstance(tests, str) else tuple(tests)
            yield Planted(found.name, entry["file"], entry["old"], entry["new"], listed, entry["why"])
