"""Race many processes for one ledger, kill them at random points, and count what was lost or overspent.

Two rows come out. *race*: every process takes the same amount from one budget
until it is refused. *kill -9*: every process creates budgets, spends them to the last crumb, opens and
completes reservations and reopens the ledger, while the parent kills one process after another and starts it
again. A spend counts as acknowledged once the child has written it to a pipe, which it does after `reserve`
has returned. The counting reads the file with plain SQL, so that it does not rest on the code under test.
"""

from __future__ import annotations

import os
import random  # noqa: TID251 -- when to kill whom, not noise
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from dphist import errors
from dphist.private.ledger import Head, Ledger
from dphist_bench.measuring import Failure, Line

_ROUND_TOTAL = Fraction(2)
_AMOUNTS = ("0.1", "0.05", "1/3", "1/7", "0.013")


@dataclass
class Counts:
    """What an experiment saw; the last three must be zero."""

    processes: int
    kills: int = 0
    acknowledged: int = 0
    entries: int = 0
    refusals: int = 0
    budgets: int = 0
    overspends: int = 0
    mismatches: int = 0
    lost: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Tell whether the ledger kept its promise."""
        return not (self.overspends or self.mismatches or self.lost or self.failures)

    def add(self, other: Counts) -> None:
        """Sum over ledgers."""
        for name in ("kills", "acknowledged", "entries", "refusals", "budgets"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("overspends", "mismatches", "lost", "failures"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _say(text: str) -> None:
    # One small write to a pipe is atomic, so a killed child leaves whole lines.
    os.write(1, f"{text}\n".encode())


def _acknowledge(ledger: Ledger, dataset: str, amount: str) -> None:
    reservation = ledger.reserve(dataset, amount, "experiment")
    _say(f"spent {reservation.id} {reservation.hash} {reservation.epsilon} {dataset}")
    if reservation.id % 3 == 0:
        reservation.open()
        reservation.complete(f"sha256:{reservation.hash}")


def race(path: str) -> None:
    """Child: take a tenth from one budget until it is refused."""
    with Ledger.open(path) as ledger:
        _say("ready")
        sys.stdin.read(1)
        try:
            while True:
                _acknowledge(ledger, "everybody", "0.1")
        except errors.BudgetExhausted:
            _say("refused")


def churn(path: str, seed: int) -> None:
    """Child: create budgets, exhaust them and start over, until killed."""
    chance = random.Random(seed)  # noqa: S311 -- data only
    first = True
    while True:
        with Ledger.open(path) as ledger:
            if first:
                _say("ready")
                first = False
            for _ in range(chance.randrange(1, 40)):
                _spend_somewhere(ledger, chance)


def _spend_somewhere(ledger: Ledger, chance: random.Random) -> None:
    rounds = [int(name.removeprefix("round-")) for name in ledger.datasets()]
    newest = max(rounds, default=0)
    last = f"round-{newest}"
    try:
        _acknowledge(ledger, last, chance.choice(_AMOUNTS))
    except errors.BudgetExhausted:
        _say("refused")
        if ledger.remaining(last) < Fraction(1, 10):
            with suppress(errors.InputError):  # another process was first
                ledger.create(f"round-{newest + 1}", _ROUND_TOTAL)
    except errors.UnknownDataset:
        with suppress(errors.InputError):
            ledger.create(last, _ROUND_TOTAL)


class _Child:
    """A process of its own interpreter, and everything it has said."""

    def __init__(self, call: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import dphist_bench.measurements.ledger as ledger; ledger.{call}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.heard = b""

    def listen(self) -> None:
        assert self.process.stdout is not None
        try:
            while chunk := os.read(self.process.stdout.fileno(), 1 << 16):
                self.heard += chunk
        except BlockingIOError:
            pass

    @property
    def ready(self) -> bool:
        return self.heard.startswith(b"ready\n")

    def end(self, *, kill: bool) -> str:
        """Wait for the end (or bring it about) and return what went wrong, if anything."""
        if kill:
            self.process.kill()
        else:
            while self.process.poll() is None:
                self.listen()
                time.sleep(0.002)
        self.process.wait()
        self.listen()
        assert self.process.stderr is not None
        complaint = self.process.stderr.read().decode()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return complaint.strip()


def _read_plainly(place: Path | str, *statements: str) -> list[list[tuple[str, ...]]]:
    """Run queries on a ledger's tables without our own code in between."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as file:
            return [file.execute(statement).fetchall() for statement in statements]
    import psycopg

    address, _, schema = place.partition("#")
    with psycopg.connect(address, options=f"-csearch_path={schema or 'dphist_ledger'}") as connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def _count(path: Path | str, children: list[_Child], counts: Counts) -> None:
    """Hold the tables, read as plain SQL, against what the children said."""
    lines, budgets = _read_plainly(
        path,
        "SELECT number, hash, amount, dataset FROM lines WHERE kind = 'reserved'",
        "SELECT dataset, total, spent FROM budgets",
    )
    sums = {
        name: sum((Fraction(a) for _, _, a, n in lines if n == name), Fraction(0)) for name, _, _ in budgets
    }
    counts.entries += len(lines)
    counts.budgets += len(budgets)
    counts.overspends += sum(sums[name] > Fraction(total) for name, total, _ in budgets)
    counts.mismatches += sum(sums[name] != Fraction(spent) for name, _, spent in budgets)
    kept = {f"{number} {seal} {amount} {name}" for number, seal, amount, name in lines}
    heads = []
    for child in children:
        for said in child.heard.decode().splitlines():
            word, _, what = said.partition(" ")
            if word == "refused":
                counts.refusals += 1
            elif word == "spent":
                counts.acknowledged += 1
                counts.lost += what not in kept
                number, seal, *_ = what.split(" ")
                heads.append(Head(int(number), seal))
    try:
        with Ledger.open(path) as ledger:
            ledger.verify(*heads)
    except errors.DphistError as error:
        counts.failures.append(str(error))


def run_race(folder: Path, processes: int, spends: int, place: str | None = None) -> Counts:
    """Let every process take a tenth at a time from one budget that holds exactly `spends` tenths."""
    path = place or folder / "race.db"
    counts = Counts(processes)
    with Ledger.open(path) as ledger:
        ledger.create("everybody", Fraction(spends, 10))
    children = [_Child(f"race({str(path)!r})") for _ in range(processes)]
    while not all(child.ready for child in children) and all(c.process.poll() is None for c in children):
        for child in children:
            child.listen()
        time.sleep(0.005)
    for child in children:
        assert child.process.stdin
        child.process.stdin.write(b"!")
        child.process.stdin.flush()
    counts.failures += [complaint for child in children if (complaint := child.end(kill=False))]
    _count(path, children, counts)
    if counts.acknowledged != spends:
        counts.failures.append(
            f"{spends} spends fit in the budget and {counts.acknowledged} were acknowledged"
        )
    return counts


def run_kills(folder: Path, processes: int, kills: int, seed: int, place: str | None = None) -> Counts:
    """Kill one process after another at random points, restart it, and finally kill them all at once."""
    path = place or folder / f"kills-{seed}.db"
    chance = random.Random(seed)  # noqa: S311 -- data only
    counts = Counts(processes)
    children: list[_Child] = []

    def start() -> _Child:
        child = _Child(f"churn({str(path)!r}, {chance.getrandbits(32)})")
        children.append(child)
        return child

    def end(child: _Child) -> None:
        complaint = child.end(kill=True)
        if complaint:
            counts.failures.append(complaint)
        else:
            counts.kills += 1

    alive = [start() for _ in range(processes)]
    while counts.kills < kills - processes and not counts.failures:
        time.sleep(chance.uniform(0, 0.02))
        for child in alive:
            child.listen()
        ready = [child for child in alive if child.ready]
        # Most victims are at work on the ledger, a few are still starting up or opening it.
        if 2 * len(ready) < processes:
            continue
        victim = chance.choice(ready if chance.random() < 0.95 else alive)
        end(victim)
        alive[alive.index(victim)] = start()
    for child in alive:
        child.process.kill()
    for child in alive:
        end(child)
    _count(path, children, counts)
    return counts


_COLUMNS = (
    "processes",
    "kills",
    "acknowledged",
    "entries",
    "refusals",
    "budgets",
    "overspends",
    "mismatches",
    "lost",
)


def measure(
    *,
    quick: bool,
    processes: int = 16,
    spends: Annotated[int, "how many spends fit in the raced budget"] = 1600,
    kills: Annotated[int, "how many processes to kill, over all ledgers"] = 400,
    ledgers: Annotated[int, "how many ledgers the kills are spread over"] = 5,
    seed: int = 1,
    postgres: Annotated[str | None, "URL of a PostgreSQL database to keep the ledgers in"] = None,
) -> Iterator[Line]:
    """Run both experiments and give their counts."""
    if quick:
        processes, spends, kills, ledgers = 4, 40, 12, 1
    with tempfile.TemporaryDirectory() as name:
        base = postgres and f"{postgres}#experiment_{os.getpid()}"
        yield from _told("race", run_race(Path(name), processes, spends, base and f"{base}_race"))
        killed = Counts(processes)
        for number in range(ledgers):
            place = base and f"{base}_{number}"
            killed.add(run_kills(Path(name), processes, -(-kills // ledgers), seed + number, place))
        yield from _told("kill -9", killed)
    yield "entries beyond the acknowledged: spent by processes that died before they could say so"


def _told(title: str, counts: Counts) -> Iterator[Line]:
    yield {"": title, **{name: getattr(counts, name) for name in _COLUMNS}}
    yield from (Failure(f"failed: {failure}") for failure in counts.failures)
    if not counts.passed and not counts.failures:
        yield Failure("the ledger did not keep its promise")
