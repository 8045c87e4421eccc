"""Which process of a parallel run gets which files, and when: nobody should wait for the last one alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

# Marks of what takes long, and files that take half a minute without one; what is marked slow no mutant is shown to.
_LONG_MARKS = ("slow", "audit", "spark", "postgres", "browser")
_LONG_FILES = (
    "test_audit_rho.py",
    "test_command_arguments.py",
    "test_every_mechanism.py",
    "test_formats_of_neighbours.py",
    "test_named_choice.py",
    "test_plan.py",
    "test_public_functions.py",
    "test_reference.py",
    "test_seeing_commands.py",
)


@cache
def on_spark(file: Path) -> bool:
    """Whether tests of a file share a Spark."""
    text = file.read_text(encoding="utf-8")
    return "spark_session" in text or "from test_engines import" in text


def long_files_first(items: list[pytest.Item]) -> None:
    """Put files with Spark first, then others that take long, then those with most tests.

    By number of tests alone a run would end with audits, which are few and long. Files on Spark and those that compile
    every kernel begin side by side, so that no kernel is compiled twice.
    """
    many: dict[Path, int] = {}
    long = {item.path for item in items if any(item.get_closest_marker(mark) for mark in _LONG_MARKS)}
    for item in items:
        many[item.path] = many.get(item.path, 0) + 1

    def place(item: pytest.Item) -> tuple[int, int]:
        file = item.path
        kind = 0 if on_spark(file) else 1 if file in long or file.name in _LONG_FILES else 2
        return kind, -many[file]

    # Files with as many tests stay apart: they came one after another.
    items.sort(key=place)


class OneSpark(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Tests of one file stay together, and all files on Spark: it is started once, and warm from then on."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if on_spark(self.config.rootpath / file) else file
