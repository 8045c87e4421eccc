"""What users of a ledger rely on."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from dphist import errors
from dphist.model.exact import shown
from dphist.private.ledger import Ledger, wording


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        yield ledger


@pytest.mark.parametrize("written", [0.1, "0.1", "1/10", Fraction(1, 10), Decimal("0.1"), "1e-1"])
def test_amounts_are_read_as_people_write_them(written, ledger):
    ledger.create("adults", written)
    assert ledger.total("adults") == Fraction(1, 10)
    assert ledger.reserve("adults", written, "all").epsilon == Fraction(1, 10)


NOT_AMOUNTS = [
    *(0, -1, "0", "-0.1", "", "abc", "1/0", "nan", "inf", float("nan"), float("inf"), True, None, [1], 1j),
    *("1e999999999", "1e-999999999", "1" * 5000, "1/-3"),
    *(Decimal("NaN"), Decimal("1e999999"), 10**500),
]


@pytest.mark.parametrize("written", NOT_AMOUNTS)
def test_other_amounts_are_refused_with_the_argument_named(written, ledger):
    ledger.create("adults", 1)
    with pytest.raises(errors.EpsilonError, match="epsilon"):
        ledger.reserve("adults", written, "test")
    with pytest.raises(errors.EpsilonError, match="total"):
        ledger.create("others", written)
    assert ledger.spent("adults") == 0
    assert ledger.datasets() == ["adults"]


def test_a_tenth_and_two_tenths_are_three_tenths(ledger):
    assert 0.1 + 0.2 > 0.3
    ledger.create("adults", 0.3)
    ledger.reserve("adults", 0.1, "first")
    ledger.reserve("adults", 0.2, "second")
    assert ledger.remaining("adults") == 0
    with pytest.raises(errors.BudgetExhausted):
        ledger.reserve("adults", "1e-50", "third")


def test_a_reservation_is_on_record(ledger):
    ledger.create("adults", "1.5")
    reservation = ledger.reserve("adults", "1/3", "age pyramid", unit="one person, one row")
    assert (reservation.dataset, reservation.epsilon) == ("adults", Fraction(1, 3))
    (entry,) = ledger.entries("adults")
    assert (entry.id, entry.hash, entry.when) == (reservation.id, reservation.hash, reservation.when)
    assert (entry.epsilon, entry.purpose, entry.unit) == (
        Fraction(1, 3),
        "age pyramid",
        "one person, one row",
    )
    assert (entry.status, entry.digest) == ("reserved", "")
    assert (ledger.total("adults"), ledger.spent("adults")) == (Fraction(3, 2), Fraction(1, 3))
    assert ledger.remaining("adults") == Fraction(7, 6)
    assert reservation.when.tzinfo is not None


def test_a_refusal_says_what_remains_and_spends_nothing(ledger):
    ledger.create("adults", 1)
    ledger.reserve("adults", 0.7, "first")
    before = ledger.head()
    with pytest.raises(
        errors.BudgetExhausted, match=r"0\.5 was asked and 0\.3 of 1 remains.*at most 0\.3"
    ) as refusal:
        ledger.reserve("adults", 0.5, "second")
    assert refusal.value.exit_code == 3
    assert ledger.head() == before
    ledger.reserve("adults", 0.3, "fits")
    with pytest.raises(errors.BudgetExhausted, match="answer from the releases"):
        ledger.reserve("adults", 0.3, "third")


def test_an_unknown_dataset_is_met_with_names_near_it(ledger):
    with pytest.raises(errors.UnknownDataset, match="no budgets yet"):
        ledger.spent("adults")
    ledger.create("adults", 1)
    ledger.create("patients", 1)
    for ask in (ledger.spent, ledger.total, ledger.remaining, ledger.entries):
        with pytest.raises(errors.UnknownDataset, match="did you mean 'adults'"):
            ask("adult")
    with pytest.raises(errors.UnknownDataset, match="'adults' or 'patients'"):
        ledger.reserve("zzz", 1, "test")


def test_budgets_are_apart(ledger):
    ledger.create("adults", 1)
    ledger.create("children", 2)
    ledger.reserve("adults", 1, "all of it")
    assert ledger.remaining("children") == 2
    assert ledger.entries("children") == []
    assert ledger.datasets() == ["adults", "children"]


def test_a_budget_is_created_once(ledger):
    ledger.create("adults", 1)
    with pytest.raises(errors.InputError, match="already has a budget"):
        ledger.create("adults", 5)
    assert ledger.total("adults") == 1


def test_a_total_is_raised_with_a_reason_and_never_lowered(ledger):
    ledger.create("adults", 1)
    ledger.reserve("adults", 1, "first")
    for total in (0.5, 1):
        with pytest.raises(errors.InputError, match="must be larger than"):
            ledger.raise_total("adults", total, "why not")
    with pytest.raises(errors.InputError, match="purpose"):
        ledger.raise_total("adults", 2, " ")
    ledger.raise_total("adults", "1.25", "new wave of the survey, approved by the board")
    assert (ledger.remaining("adults"), ledger.spent("adults")) == (Fraction(1, 4), 1)
    last = ledger.history()[-1]
    assert (last.kind, last.amount) == ("raised", "5/4")
    assert "approved" in last.purpose


def test_a_reservation_opens_the_gate_once(ledger, tmp_path):
    ledger.create("adults", 1)
    reservation = ledger.reserve("adults", 0.5, "first")
    twin = copy.copy(reservation)
    reservation.open()
    for again in (reservation, twin):
        with pytest.raises(errors.RightUsed, match="reserve again"):
            again.open()
    assert ledger.entries("adults")[0].status == "opened"
    assert ledger.spent("adults") == Fraction(1, 2)


def test_a_release_is_matched_with_its_entry(ledger):
    ledger.create("adults", 1)
    reservation = ledger.reserve("adults", 0.5, "first")
    with pytest.raises(errors.InputError, match="not opened the gate"):
        reservation.complete("sha256:aa")
    reservation.open()
    reservation.complete("sha256:aa")
    ledger.complete(reservation.id, "sha256:aa")  # republishing saved bytes is free
    with pytest.raises(errors.InputError, match="another release"):
        ledger.complete(reservation, "sha256:bb")
    with pytest.raises(errors.InputError, match="no reservation 99"):
        ledger.complete(99, "sha256:aa")
    (entry,) = ledger.entries("adults")
    assert (entry.status, entry.digest) == ("published", "sha256:aa")
    with pytest.raises(errors.RightUsed):
        reservation.open()


def test_a_reservation_of_another_ledger_is_refused(ledger, tmp_path):
    with Ledger.open(tmp_path / "other.db") as other:
        for book in (ledger, other):
            book.create("adults", 1)
            book.reserve("adults", 0.5, "first")
        foreign = other.reserve("adults", 0.5, "second")
        ledger.reserve("adults", 0.5, "second")
        with pytest.raises(errors.InputError, match="like this one"):
            ledger.complete(foreign, "sha256:aa")


def test_no_durations_are_kept(ledger):
    ledger.create("adults", 1)
    reservation = ledger.reserve("adults", 0.5, "first")
    reservation.open()
    reservation.complete("sha256:aa")
    times = {line.kind: line.time for line in ledger.history()}
    assert times["reserved"].endswith("+00:00")
    assert "." not in times["reserved"]
    assert times["opened"] == times["published"] == ""


def test_a_clock_that_goes_back_changes_nothing(ledger, monkeypatch):
    ledger.create("adults", 1)
    years = iter([2030, 2020, 2025])

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(next(years), 1, 1, tzinfo=UTC)

    monkeypatch.setattr(wording, "datetime", Clock)
    for purpose in "abc":
        ledger.reserve("adults", 0.1, purpose)
    assert [entry.purpose for entry in ledger.entries("adults")] == ["a", "b", "c"]
    assert [entry.when.year for entry in ledger.entries("adults")] == [2030, 2020, 2025]
    ledger.verify()


ODD = [
    "a'b\"; DROP TABLE lines;--",
    "été 🏥",
    "a/b\\c",
    "%s ? :x",
    "  spaced  ",
    "x" * 3000,
    "\u202eright",
    "0",
    "NULL",
]


@pytest.mark.parametrize("name", ODD)
def test_names_may_be_odd(name, tmp_path):
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        ledger.create(name, 1)
        ledger.reserve(name, 0.5, name, unit=name)
    with Ledger.open(path) as ledger:
        assert ledger.datasets() == [name]
        assert ledger.entries(name)[0].purpose == name


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", "\ud800", 7, None])
def test_names_that_no_line_can_hold_are_refused(name, ledger):
    with pytest.raises(errors.InputError, match="dataset"):
        ledger.create(name, 1)
    ledger.create("adults", 1)
    with pytest.raises(errors.InputError, match="purpose"):
        ledger.reserve("adults", 1, name)
    assert ledger.spent("adults") == 0


def test_two_ways_to_write_one_name_are_one_budget(ledger):
    ledger.create("été", 1)
    with pytest.raises(errors.InputError, match="already"):
        ledger.create("e\u0301te\u0301", 1)
    ledger.reserve("e\u0301te\u0301", 1, "all")
    assert ledger.remaining("été") == 0


@pytest.mark.parametrize("name", ["budget.db", "with space?.db", "100%.db", "été#1.db"])
def test_paths_may_be_odd(name, tmp_path, monkeypatch):
    with Ledger.open(tmp_path / name) as ledger:
        ledger.create("adults", 1)
    monkeypatch.chdir(tmp_path)
    with Ledger.open(name) as here, Ledger.open(str(tmp_path / name)) as there:
        assert here.datasets() == there.datasets() == ["adults"]
        assert here.head() == there.head()


def test_urls_follow_the_usual_slashes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger.open("sqlite:///budget%20one.db") as ledger:
        ledger.create("adults", 1)
    with Ledger.open(f"sqlite:///{tmp_path}/budget one.db") as ledger:
        assert ledger.datasets() == ["adults"]
    assert (tmp_path / "budget one.db").exists()


@pytest.mark.parametrize(
    "place", ["mysql://host/db", "sqlite://", "sqlite:///", "sqlite://host/x", "", ":memory:"]
)
def test_other_places_are_refused_with_what_is_accepted(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.LedgerError, match="give a path"):
        Ledger.open(place)
    assert list(tmp_path.iterdir()) == []


def test_a_symbolic_link_leads_to_the_same_ledger(ledger, tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "budget.db")
    ledger.create("adults", 1)
    with Ledger.open(tmp_path / "link.db") as linked:
        linked.reserve("adults", 1, "all")
    assert ledger.remaining("adults") == 0


def test_a_hard_link_is_refused_by_both_names(ledger, tmp_path):
    """SQLite keeps a log beside each name: two processes had spent the same ε, and one spend was gone in the end."""
    ledger.create("adults", 1)
    other = tmp_path / "other.db"
    other.hardlink_to(tmp_path / "budget.db")
    with pytest.raises(errors.LedgerError, match="hard links"):
        Ledger.open(other)
    with pytest.raises(errors.LedgerError, match="hard links"):
        ledger.reserve("adults", 1, "all")
    other.unlink()
    ledger.reserve("adults", 1, "all")
    assert ledger.remaining("adults") == 0


MOUNTS = """\
25 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 25 254:0 {folder}/outside/budget.db {folder}/a\\040box/budget.db rw - ext4 /dev/vda rw
32 25 0:44 / {folder}/share rw shared:2 - nfs4 server:/share rw
33 32 254:1 / {folder}/share/disk rw - ext4 /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("place", "said"),
    [("a box", "mounted by itself.*mount its folder"), ("share", "network file system"), ("share/disk", "")],
)
def test_a_file_whose_log_others_do_not_see_is_refused(place, said, tmp_path, monkeypatch):
    """SQLite keeps a log beside each mount of a file: two containers had spent the same ε, and one spend was gone."""
    from dphist.private.ledger import sqlite

    (tmp_path / place).mkdir(parents=True)
    table = tmp_path / "mountinfo"
    # A folder whose name is no text, and a line of another kind, kept all of the others from being looked at.
    table.write_bytes(
        b"?\n24 25 0:9 / /mnt/\xff\xfe rw - ext4 x rw\n" + MOUNTS.format(folder=tmp_path).encode()
    )
    monkeypatch.setattr(sqlite, "_MOUNTS", table)
    if not said:
        Ledger.open(tmp_path / place / "budget.db").close()
        return
    with pytest.raises(errors.LedgerError, match=said):
        Ledger.open(tmp_path / place / "budget.db")


def test_sums_that_grow_without_end_are_refused(ledger):
    ledger.create("adults", 10)

    def spend_awkwardly():
        for k in range(100):
            ledger.reserve("adults", Fraction(1, 10**300 + 2 * k + 1), "awkward")

    with pytest.raises(errors.EpsilonError, match="small denominators"):
        spend_awkwardly()
    ledger.reserve("adults", 0.1, "still works")
    ledger.verify()


def test_amounts_are_shown_exactly_or_said_to_be_about():
    assert shown(Fraction(3, 10)) == "0.3"
    assert shown(Fraction(1, 3)) == "1/3 (about 0.3333)"
    assert shown(Fraction(1, 10**300 + 1)).startswith("about 1.00000e-300")
    assert shown(Fraction(10**400 + 1)).startswith("about 1")


def test_a_closed_ledger_says_so(tmp_path):
    ledger = Ledger.open(tmp_path / "budget.db")
    ledger.create("adults", 1)
    reservation = ledger.reserve("adults", 1, "all")
    ledger.close()
    ledger.close()
    for use in (ledger.datasets, reservation.open, ledger.verify):
        with pytest.raises(errors.LedgerError, match="closed"):
            use()
    assert not (tmp_path / "budget.db-wal").exists()


def test_a_ledger_is_not_copied(ledger):
    ledger.create("adults", 1)
    for thing in (ledger, ledger.reserve("adults", 1, "all")):
        with pytest.raises(TypeError, match="open it again"):
            pickle.dumps(thing)
    assert "budget.db" in repr(ledger)


def test_every_commit_is_synced(ledger):
    ledger.create("adults", 1)
    with ledger._store.reading() as run:
        assert run("PRAGMA synchronous") == [(2,)]
        assert run("PRAGMA journal_mode") == [("wal",)]


def test_a_use_inside_another_is_refused_and_tears_nothing(ledger):
    ledger.create("adults", 1)
    with ledger._store.writing() as run:
        run("UPDATE budgets SET total = '2'")
        with pytest.raises(errors.LedgerError, match="signal handlers"):
            ledger.reserve("adults", 1, "from a signal handler")
        run("UPDATE budgets SET total = '1'")
        assert ledger._store._connection.in_transaction
    ledger.reserve("adults", 1, "after")
    ledger.verify()


def test_threads_share_a_ledger(ledger):
    ledger.create("adults", 5)
    refused = []

    def spend():
        for _ in range(10):
            try:
                ledger.reserve("adults", 0.1, "thread")
            except errors.BudgetExhausted:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries("adults")) == 50
    assert len(refused) == 30


def forks(test):
    """Mark a test that forks; Python 3.12 warns of doing so beside threads, which is what is tested here."""
    test = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")(test)


def _in_child(action):
    """Fork, run the action in the child, and return whether it went well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@forks
def test_a_fork_does_not_share_the_connection(ledger):
    ledger.create("adults", 1)
    kept = ledger.reserve("adults", 0.1, "parent")
    assert ledger._store._connection is not None

    def child():
        assert ledger._store._connection is None
        ledger.reserve("adults", 0.2, "child")
        kept.open()
        ledger.close()

    assert _in_child(child)
    assert ledger._store._connection is None
    assert ledger.spent("adults") == Fraction(3, 10)
    with pytest.raises(errors.RightUsed):
        kept.open()
    ledger.reserve("adults", 0.7, "parent again")
    ledger.verify()


@forks
def test_a_connection_that_crosses_a_fork_unnoticed_is_left_alone(ledger, monkeypatch):
    from dphist.private.ledger import store

    ledger.create("adults", 1)
    old = ledger._store._connection
    # As after a fork made by C code, which runs no hooks: the connection is there, its owner is not.
    monkeypatch.setattr(store, "_inherited", [])
    ledger._store._owner = -1
    ledger.reserve("adults", 0.1, "child")
    assert store._inherited == [old]
    assert ledger._store._connection is not old
    old.close()


@forks
def test_a_fork_waits_for_the_transaction_of_another_thread(ledger):
    ledger.create("adults", 100)
    stop = threading.Event()

    def spend():
        while not stop.wait(0.001):  # SQLite does not queue writers; leave the children a chance
            ledger.reserve("adults", 0.001, "thread")

    thread = threading.Thread(target=spend)
    thread.start()
    try:
        assert all(_in_child(lambda: ledger.reserve("adults", 1, "child")) for _ in range(5))
    finally:
        stop.set()
        thread.join()
    assert sum(entry.purpose == "child" for entry in ledger.entries("adults")) == 5
    ledger.verify()


def test_importing_the_ledger_stays_light():
    heavy = "numpy scipy numba duckdb ibis pandas"
    code = (
        "import sys, dphist; before = set(sys.modules); import dphist.private.ledger; "
        f"print(*[m for m in {heavy.split()!r} if m in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_backups_are_whole_and_never_written_over(ledger, tmp_path):
    ledger.create("adults", 1)
    ledger.reserve("adults", 0.5, "first")
    ledger.backup(tmp_path / "copy.db")
    with pytest.raises(errors.OutputError, match="exists"):
        ledger.backup(tmp_path / "copy.db")
    with pytest.raises(errors.OutputError, match="cannot be written"):
        ledger.backup(tmp_path / "nowhere" / "copy.db")
    head = ledger.head()
    ledger.reserve("adults", 0.25, "second")
    with Ledger.open(tmp_path / "copy.db", witness=False) as copied:
        assert copied.verify(head) == head
        assert copied.spent("adults") == Fraction(1, 2)
    assert not list(Path(tmp_path).glob("*.partial"))
