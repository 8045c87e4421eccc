"""Which process of a parallel run gets which files, and when: nobody should wait for the last one alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

# Marks of what takes long, and files that take half a minute without one; what is marked slow no mutant is shown to.
_WAITING_MARKS = ("postgres", "browser")
_LONG_MARKS = ("slow", "audit", "spark")
_LONG_FILES = (
    "test_audit_rho.py",
    "test_command_arguments.py",
    "test_formats_of_neighbours.py",
    "test_named_choice.py",
    "test_odd_values.py",
    "test_plan.py",
    "test_public_functions.py",
    "test_seeing_commands.py",
    "test_site.py",
)
# They compile nearly every kernel. Side by side they would compile each of them twice.
_COMPILING = ("test_auto.py", "test_every_mechanism.py", "test_reference.py")


@cache
def on_spark(file: Path) -> bool:
    """Whether tests of a file share a Spark."""
    text = file.read_text(encoding="utf-8")
    return "spark_session" in text or "from test_engines import" in text


def long_files_first(items: list[pytest.Item]) -> None:
    """Put files with Spark first, those that compile, those that wait, others that take long, those with most tests.

    By number of tests alone a run would end with audits, which are few and long. While one process has Spark, another
    compiles; what needs a database or a browser, and few kernels, comes after that.
    """
    many: dict[Path, int] = {}
    for item in items:
        many[item.path] = many.get(item.path, 0) + 1
    waiting, long = (
        {item.path for item in items if any(item.get_closest_marker(mark) for mark in marks)}
        for marks in (_WAITING_MARKS, _LONG_MARKS)
    )

    def place(item: pytest.Item) -> tuple[int, int]:
        file = item.path
        kinds = (
            on_spark(file),
            file.name in _COMPILING,
            file in waiting,
            file in long or file.name in _LONG_FILES,
            True,
        )
        return kinds.index(True), -many[file]

    # Files with as many tests stay apart: they came one after another.
    items.sort(key=place)


class OneSpark(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Tests of one file stay together, all files on Spark, which is started once, and those that compile."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        path = self.config.rootpath / file
        return "spark" if on_spark(path) else "compiling" if path.name in _COMPILING else file
