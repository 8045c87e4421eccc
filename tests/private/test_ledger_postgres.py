"""The ledger on PostgreSQL keeps the promises of the one in a file: the same tests, and its own troubles."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from itertools import count
from pathlib import Path

import psycopg
import pytest
from test_ledger import (  # noqa: F401 -- collected here with this file's `ledger`
    test_a_budget_is_created_once,
    test_a_clock_that_goes_back_changes_nothing,
    test_a_refusal_says_what_remains_and_spends_nothing,
    test_a_release_is_matched_with_its_entry,
    test_a_reservation_is_on_record,
    test_a_reservation_of_another_ledger_is_refused,
    test_a_reservation_opens_the_gate_once,
    test_a_tenth_and_two_tenths_are_three_tenths,
    test_a_total_is_raised_with_a_reason_and_never_lowered,
    test_amounts_are_read_as_people_write_them,
    test_an_unknown_dataset_is_met_with_names_near_it,
    test_backups_are_whole_and_never_written_over,
    test_budgets_are_apart,
    test_names_that_no_line_can_hold_are_refused,
    test_no_durations_are_kept,
    test_other_amounts_are_refused_with_the_argument_named,
    test_sums_that_grow_without_end_are_refused,
    test_threads_share_a_ledger,
    test_two_ways_to_write_one_name_are_one_budget,
)
from test_ledger_totals import (  # noqa: F401 -- the same
    test_a_pure_total_refuses_rho_and_says_which_command_helps,
    test_a_rho_total_takes_rho_and_pure_epsilon,
    test_a_spend_for_another_unit_is_converted_and_replayed,
    test_delta_of_discovered_keys_comes_from_what_was_set_aside,
    test_pure_spends_of_an_epsilon_delta_total_add_up_or_compose,
    test_what_is_left_is_quoted_in_each_reading_and_fits,
)

from dphist import errors
from dphist.private.ledger import Ledger
from dphist.private.ledger.postgres import shown
from dphist_bench.measurements.trust import ledger as experiment

pytestmark = pytest.mark.postgres
_numbers = count()


@pytest.fixture
def url(postgres_address, state_folder):
    return f"{postgres_address}/postgres#ledger_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def ledger(url):
    with Ledger.open(url) as ledger:
        yield ledger


def raw(url, *statements):
    address, _, schema = url.partition("#")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema}")
        return [cursor.fetchall() for s in statements if (cursor := connection.execute(s)).description]


def test_what_is_spent_is_seen_by_everybody(url):
    with Ledger.open(url) as one, Ledger.open(url) as other:
        one.create("adults", 1)
        one.reserve("adults", "0.25", "first")
        assert other.remaining("adults") == Fraction(3, 4)
        other.reserve("adults", "0.75", "second")
        with pytest.raises(errors.BudgetExhausted):
            one.reserve("adults", "0.01", "third")
        assert [entry.purpose for entry in one.entries("adults")] == ["first", "second"]


@pytest.mark.parametrize(
    "statement", ["UPDATE lines SET amount = '1/100'", "DELETE FROM lines", "TRUNCATE lines"]
)
def test_accidents_in_psql_are_stopped(statement, url, ledger):
    ledger.create("adults", 1)
    with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
        raw(url, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE lines DISABLE TRIGGER USER; UPDATE lines SET amount = '1/100' WHERE kind = 'reserved'",
        "ALTER TABLE lines DISABLE TRIGGER USER; DELETE FROM lines WHERE kind = 'reserved'",
        "UPDATE budgets SET spent = '0'",
        "DELETE FROM budgets",
    ],
)
def test_changed_lines_and_sums_are_noticed(statement, url, ledger):
    ledger.create("adults", 1)
    ledger.reserve("adults", "0.5", "first")
    raw(url, statement)
    with pytest.raises(errors.LedgerError, match=r"cannot be trusted|older than its witness"):
        Ledger.open(url)


def test_an_old_or_lost_ledger_is_refused(url):
    with Ledger.open(url) as ledger:
        ledger.create("adults", 1)
        ledger.reserve("adults", "0.5", "first")
    raw(url, f"DROP SCHEMA {url.partition('#')[2]} CASCADE")
    with pytest.raises(errors.LedgerError, match="older than its witness"):
        Ledger.open(url)
    with Ledger.open(url, witness=False) as empty:
        assert empty.datasets() == []


def test_a_backup_opens_as_a_file(url, ledger, tmp_path):
    ledger.create("adults", 1)
    spent = ledger.reserve("adults", "1/3", "first")
    ledger.backup(tmp_path / "copy.db")
    with Ledger.open(tmp_path / "copy.db") as copy:
        copy.verify((spent.id, spent.hash))
        assert copy.remaining("adults") == Fraction(2, 3)
    assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.db"]


def test_a_writer_that_holds_the_lock_is_waited_for_and_named(url, ledger):
    ledger.create("adults", 1)
    address, _, schema = url.partition("#")
    with psycopg.connect(address) as other, Ledger.open(url, patience=0.2) as hasty:
        other.execute(f"LOCK TABLE {schema}.lines IN EXCLUSIVE MODE")
        with pytest.raises(errors.LedgerError, match="stayed locked by another process"):
            hasty.reserve("adults", "0.5", "first")
        assert hasty.spent("adults") == 0


def test_a_connection_that_is_cut_is_made_again(url, ledger):
    ledger.create("adults", 1)
    raw(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL",
    )
    ledger.reserve("adults", "0.5", "after the cut")
    assert ledger.spent("adults") == Fraction(1, 2)


def cut_off(url, ledger):
    with ledger._store.writing() as run:
        ((own,),) = run("SELECT pg_backend_pid()")
        raw(url, f"SELECT pg_terminate_backend({own})")
        time.sleep(0.1)
        run("SELECT 1")


def test_a_commit_that_is_cut_off_is_no_acknowledgement(url, ledger):
    ledger.create("adults", 1)
    with pytest.raises(errors.LedgerError, match="nothing was acknowledged"):
        cut_off(url, ledger)
    assert ledger.spent("adults") == 0


def test_a_use_inside_another_is_refused_and_tears_nothing(ledger):
    ledger.create("adults", 1)
    with ledger._store.writing() as run:
        run("UPDATE budgets SET total = '2'")
        with pytest.raises(errors.LedgerError, match="signal handlers"):
            ledger.reserve("adults", 1, "from a signal handler")
        run("UPDATE budgets SET total = '1'")
    ledger.reserve("adults", 1, "after")
    ledger.verify()


def test_every_commit_waits_for_the_disk(ledger):
    with ledger._store.writing() as run:
        assert run("SHOW synchronous_commit") == [("on",)]
        assert run("SHOW transaction_isolation") == [("read committed",)]
    with ledger._store.reading() as run:
        assert run("SHOW transaction_read_only") == [("on",)]


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = "postgresql://me:secret@127.0.0.1:1/nowhere"
    with pytest.raises(errors.LedgerError, match="cannot be reached") as refusal:
        Ledger.open(url, patience=2)
    assert "secret" not in str(refusal.value)
    assert shown(url) == "postgresql://me@127.0.0.1:1/nowhere"


def test_other_schemas_are_left_alone(url, ledger):
    address, _, _ = url.partition("#")
    with pytest.raises(errors.LedgerError, match="lower-case"):
        Ledger.open(f"{address}#Not;one")
    raw(url, "CREATE SCHEMA IF NOT EXISTS elsewhere", "CREATE TABLE IF NOT EXISTS elsewhere.lines (x INT)")
    with pytest.raises(errors.LedgerError, match="something else than a dphist ledger"):
        Ledger.open(f"{address}#elsewhere")


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_opens_its_own_connection(url, ledger):
    ledger.create("adults", 1)
    reservation = ledger.reserve("adults", "0.5", "first")
    child = os.fork()
    if child == 0:
        code = 3
        try:
            reservation.open()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(errors.RightUsed):
        reservation.open()
    assert ledger.entries("adults")[0].status == "opened"


def test_many_processes_may_create_one_ledger_at_once(url):
    code = f"from dphist.private.ledger import Ledger; print(Ledger.open({url!r}).history()[0].hash)"
    children = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    heard = [child.communicate() for child in children]
    assert {complaint for _, complaint in heard} == {b""}
    assert len({said for said, _ in heard}) == 1


@pytest.mark.slow
def test_sixteen_processes_that_race_spend_the_budget_exactly(url, tmp_path: Path):
    counts = experiment.run_race(tmp_path, processes=16, spends=160, place=url)
    assert counts.passed, counts
    assert (counts.acknowledged, counts.entries, counts.refusals) == (160, 160, 16)


@pytest.mark.slow
def test_processes_that_race_for_an_epsilon_delta_total_spend_it_exactly(url, tmp_path: Path):
    counts = experiment.run_race(tmp_path, 4, experiment.COMPOSED, place=url, kind="epsilon, delta")
    assert counts.passed, counts
    assert (counts.entries, counts.refusals) == (experiment.COMPOSED, 4)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this platform has no kill -9")
def test_nothing_acknowledged_is_lost_to_kill_9(url, tmp_path: Path):
    counts = experiment.run_kills(tmp_path, processes=6, kills=30, seed=1, place=url)
    assert counts.passed, counts
    assert counts.kills == 30
    assert counts.entries >= counts.acknowledged > 0
