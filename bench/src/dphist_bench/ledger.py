"""Race many processes for one ledger, kill them at random points, and count what was lost or overspent.

``python -m dphist_bench ledger`` prints two rows. *race*: every process takes the same amount from one budget
until it is refused. *kill -9*: every process creates budgets, spends them to the last crumb, opens and
completes reservations and reopens the ledger, while the parent kills one process after another and starts it
again. A spend counts as acknowledged once the child has written it to a pipe, which it does after `reserve`
has returned. The counting reads the file with plain SQL, so that it does not rest on the code under test.
"""

from __future__ import annotations

import argparse
import os
import random  # noqa: TID251 -- when to kill whom, not noise
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from dphist import errors
from dphist.private.ledger import Head, Ledger

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
            [sys.executable, "-c", f"import dphist_bench.ledger as ledger; ledger.{call}"],
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


def main(argv: list[str]) -> int:
    """Run both experiments and print their counts."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench ledger", description=__doc__)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--spends", type=int, default=1600, help="how many spends fit in the raced budget")
    parser.add_argument("--kills", type=int, default=400, help="how many processes to kill, over all ledgers")
    parser.add_argument("--ledgers", type=int, default=5, help="how many ledgers the kills are spread over")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", metavar="URL", help="a PostgreSQL database to keep the ledgers in")
    parser.add_argument("--quick", action="store_true", help="4 processes, 40 spends, 12 kills")
    options = parser.parse_args(argv)
    if options.quick:
        options.processes, options.spends, options.kills, options.ledgers = 4, 40, 12, 1
    columns = [
        "processes",
        "kills",
        "acknowledged",
        "entries",
        "refusals",
        "budgets",
        "overspends",
        "mismatches",
        "lost",
    ]
    sys.stdout.write(f"{'':8}" + "".join(f"{name:>13}" for name in columns) + "\n")
    failed = False
    with tempfile.TemporaryDirectory() as name:
        base = options.postgres and f"{options.postgres}#experiment_{os.getpid()}"
        raced = run_race(Path(name), options.processes, options.spends, base and f"{base}_race")
        killed = Counts(options.processes)
        for number in range(options.ledgers):
            share = -(-options.kills // options.ledgers)
            place = base and f"{base}_{number}"
            killed.add(run_kills(Path(name), options.processes, share, options.seed + number, place))
    for title, counts in (("race", raced), ("kill -9", killed)):
        sys.stdout.write(f"{title:8}" + "".join(f"{getattr(counts, name):13}" for name in columns) + "\n")
        for failure in counts.failures:
            sys.stdout.write(f"  failed: {failure}\n")
        failed = failed or not counts.passed
    sys.stdout.write(
        "entries beyond the acknowledged: spent by processes that died before they could say so\n"
    )
    return int(failed)
