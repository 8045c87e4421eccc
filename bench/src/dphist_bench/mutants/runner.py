"""Plants mutants in copies of the tree, one at a time in each, and says who was noticed.

The tests that a mutant names must pass without it: plant in a tree of which `./check` is content.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

from dphist.errors import InputError
from dphist_bench.measuring import Failure, Line
from dphist_bench.mutants.planted import ROOT, Planted, every

# Tests that take this long are taken for ones that never end.
_LIMIT = 900.0
_COPIED = ("src", "bench", "tests", "pyproject.toml", "docs", "README.md", "CHANGELOG.md")
# Tests that start a server run only if no others notice.
_LIGHT = ("-m", "not spark and not postgres and not slow")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed, survived, or stale; and how long it took."""

    mutant: Planted
    outcome: str
    seconds: float = 0.0


def plant_all(mutants: Sequence[Planted], workers: int) -> Iterator[Verdict]:
    """Plant one after another in every copy, and say what became of each."""
    if not (ROOT / "tests").is_dir():
        raise InputError(
            "mutants are planted in a checkout: run this from one, installed with pip install -e"
        )
    with tempfile.TemporaryDirectory(prefix="dphist-mutants-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            free.put(_copy(Path(folder) / str(number)))

        def plant(mutant: Planted) -> Verdict:
            copy = free.get()
            try:
                return _plant(copy, mutant)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(workers) as threads:
            yield from threads.map(plant, mutants)


def _copy(folder: Path) -> Path:
    """A copy of the tree that keeps the times of its files, so that compiled kernels are found again."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)
        elif source.exists():
            shutil.copy2(source, folder / name)
    return folder


def _plant(copy: Path, mutant: Planted) -> Verdict:
    """Put the bug in, run its tests, and take it out."""
    begun, path = time.monotonic(), copy / mutant.file
    try:
        text = mutant.edited(copy)
    except (ValueError, OSError):
        return Verdict(mutant, "stale")
    before, times = path.read_bytes(), path.stat()
    try:
        path.write_text(text, encoding="utf-8")
        light = () if "-m" in mutant.tests else _LIGHT
        noticed = _fail(copy, (*mutant.tests, *light)) or (bool(light) and _fail(copy, mutant.tests))
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return Verdict(mutant, "killed" if noticed else "survived", time.monotonic() - begun)


def _fail(copy: Path, tests: Sequence[str]) -> bool:
    """Whether tests fail, or never end; tests that are not there notice nothing."""
    child = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy / "bench/src")]),
            # No bug outlives its run in byte code.
            "PYTHONDONTWRITEBYTECODE": "1",
            "CI": "1",
        },
        # So that whatever the tests start ends with them.
        start_new_session=True,
    )
    try:
        # 4 and 5: the tests named are not there.
        return child.wait(_LIMIT) not in (0, 4, 5)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
        return True


def measure(
    *,
    quick: Annotated[bool, "one mutant of every room"],
    only: Annotated[str, "mutants whose room, file or reason has this in it"] = "",
    named: Annotated[bool, "name them and plant none"] = False,
    workers: Annotated[int, "copies of the tree"] = 2,
) -> Iterator[Line]:
    """Plant every mutant; who survives is a failure."""
    chosen = [m for m in every() if only in f"{m.room} {m.file} {m.why}"]
    if quick:
        chosen = list({mutant.room: mutant for mutant in chosen}.values())
    if named:
        yield from (f"{mutant.room}: {mutant.name}" for mutant in chosen)
        return
    found = Counter[str]()
    for place, verdict in enumerate(plant_all(chosen, workers), 1):
        found[verdict.outcome] += 1
        said = f"{place}/{len(chosen)} {verdict.outcome:8} {verdict.seconds:5.0f} s  {verdict.mutant.name}"
        yield said if verdict.outcome == "killed" else Failure(said)
    yield f"planted {len(chosen)}: " + ", ".join(f"{many} {outcome}" for outcome, many in found.items())
