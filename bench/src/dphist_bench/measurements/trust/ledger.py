"""Race many processes for one ledger, kill them at random points, and count what was lost or overspent.

Rows come out for *race*, once for a total in ε, in ρ and in (ε, δ): every process takes the same amount from one
budget until it is refused. *kill -9*: every process creates budgets of each kind in turn, spends them to the last
crumb, opens and completes reservations and reopens the ledger, while the parent kills one process after another and
starts it again. A spend counts as acknowledged once the child has written it to a pipe, which it does after `reserve`
has returned. The counting reads the file with plain SQL, so that it does not rest on the code under test.
"""

from __future__ import annotations

import math
import os
import random  # noqa: TID251 -- when to kill whom, not noise
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from dphist import errors
from dphist.private.ledger import Head, Ledger
from dphist_bench.measuring import Failure, Line

# How a raced budget is opened so that it holds so many spends.
_KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "epsilon": lambda spends: {"epsilon": Fraction(spends, 10)},
    "rho": lambda spends: {"rho": Fraction(spends, 1000)},
    "epsilon, delta": lambda spends: {"epsilon": Fraction(10), "delta": Fraction(1, 10**9)},
}
# So many tenths compose to (10, 10⁻⁹): `dphist bench run composition`.
COMPOSED = 226


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
        for each in fields(self)[1:]:
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class _Child:
    """A process of its own interpreter, and everything it has said."""

    def __init__(self, call: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from dphist_bench.measurements.trust.spenders import *; {call}"],
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
        while self.process.poll() is None:
            self.listen()
            time.sleep(0.002)
        self.listen()
        # Closes the pipes; what was said is heard already.
        complaint = self.process.communicate()[1]
        return complaint.decode().strip()


def _read_plainly(place: Path | str, *statements: str) -> list[list[tuple[Any, ...]]]:
    """Run queries on a ledger's tables without our own code in between."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as file:
            return [file.execute(statement).fetchall() for statement in statements]
    import psycopg

    address, _, schema = place.partition("#")
    with psycopg.connect(address, options=f"-csearch_path={schema or 'dphist_ledger'}") as connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def _words(text: str) -> dict[str, Fraction]:
    """Read amounts as the tables say them: a number is a pure ε."""
    words = text.split(" ") if " " in text else ["epsilon", text]
    return {name: Fraction(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def _zcdp(amount: dict[str, Fraction]) -> float:
    epsilon = float(amount.get("epsilon", 0))
    return float(amount["rho"]) if "rho" in amount else epsilon * math.tanh(epsilon / 2)


def _beyond(total: dict[str, Fraction], amounts: list[dict[str, Fraction]]) -> bool:
    """Whether more was spent than the total, by arithmetic of this file's own."""
    pure = sum((amount.get("epsilon", Fraction(0)) for amount in amounts), Fraction(0))
    if "rho" in total:
        return sum(map(_zcdp, amounts)) > float(total["rho"]) * (1 + 1e-12)
    mixed = any("rho" in amount for amount in amounts)
    if "delta" not in total:
        return mixed or pure > total["epsilon"]
    if not mixed and pure <= total["epsilon"]:
        return False
    # δ at orders from 1.1 to a thousand, with the Rényi divergence of randomised response for a pure ε.
    epsilon, orders = float(total["epsilon"]), [1 + 10 ** (k / 200) for k in range(-200, 600)]
    logs = [
        (a - 1) * (sum(_divergence(amount, a) for amount in amounts) - epsilon)
        - math.log(a - 1)
        + a * math.log1p(-1 / a)
        for a in orders
    ]
    return min(logs) > math.log(total["delta"]) + 0.01


def _divergence(amount: dict[str, Fraction], order: float) -> float:
    if "rho" in amount:
        return order * float(amount["rho"])
    x = float(amount["epsilon"])
    return x + (math.log1p(math.exp(-(2 * order - 1) * x)) - math.log1p(math.exp(-x))) / (order - 1)


def _agree(
    total: dict[str, Fraction], spent: dict[str, Fraction], amounts: list[dict[str, Fraction]]
) -> bool:
    """Whether stored sums are those of the lines: exactly for ε, and for ρ as far as floats go."""
    pure = sum((amount.get("epsilon", Fraction(0)) for amount in amounts), Fraction(0))
    if spent.get("epsilon", Fraction(0)) != pure:
        return False
    return "rho" not in total or math.isclose(float(spent["rho"]), sum(map(_zcdp, amounts)), rel_tol=1e-9)


def _count(path: Path | str, children: list[_Child], counts: Counts) -> None:
    """Hold the tables, read as plain SQL, against what the children said."""
    lines, budgets = _read_plainly(
        path,
        "SELECT number, hash, amount, dataset FROM lines WHERE kind = 'reserved'",
        "SELECT dataset, total, spent FROM budgets",
    )
    counts.entries += len(lines)
    counts.budgets += len(budgets)
    for name, total, spent in budgets:
        amounts = [_words(amount) for _, _, amount, dataset in lines if dataset == name]
        counts.overspends += _beyond(_words(total), amounts)
        counts.mismatches += not _agree(_words(total), _words(spent), amounts)
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


def run_race(
    folder: Path, processes: int, spends: int, place: str | None = None, kind: str = "epsilon"
) -> Counts:
    """Let every process take the same amount at a time from one budget that holds exactly `spends` of them."""
    path = place or folder / f"race-{kind[-5:]}.db"
    counts = Counts(processes)
    with Ledger.open(path) as ledger:
        ledger.create("everybody", **_KINDS[kind](spends))
    children = [_Child(f"race({str(path)!r}, {kind!r})") for _ in range(processes)]
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
        for number, kind in enumerate(_KINDS):
            held = COMPOSED if kind == "epsilon, delta" else spends
            raced = run_race(Path(name), processes, held, base and f"{base}_race{number}", kind)
            yield from _told(f"race, {kind}" if number else "race", raced)
        killed = Counts(processes)
        for number in range(ledgers):
            place = base and f"{base}_{number}"
            killed.add(run_kills(Path(name), processes, -(-kills // ledgers), seed + number, place))
        yield from _told("kill -9", killed)
    yield "entries beyond the acknowledged: spent by processes that died before they could say so"


def _told(title: str, counts: Counts) -> Iterator[Line]:
    told = asdict(counts)
    del told["failures"]
    yield {"": title, **told}
    yield from (Failure(f"failed: {failure}") for failure in counts.failures)
    if not counts.passed and not counts.failures:
        yield Failure("the ledger did not keep its promise")
