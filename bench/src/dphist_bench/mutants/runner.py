"""Plants mutants in copies of the tree, two at a time, and counts who was noticed.

Which test noticed a mutant is written down (``killers.json``, by ``--learn``), and that test is run first the next
time: most mutants then cost one test. Only if it passes are all tests run that the mutant names.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from dphist.errors import InputError
from dphist_bench.mutants.planted import ROOT, Planted, every

# Tests that take this long, and this many times as long as without a bug, are taken for ones that never end.
_LIMIT, _TIMES = 240.0, 8.0
_KILLERS = Path(__file__).with_name("killers.json")
_COPIED = ("src", "bench", "tests", "pyproject.toml", "docs", "README.md", "CHANGELOG.md")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Planted
    outcome: str  # killed, survived, stale, or untested: its tests fail without any bug
    seconds: float
    how: str = ""
    by: str = ""  # the test that noticed


@dataclass(frozen=True)
class Answer:
    """How tests ended, and how long they took: by the clock, and of the processor's time."""

    noticed: str
    seconds: float
    processor: float
    by: str = ""


class Copy:
    """A copy of the tree with a process that tests it: it has imported the heavy libraries and forks for every run.

    The copy keeps the times of its files, so that compiled kernels are found again; dphist itself is imported anew by
    every fork, and no byte code is written, so that no bug outlives its run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processor = 0.0
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, symlinks=True)
            elif source.exists():
                shutil.copy2(source, folder / name)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder / "bench/src")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CI": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
            text=True,
        )

    def noticed(self, tests: Sequence[str], limit: float = 4 * _LIMIT) -> Answer:
        """Run tests on the copy as it is: noticed is "no" if all pass, else how they failed."""
        begun = time.monotonic()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({"tests": list(tests), "limit": limit}) + "\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        self.processor += float(answer["processor"])
        seconds, processor = time.monotonic() - begun, float(answer["processor"])
        return Answer(str(answer["noticed"]), seconds, processor, str(answer["by"]))

    def plant(self, mutant: Planted, tests: Sequence[str], limit: float = _LIMIT) -> Verdict:
        """Put the bug in, run tests, take it out, and with it what was compiled of it."""
        begun = time.monotonic()
        path = self.folder / mutant.file
        before, times = path.read_bytes(), path.stat()
        compiled = {kept: kept.read_bytes() for kept in _compiled(path)}
        try:
            text = mutant.edited(self.folder)
        except (ValueError, OSError):
            return Verdict(mutant, "stale", 0.0)
        try:
            path.write_text(text, encoding="utf-8")
            answer = self.noticed(tests, limit)
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for made in _compiled(path):
                made.unlink()
            for kept, content in compiled.items():
                kept.write_bytes(content)
        outcome = "survived" if answer.noticed == "no" else "killed"
        return Verdict(mutant, outcome, time.monotonic() - begun, answer.noticed, answer.by)

    def close(self) -> None:
        """End the process that tests."""
        # Closes both pipes as well, and waits.
        self._server.communicate()


def _compiled(path: Path) -> list[Path]:
    """What numba keeps of a file's kernels; it is only good for the file as it was."""
    return sorted((path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"))


def _share_compiled(copies: Sequence[Copy]) -> None:
    """Give every copy what others have compiled; the copies' files are the same, and so are their times."""
    for one in copies:
        for other in copies:
            for found in (one.folder / "src").rglob("__pycache__/*.nb[ic]"):
                there = other.folder / found.relative_to(one.folder)
                if not there.exists():
                    there.parent.mkdir(exist_ok=True)
                    shutil.copy2(found, there)


def plant_all(
    mutants: Sequence[Planted],
    workers: int,
    say: Any = print,
    killers: Mapping[str, str] | None = None,
    learn: Callable[[Verdict], None] = lambda _: None,
) -> list[Verdict]:
    """Plant one after another in every copy, and check that the tests which notice pass without a bug.

    Args:
        mutants: which.
        workers: how many copies.
        say: where progress goes.
        killers: by the names of mutants the tests that noticed them last time, which are run first.
        learn: is told every verdict as soon as there is one.

    Returns:
        A verdict for each.
    """
    if not (ROOT / "tests").is_dir():
        raise InputError(
            "mutants are planted in a checkout: run this from one, installed with pip install -e"
        )
    killers = {} if killers is None else killers
    with tempfile.TemporaryDirectory(prefix="dphist-mutants-") as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(workers)]
        try:
            quick = _clean(copies, [killers[m.name] for m in mutants if m.name in killers], say)
            _share_compiled(copies)

            def plant(copy: Copy, mutant: Planted) -> Verdict:
                killer = killers.get(mutant.name, "")
                if killer in quick:
                    verdict = copy.plant(mutant, (killer,), _patience(quick[killer]))
                    # A test that is not there any more ends with 4, which is no kill.
                    if verdict.outcome == "killed" and verdict.how != "exit code 4":
                        return verdict
                verdict = copy.plant(mutant, _light(mutant.tests), 2 * _LIMIT)
                if verdict.outcome == "survived":
                    verdict = copy.plant(mutant, mutant.tests, 2 * _LIMIT)
                return verdict

            def told(copy: Copy, mutant: Planted) -> Verdict:
                learn(verdict := plant(copy, mutant))
                return verdict

            # Those that share tests follow each other, so that what the tests need is in the disk's cache.
            ordered = sorted(mutants, key=lambda one: (killers.get(one.name, ""), one.tests, one.file))
            verdicts = [verdict for _, verdict in _shared(copies, ordered, told, say)]
            # Whoever noticed must be content without the bug.
            doubted = [
                one.by for one in verdicts if one.outcome == "killed" and one.by and one.by not in quick
            ]
            content = quick | _clean(copies, doubted, say)
            verdicts = [
                replace(one, outcome="untested") if one.by and one.by not in content else one
                for one in verdicts
            ]
            say(f"{sum(copy.processor for copy in copies) / 60:.1f} minutes of the processor's time")
            return verdicts
        finally:
            for copy in copies:
                copy.close()


def _clean(copies: list[Copy], tests: Sequence[str], say: Any) -> dict[str, Answer]:
    """Those of some tests that pass without a bug, run file by file; of a file with a failure, none is taken."""
    files: dict[str, list[str]] = {}
    for test in sorted(set(tests)):
        files.setdefault(test.partition("::")[0], []).append(test)
    answers = _shared(copies, [tuple(each) for each in files.values()], Copy.noticed, say)
    return {one: answer for some, answer in answers if answer.noticed == "no" for one in some}


def _light(tests: tuple[str, ...]) -> tuple[str, ...]:
    """The same tests without those that start a server, most of which notice what others notice sooner."""
    return tests if "-m" in tests else (*tests, "-m", "not spark and not postgres and not slow")


def _patience(clean: Answer) -> float:
    """How long tests may take with a bug: on a busy machine everything takes longer, and is no less sound for it."""
    return max(_LIMIT, _TIMES * clean.seconds)


def _shared(copies: list[Copy], jobs: Sequence[Any], run: Any, say: Any) -> list[tuple[Any, Any]]:
    """Let every copy take the next job until none is left."""
    waiting: Queue[tuple[int, Any]] = Queue()
    for job in enumerate(jobs):
        waiting.put(job)
    done: dict[int, tuple[Any, Any]] = {}

    def work(copy: Copy) -> None:
        while True:
            try:
                number, job = waiting.get_nowait()
            except Empty:
                return
            done[number] = (job, run(copy, job))
            outcome, told = done[number][1], f"{len(done)}/{len(jobs)}"
            if isinstance(outcome, Verdict):
                how = f" ({outcome.how})" if outcome.how not in ("", "no", "exit code 1") else ""
                say(f"{told} {outcome.outcome:8}{how} {outcome.seconds:5.1f} s  {job.room}: {job.why}")
            elif isinstance(outcome, Answer):
                failed = "" if outcome.noticed == "no" else f" FAIL WITHOUT A BUG ({outcome.noticed})"
                took = f"{outcome.seconds:5.1f} s, {outcome.processor:5.1f} s of the processor"
                say(f"{told} {took}: {' '.join(job)}{failed}")

    with ThreadPoolExecutor(len(copies)) as threads:
        for finished in [threads.submit(work, copy) for copy in copies]:
            finished.result()
    return [done[number] for number in range(len(jobs))]


def main(argv: list[str] | None = None) -> int:
    """Plant every mutant and print who survived."""
    parser = argparse.ArgumentParser(prog="dphist bench run mutants", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one mutant of every room")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="mutants whose room, file or reason has this in it"
    )
    parser.add_argument("--list", action="store_true", help="name them and plant none")
    parser.add_argument("--workers", type=int, default=2, help="copies of the tree (default: 2)")
    parser.add_argument("--new", action="store_true", help="only those of which no killer is written down")
    parser.add_argument("--learn", action="store_true", help="write down which test noticed which mutant")
    options = parser.parse_args(argv)
    killers: dict[str, str] = json.loads(_KILLERS.read_text(encoding="utf-8")) if _KILLERS.exists() else {}
    chosen = [m for m in every() if options.only in f"{m.room} {m.file} {m.why}"]
    chosen = [m for m in chosen if not options.new or m.name not in killers]
    if options.quick:
        chosen = list({mutant.room: mutant for mutant in chosen}.values())
    begun = time.monotonic()
    if options.list:
        print("\n".join(f"{mutant.room}: {mutant.file}: {mutant.why}" for mutant in chosen))
        return 0
    known = {mutant.name for mutant in every()}

    def learn(verdict: Verdict) -> None:
        if verdict.outcome == "killed" and "::" in verdict.by and options.learn:
            killers[verdict.mutant.name] = verdict.by
            kept = {name: killers[name] for name in sorted(killers) if name in known}
            _KILLERS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    verdicts = plant_all(chosen, options.workers, lambda text: print(text, flush=True), dict(killers), learn)
    minutes = (time.monotonic() - begun) / 60
    by = {
        name: [v for v in verdicts if v.outcome == name]
        for name in ("killed", "survived", "stale", "untested")
    }
    print(
        f"planted {len(verdicts)}, killed {len(by['killed'])}, survivors {len(by['survived'])}, "
        f"stale {len(by['stale'])}, untested {len(by['untested'])}, {minutes:.1f} minutes"
    )
    for verdict in by["survived"] + by["stale"] + by["untested"]:
        print(f"  {verdict.outcome}: {verdict.mutant.file}: {verdict.mutant.why}")
    return 0 if len(by["killed"]) == len(verdicts) else 1
