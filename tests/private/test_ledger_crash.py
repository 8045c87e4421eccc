"""Many processes, and processes that die at any point: nothing acknowledged is lost, nothing overspent."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import pytest

from dphist import errors
from dphist.private.ledger import Head, Ledger
from dphist_bench.measurements.trust import ledger as experiment

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this platform has no kill -9")


@pytest.mark.parametrize(
    ("kind", "processes", "spends"),
    [("epsilon", 8, 80), ("rho", 4, 40), ("epsilon, delta", 4, experiment.COMPOSED)],
)
def test_processes_that_race_spend_the_budget_exactly(kind, processes, spends, tmp_path):
    counts = experiment.run_race(tmp_path, processes=processes, spends=spends, kind=kind)
    assert counts.passed, counts
    assert (counts.acknowledged, counts.entries, counts.refusals) == (spends, spends, processes)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path):
    counts = experiment.run_kills(tmp_path, processes=6, kills=40, seed=1)
    assert counts.passed, counts
    assert counts.kills == 40
    assert counts.entries >= counts.acknowledged > 0


def test_the_count_notices_a_loss_and_an_overspend(tmp_path):
    # The experiment must be able to fail: here is a ledger that forgot, and one that overspent.
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        ledger.create("round-1", 1)
        kept = ledger.reserve("round-1", 0.5, "kept")

    class Child:
        heard = f"ready\nspent {kept.id} {kept.hash} 1/2 round-1\nspent 9 {'0' * 64} 1/2 round-1\n".encode()

    counts = experiment.Counts(1)
    experiment._count(path, [Child()], counts)  # type: ignore[list-item]
    assert (counts.acknowledged, counts.lost, counts.overspends) == (2, 1, 0)
    with closing(sqlite3.connect(path)) as file:
        file.execute(
            "INSERT INTO lines SELECT number + 1, kind, dataset, '2/3', purpose, unit, time, subject, "
            "digest, 'x' FROM lines WHERE kind = 'reserved'"
        )
        file.commit()
    counts = experiment.Counts(1)
    experiment._count(path, [], counts)
    assert (counts.overspends, counts.mismatches, len(counts.failures)) == (1, 1, 1)


# Dies before its k-th SQL statement: every point of a transaction as seen from outside SQLite.
DIE = """
import os, signal, sys
from dphist.private.ledger import Ledger
path, when = sys.argv[1], int(sys.argv[2])
with Ledger.open(path) as ledger:
    seen = 0
    def trace(sql):
        global seen
        seen += 1
        if seen == when:
            os.kill(os.getpid(), signal.SIGKILL)
    ledger._store._connected().set_trace_callback(trace)
    r = ledger.reserve("adults", "0.1", "doomed")
    os.write(1, f"{r.id} {r.hash}\\n".encode())
    r.open()
    os.write(1, b"opened\\n")
    r.complete("sha256:aa")
    os.write(1, b"published\\n")
"""


@pytest.mark.slow
def test_death_at_every_statement_leaves_a_sound_ledger(tmp_path):
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        ledger.create("adults", 100)
    seen, finished = set(), False
    for when in range(1, 60):
        with Ledger.open(path) as ledger:
            before = ledger.spent("adults")
        done = subprocess.run(
            [sys.executable, "-c", DIE, str(path), str(when)], capture_output=True, text=True
        )
        said = done.stdout.split("\n")[:-1]
        with Ledger.open(path) as ledger:
            spent = ledger.spent("adults") - before
            assert spent in (0, Fraction(1, 10))
            ledger.verify()
            if said:
                number, seal = said[0].split()
                ledger.verify(Head(int(number), seal))
                assert spent == Fraction(1, 10)
                status = ledger.entries("adults")[-1].status
                assert (
                    status
                    in {1: ("reserved", "opened"), 2: ("opened", "published"), 3: ("published",)}[len(said)]
                )
        seen.add((len(said), spent))
        if done.returncode == 0:
            finished = True
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    # Death before the commit, after the reservation, after the opening, and none.
    assert finished
    assert {(0, 0), (1, Fraction(1, 10)), (2, Fraction(1, 10)), (3, Fraction(1, 10))} <= seen


def test_a_log_cut_anywhere_gives_an_earlier_state_and_the_witness_says_so(tmp_path):
    """What a disk that lies about syncing could leave behind."""
    path, cut = tmp_path / "budget.db", tmp_path / "cut.db"
    heads = []
    with Ledger.open(path) as ledger:
        ledger.create("adults", 1)
        for _ in range(6):
            ledger.reserve("adults", 0.1, "spend")
            heads.append(ledger.head())
        base, log = path.read_bytes(), path.with_name("budget.db-wal").read_bytes()
    found = set()
    for size in range(0, len(log), 2999):
        for leftover in tmp_path.glob("cut.db*"):
            leftover.unlink()
        cut.write_bytes(base)
        cut.with_name("cut.db-wal").write_bytes(log[:size])
        with Ledger.open(cut, witness=False) as ledger:
            if ledger.datasets():
                found.add(ledger.spent("adults"))
                assert ledger.head().number <= heads[-1].number
        shutil.copy(path.with_name("budget.db.witness"), cut.with_name("cut.db.witness"))
        with pytest.raises(errors.LedgerError, match="older than its witness"):
            Ledger.open(cut)
    assert len(found) > 3


def test_many_processes_may_create_one_ledger_at_once(tmp_path):
    path = tmp_path / "budget.db"
    code = f"from dphist.private.ledger import Ledger; print(Ledger.open({str(path)!r}).history()[0].hash)"
    children = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    heard = [child.communicate() for child in children]
    assert {errors_said for _, errors_said in heard} == {b""}
    assert len({said for said, _ in heard}) == 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_one_reservation_opens_once_over_processes(tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("this platform does not fork")
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("adults", 1)
        reservation = ledger.reserve("adults", 1, "once")
        children = []
        for _ in range(6):
            child = os.fork()
            if child == 0:
                code = 2
                try:
                    reservation.open()
                    code = 0
                except errors.RightUsed:
                    code = 1
                finally:
                    os._exit(code)
            children.append(child)
        codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 1, 1, 1, 1, 1]
