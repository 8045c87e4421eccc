"""Load and time: the ledger under many writers, the explorer under many clients, and what running times tell.

*ledger*: threads in several processes reserve from one budget; latencies are of `reserve`, durable on return.
*explorer*: clients on loopback ask one after the other for as long as told; the server's memory is read
every tenth of the time. *timing*: how far running time correlates with the noise drawn and with the data.
*quotes*: what it costs to read CSV files line by line, beside DuckDB's own reader.
*precision*: values that only one of two neighbours can produce, in every mechanism; see `precision.py` beside this.
Latencies are wall time on a machine that may be busy with other things; they say what a user would have seen there.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist.audit.neighbours import worst_pairs
from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.ledger import Ledger
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import publish
from dphist.sources import count
from dphist.sources.open import connect
from dphist.testing.gates import as_histogram
from dphist_bench.audit.campaign import claims
from dphist_bench.measurements.trust.precision import look
from dphist_bench.measuring import Failure, Line

FloatArray = NDArray[np.float64]

_PROCESSES = 4
_TIMED = ("laplace", "s1", "structurefirst", "efpa", "privelet")
_WRITER = """
import sys, threading, time
from dphist.private.ledger import Ledger
place, threads, stop = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
taken = []
def write():
    with Ledger.open(place) as book:
        while time.time() < stop:
            begin = time.monotonic()
            book.reserve("people", "1/1000", purpose="load")
            taken.append(1000 * (time.monotonic() - begin))
group = [threading.Thread(target=write) for _ in range(threads)]
[thread.start() for thread in group]
[thread.join() for thread in group]
print(*taken)
"""


def measure(
    *,
    quick: bool,
    writers: int = 64,
    clients: int = 16,
    seconds: float = 20.0,
    only: tuple[Literal["ledger", "explorer", "timing", "quotes", "precision"], ...] = (),
) -> Iterator[Line]:
    """Give a table for each kind of load."""
    seconds, writers, clients = (1.0, 4, 2) if quick else (seconds, writers, clients)
    looked: tuple[Sequence[str], int, float] = (("laplace", "s1"), 2_000, 1.0)
    kinds: dict[str, Callable[[], Iterator[Line]]] = {
        "ledger": lambda: ledger_load(writers, seconds),
        "explorer": lambda: explorer_load(clients, seconds),
        "timing": lambda: timing(20 if quick else 400),
        "quotes": lambda: quotes(20_000 if quick else 5_000_000),
        "precision": lambda: precision(*(looked if quick else (claims(), 10**6, 20.0))),
    }
    for kind in only or kinds:
        yield from kinds[kind]()


def ledger_load(writers: int, seconds: float) -> Iterator[Line]:
    """Let writers reserve at once; every acknowledged spend must be in the ledger, exactly once."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "budget.db"
        with Ledger.open(place) as book:
            book.create("people", 10**6)
        processes = min(_PROCESSES, writers)
        # Starting Python takes its time; all stop together.
        stop = time.time() + seconds + 5
        command = [sys.executable, "-c", _WRITER, str(place), str(writers // processes), str(stop)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        taken = [float(line) for child in running for line in child.communicate()[0].split()]
        with Ledger.open(place) as book:
            spent = book.spent("people") * 1000
    exact = spent == len(taken) and all(child.returncode == 0 for child in running)
    yield {
        "load": "ledger",
        "writers": writers,
        "acknowledged": len(taken),
        "in the ledger": int(spent),
        "a second": len(taken) / seconds,
        **_tail(np.array(taken)),
    }
    if not exact:
        yield Failure("the ledger does not hold what it acknowledged")


def explorer_load(clients: int, seconds: float) -> Iterator[Line]:
    """Ask the explorer from many clients; every answer must be good, and memory must not grow."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.parquet"
        domain = Domain([Ordinal("age", range(100)), Ordinal("income", range(100))])
        counts = np.arange(domain.size, dtype=np.int64).reshape(domain.shape) % 97
        publish(Histogram(domain, counts), epsilon=1).save(path)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "dphist", "explore", str(path), "--port", str(port), "--no-browser"]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield from _ask_for(clients, seconds, port, server.pid)
        finally:
            server.terminate()
            server.wait()


def _ask_for(clients: int, seconds: float, port: int, process: int) -> Iterator[Line]:
    stop = time.monotonic() + seconds
    taken: list[float] = []
    bad: list[int] = []

    def ask(number: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        turn = number
        while time.monotonic() < stop:
            turn += 1
            low = turn % 90
            begin = time.monotonic()
            line.request("GET", f"/api/view?q=age+between+{low}+and+{low + 5}")
            answer = line.getresponse()
            answer.read()
            taken.append(1000 * (time.monotonic() - begin))
            if answer.status != 200:
                bad.append(answer.status)
        line.close()

    threads = [threading.Thread(target=ask, args=(7 * i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    held = []
    for _ in range(10):
        time.sleep(seconds / 10)
        held.append(_memory(process))
    for thread in threads:
        thread.join()
    # The pool's threads and caches fill up in the first fifth; after that nothing may grow.
    growth = (held[-1] - held[1]) / held[1]
    yield {
        "load": "explorer",
        "clients": clients,
        "answers": len(taken),
        "refused": len(bad),
        "a second": len(taken) / seconds,
        **_tail(np.array(taken)),
        "MB, every tenth of the time": " ".join(f"{each:.0f}" for each in held),
    }
    if bad or growth >= 0.1:
        yield Failure("the explorer refused, or its memory grew")


def timing(runs: int) -> Iterator[Line]:
    """Give how far CPU time correlates with the size of the noise, and how far it differs between data sets."""
    empty, full = np.zeros(64, dtype=np.int64), np.arange(64) * 7919 % 997
    for name in _TIMED:
        spent, size = _timed(name, empty, runs)
        other, _ = _timed(name, full, runs)
        # Ranks, because a scheduler's hiccup is a thousand times a run.
        related = np.corrcoef(np.argsort(np.argsort(spent)), np.argsort(np.argsort(size)))[0, 1]
        yield {
            "timing": name,
            "correlation with |noise|": float(related),
            "median µs, empty": float(np.median(spent)),
            "median µs, full": float(np.median(other)),
        }


def _timed(name: str, counts: NDArray[np.int64], runs: int) -> tuple[FloatArray, FloatArray]:
    mechanism, histogram = parse(name), as_histogram(counts)
    spent, size = np.empty(runs), np.empty(runs)
    for i in range(runs + 3):
        # Seeds differ from run to run; they are used so that no other draw moves the buffer.
        right, transcript = open_gate(histogram, Fraction(1), Unit(), noise=Noise(Keystream.for_tests(i)))
        begin = time.perf_counter_ns()
        mechanism.estimate(right)
        if i >= 3:
            spent[i - 3] = (time.perf_counter_ns() - begin) / 1000
            size[i - 3] = sum(float(np.abs(entry.answer).sum()) for entry in transcript)
    return spent, size


def precision(names: Sequence[str], numbers: int, seconds: float) -> Iterator[Line]:
    """Give how much of each mechanism was looked at; nothing may be seen on one side only."""
    pair = worst_pairs((64,))[1]
    every = []
    for name in names:
        once = look(parse(name), pair, 1)
        found = look(parse(name), pair, -(-numbers // max(1, once.drawn)), seconds=seconds)
        every.append(found)
        yield {
            "precision": name,
            "runs a side": found.runs,
            "numbers a side": found.drawn,
            "events": found.compared,
            "on one side only": len(found.telling),
        }
        if found.telling:
            yield Failure(f"{name} tells its neighbours apart")
    runs, drawn, compared = (
        sum(getattr(one, part) for one in every) for part in ("runs", "drawn", "compared")
    )
    yield f"{len(names)} mechanisms: {runs:,} runs, {drawn:,} numbers a side, {compared:,} events"


def quotes(rows: int) -> Iterator[Line]:
    """Give the processor time of counting a CSV file with our reader, and of the same GROUP BY with DuckDB's."""
    domain = Domain([Ordinal("age", range(100)), Ordinal("place", range(10))])
    with tempfile.TemporaryDirectory() as folder, connect() as duck:
        for words, force in (("no field quoted", ""), ("every field quoted", ", FORCE_QUOTE *")):
            path = str(Path(folder) / "rows.csv")
            columns = "hash(i) % 100 AS age, hash(i, 1) % 10 AS place, hash(i, 2) AS note"
            table = f"SELECT {columns} FROM range({rows}) AS r(i)"  # noqa: S608 -- constants of this file
            duck.execute(f"COPY ({table}) TO '{path}' (FORMAT csv{force})")
            count(path, domain)  # compiles, and brings the file into memory
            begin = time.process_time()
            group = "SELECT TRY_CAST(age AS DOUBLE), TRY_CAST(place AS DOUBLE), count(*)"
            duck.execute(f"{group} FROM read_csv('{path}', all_varchar = true) GROUP BY ALL").fetchall()
            checked = time.process_time() - begin
            begin = time.process_time()
            count(path, domain)
            counted = time.process_time() - begin
            size = Path(path).stat().st_size / 1e6
            yield {
                "quotes": words,
                "MB": size,
                "DuckDB, s": checked,
                "count, s": counted,
                "ratio": counted / checked,
            }


def _tail(taken: FloatArray) -> dict[str, float]:
    """Milliseconds that half, most and nearly all answers took, and the worst."""
    if not taken.size:
        return {}
    half, most, nearly = np.quantile(taken, [0.5, 0.95, 0.99])
    return {
        "ms": float(half),
        "ms, 95 %": float(most),
        "ms, 99 %": float(nearly),
        "worst": float(taken.max()),
    }


def _memory(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the explorer did not start")
