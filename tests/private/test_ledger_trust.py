"""A ledger that was damaged, rolled back, or put where it cannot work is refused by name."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import pytest

from dphist import errors
from dphist.private.ledger import Head, Ledger
from dphist.private.ledger.sqlite import _explained
from dphist.private.ledger.store import FORMAT


@pytest.fixture
def path(tmp_path):
    """Return a ledger with a little history, closed."""
    path = tmp_path / "budget.db"
    with Ledger.open(path) as ledger:
        ledger.create("adults", 1)
        for purpose in ("first", "second", "third"):
            ledger.reserve("adults", 0.1, purpose)
    return path


def tamper(path, *statements):
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TRIGGER IF EXISTS lines_are_not_changed")
        file.execute("DROP TRIGGER IF EXISTS lines_are_not_removed")
        for statement in statements:
            file.execute(statement)
        file.commit()


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE lines SET amount = '1/100' WHERE number = 3", "line 3: the line was changed"),
        ("UPDATE lines SET purpose = 'other' WHERE number = 4", "line 4: the line was changed"),
        (
            "UPDATE lines SET amount = x'00' WHERE number = 4",
            "line 4: amount is missing or of the wrong type",
        ),
        ("UPDATE lines SET kind = 'refund' WHERE number = 4", "line 4: the line was changed"),
        ("DELETE FROM lines WHERE number = 3", "line 3: a line is missing"),
        ("DELETE FROM lines WHERE number = 1", "line 1: a line is missing"),
        ("UPDATE budgets SET spent = '1/10'", "sums are not those of its entries"),
        ("UPDATE budgets SET spent = '6/20'", "sums are not those of its entries"),
        ("UPDATE budgets SET total = '100'", "sums are not those of its entries"),
        ("UPDATE budgets SET dataset = 'children'", "sums are not those of its entries"),
        ("DELETE FROM budgets", "sums are not those of its entries"),
        ("INSERT INTO budgets VALUES ('children', '1', '0')", "sums are not those of its entries"),
    ],
)
def test_changed_lines_and_sums_are_noticed(path, statement, complaint):
    tamper(path, statement)
    with pytest.raises(errors.LedgerError, match=complaint):
        Ledger.open(path, witness=False)


def forge(path, *lines, spent, total="1"):
    """Append lines whose hashes are right, as someone who knows the format could."""
    from dphist.private.ledger.lines import COLUMNS, Line

    with closing(sqlite3.connect(path)) as file:
        number, previous = file.execute(
            "SELECT number, hash FROM lines ORDER BY number DESC LIMIT 1"
        ).fetchone()
        for content in lines:
            number += 1
            line = Line(number=number, **content).sealed(previous)
            previous = line.hash
            row = [getattr(line, name) for name in COLUMNS]
            file.execute(f"INSERT INTO lines VALUES ({', '.join('?' * len(row))})", row)
        file.execute("UPDATE budgets SET spent = ?, total = ?", (spent, total))
        file.commit()


TIME = "2025-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            {"kind": "reserved", "dataset": "adults", "amount": "1", "time": TIME},
            "more is spent than the total",
        ),
        ({"kind": "reserved", "dataset": "adults", "amount": "-1", "time": TIME}, "not an amount"),
        ({"kind": "reserved", "dataset": "adults", "amount": "0", "time": TIME}, "not positive"),
        ({"kind": "reserved", "dataset": "adults", "amount": "2/20", "time": TIME}, "lowest terms"),
        ({"kind": "reserved", "dataset": "adults", "amount": "1/10", "time": "noon"}, "noon"),
        ({"kind": "reserved", "dataset": "nobody", "amount": "1/10", "time": TIME}, "never created"),
        ({"kind": "raised", "dataset": "adults", "amount": "1/2"}, "lowered"),
        ({"kind": "created", "dataset": "adults", "amount": "9"}, "created twice"),
        ({"kind": "opened", "dataset": "adults", "subject": 2}, "out of turn"),
        ({"kind": "published", "dataset": "adults", "subject": 3}, "out of turn"),
        ({"kind": "opened", "dataset": "nobody", "subject": 3}, "out of turn"),
        ({"kind": "began"}, "does not start"),
        ({"kind": "refunded", "dataset": "adults", "amount": "1/10"}, "unknown kind"),
    ],
)
def test_lines_that_break_a_rule_are_noticed_though_well_chained(path, line, complaint):
    forge(path, line, spent="3/10")
    with pytest.raises(errors.LedgerError, match=complaint):
        Ledger.open(path)


def test_a_well_made_line_is_accepted(path):
    # The test above can fail only because of the rules: the same forgery within the rules opens.
    forge(path, {"kind": "reserved", "dataset": "adults", "amount": "1/10", "time": TIME}, spent="2/5")
    with Ledger.open(path) as ledger:
        assert ledger.spent("adults") == Fraction(2, 5)


def test_damage_done_while_open_is_noticed_before_the_next_spend(path):
    with Ledger.open(path) as ledger:
        tamper(path, "UPDATE budgets SET spent = '0'")
        for use in (lambda: ledger.reserve("adults", 0.1, "next"), lambda: ledger.spent("adults")):
            with pytest.raises(errors.LedgerError, match="sums"):
                use()


def test_lines_removed_while_open_are_noticed(path):
    with Ledger.open(path) as ledger:
        tamper(path, "DELETE FROM lines WHERE number = 5", "UPDATE budgets SET spent = '1/5'")
        with pytest.raises(errors.LedgerError, match="have gone"):
            ledger.reserve("adults", 0.1, "next")


@pytest.mark.parametrize("statement", ["UPDATE lines SET amount = '0'", "DELETE FROM lines"])
def test_accidents_in_the_shell_are_stopped(path, statement):
    with closing(sqlite3.connect(path)) as file, pytest.raises(sqlite3.IntegrityError, match="never"):
        file.execute(statement)


def roll_back(path):
    """Spend after a backup, then put the backup in place."""
    with Ledger.open(path) as ledger:
        ledger.backup(path.with_name("old.db"))
        ledger.reserve("adults", 0.5, "after the backup")
        head = ledger.head()
    shutil.copy(path.with_name("old.db"), path)
    return head


def test_an_old_ledger_put_back_is_refused(path):
    roll_back(path)
    with pytest.raises(errors.LedgerError, match=r"older than its witness.*newest ledger"):
        Ledger.open(path)


def test_the_way_out_is_to_write_off_what_is_lost(path):
    roll_back(path)
    path.with_name("budget.db.witness").rename(path.with_name("witness.lost"))
    with Ledger.open(path) as ledger:
        ledger.reserve("adults", 0.5, "lost with the disk; release sha256:…")
        assert ledger.remaining("adults") == Fraction(1, 5)
    with Ledger.open(path) as ledger:
        ledger.verify()


def test_a_head_noted_elsewhere_is_a_witness_too(path):
    head = roll_back(path)
    with Ledger.open(path, witness=False) as ledger:
        assert ledger.verify() == ledger.head()
        with pytest.raises(errors.LedgerError, match="Compare it with your note"):
            ledger.verify(head)
        ledger.reserve("adults", 0.5, "another history, as long as the first")
        with pytest.raises(errors.LedgerError, match="Compare it with your note"):
            ledger.verify(head)


@pytest.mark.parametrize("loss", ["removed", "emptied"])
def test_a_lost_ledger_is_not_replaced_by_an_empty_one(path, loss):
    path.unlink()
    if loss == "emptied":
        path.touch()
    with pytest.raises(errors.LedgerError, match="older than its witness"):
        Ledger.open(path)
    assert path.exists() == (loss == "emptied")


def test_another_ledger_in_its_place_is_refused(path, tmp_path):
    with Ledger.open(tmp_path / "other.db") as other:
        other.create("adults", 1)
        for _ in range(9):
            other.reserve("adults", 0.1, "longer than the first")
    shutil.copy(tmp_path / "other.db", path)
    with pytest.raises(errors.LedgerError, match="or another one"):
        Ledger.open(path)


def test_a_witness_may_live_elsewhere(path, tmp_path):
    elsewhere = tmp_path / "safe" / "witness"
    elsewhere.parent.mkdir()
    with Ledger.open(path, witness=elsewhere) as ledger:
        ledger.reserve("adults", 0.1, "seen from afar")
        head = ledger.head()
    assert elsewhere.read_text().split() == [str(head.number), head.hash]


def test_a_lost_witness_is_begun_again(path):
    path.with_name("budget.db.witness").unlink()
    with Ledger.open(path) as ledger:
        ledger.reserve("adults", 0.1, "next")
    roll_back(path)
    with pytest.raises(errors.LedgerError, match="older"):
        Ledger.open(path)


def test_a_note_cut_short_is_passed_over(path):
    witness = path.with_name("budget.db.witness")
    for torn in (b"9", b"99 abc", b"\xff\xfe"):
        with witness.open("ab") as notes:
            notes.write(torn)
        with Ledger.open(path) as ledger:
            ledger.reserve("adults", 0.01, "next")
            head = ledger.head()
    from dphist.private.ledger.journal import Witness

    assert Witness(witness).head() == head


def test_a_witness_that_is_a_folder_is_named(path):
    witness = path.with_name("budget.db.witness")
    witness.unlink()
    witness.mkdir()
    with pytest.raises(errors.LedgerError, match=r"budget\.db\.witness cannot be read"):
        Ledger.open(path)


def test_a_witness_that_cannot_be_written_does_not_hide_the_spend(path, tmp_path):
    folder = tmp_path / "safe"
    folder.mkdir()
    with Ledger.open(path, witness=folder / "witness") as ledger:
        folder.rmdir()
        with pytest.raises(errors.LedgerError, match="stays spent"):
            ledger.reserve("adults", 0.1, "next")
        assert ledger.spent("adults") == Fraction(4, 10)


def test_a_file_replaced_while_open_is_noticed(path):
    with Ledger.open(path) as ledger:
        ledger.backup(path.with_name("old.db"))
        path.with_name("old.db").replace(path)
        with pytest.raises(errors.LedgerError, match="moved or replaced"):
            ledger.reserve("adults", 0.1, "would be lost")


def test_a_file_removed_while_open_is_not_created_again(path):
    with Ledger.open(path) as ledger:
        ledger._store._hang_up()
        path.unlink()
        with pytest.raises(errors.LedgerError, match="moved or replaced"):
            ledger.reserve("adults", 0.1, "would be lost")
    assert not path.exists()


def test_what_is_not_a_database_is_refused_and_untouched(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a ledger\n" * 100)
    with pytest.raises(errors.LedgerError, match="not a ledger"):
        Ledger.open(path)
    assert path.read_text() == "not a ledger\n" * 100


def test_another_database_is_refused_and_untouched(tmp_path):
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE people (name TEXT)")
        file.commit()
    before = path.read_bytes()
    with pytest.raises(errors.LedgerError, match="not a dphist ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [FORMAT + 1, 0])
def test_another_format_is_refused(path, version):
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(
        errors.LedgerError, match=f"has format {version} and this dphist reads format {FORMAT}"
    ):
        Ledger.open(path)


@pytest.mark.parametrize("witness", [True, False])
def test_a_truncated_file_never_opens_with_less_spent(path, witness):
    whole = path.read_bytes()
    # The last bytes of a page may hold nothing, so only near the end may a cut go unnoticed, and harmlessly.
    for size in [1, 50, 99, 100, 511, 512, *range(1000, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:size])
        try:
            with Ledger.open(path, witness=witness) as ledger:
                assert ledger.spent("adults") == Fraction(3, 10)
                assert size > len(whole) - 64
        except errors.LedgerError:
            pass
        for leftover in ("-wal", "-shm"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)


def test_damaged_pages_never_open_with_less_spent(path):
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 311):
        path.write_bytes(whole[:place] + bytes(64) + whole[place + 64 :])
        try:
            with Ledger.open(path) as ledger:
                assert ledger.spent("adults") == Fraction(3, 10)
                assert len(ledger.entries("adults")) == 3
        except errors.LedgerError:
            refused += 1
        for leftover in ("-wal", "-shm"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)
    assert refused > 0


def test_folders_and_missing_folders_are_named(tmp_path):
    with pytest.raises(errors.LedgerError, match="folder must exist"):
        Ledger.open(tmp_path / "nowhere" / "budget.db")
    with pytest.raises(errors.LedgerError, match="cannot be opened"):
        Ledger.open(tmp_path)


def test_a_full_disk_spends_nothing_that_is_acknowledged(path):
    with Ledger.open(path) as ledger:
        (pages,) = ledger._store._connected().execute("PRAGMA page_count").fetchone()
        ledger._store._connected().execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(errors.LedgerError, match=r"disk .* is full.*draw no noise"):
            ledger.reserve("adults", 0.1, "long " * 5000)
        assert ledger.spent("adults") == Fraction(3, 10)
        ledger._store._connected().execute("PRAGMA max_page_count = 1000000")
        ledger.reserve("adults", 0.1, "room again")
        ledger.verify()


def test_a_ledger_that_stays_locked_says_so(path):
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as hog,
        Ledger.open(path, patience=0.1) as ledger,
    ):
        hog.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.LedgerError, match="stayed locked"):
            ledger.reserve("adults", 0.1, "waiting")
        assert ledger.spent("adults") == Fraction(3, 10)  # reading never waits
        hog.execute("ROLLBACK")
        ledger.reserve("adults", 0.1, "free again")


AS_NOBODY = """
import os, sys
from dphist import errors
from dphist.private.ledger import Ledger
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    ledger = Ledger.open(sys.argv[1])
    ledger.reserve("adults", "1/10", "read-only")
    print("spent")
except errors.LedgerError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX here")
@pytest.mark.parametrize("closed", ["file", "folder", "both"])
def test_what_cannot_be_written_is_named(path, tmp_path, closed):
    place = tmp_path.parent / f"{tmp_path.name}-{closed}"
    # Other users must be able to reach the file, as the test may have to act as one.
    for folder in [place.parent, place.parent.parent, place.parent.parent.parent]:
        if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o77 == 0:
            folder.chmod(0o711)
    shutil.copytree(tmp_path, place)
    file, witness = place / "budget.db", place / "budget.db.witness"
    file.chmod(0o444 if closed != "folder" else 0o666)
    witness.chmod(0o666)
    place.chmod(0o555 if closed != "file" else 0o777)
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(file)], capture_output=True, text=True, check=True
        )
    finally:
        place.chmod(0o755)
    assert "writable" in done.stdout
    assert Head(5, "") < Ledger.open(file).head() < Head(6, "")


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("SQLITE_IOERR_FSYNC", "disk .* reports an error"),
        ("SQLITE_READONLY_DBMOVED", "writable"),
        ("SQLITE_BUSY_RECOVERY", "stayed locked"),
        ("SQLITE_PROTOCOL", "stayed locked"),
        ("SQLITE_CORRUPT_INDEX", "damaged"),
        ("SQLITE_TOOBIG", "cannot be used: boo"),
    ],
)
def test_rarer_failures_are_named_too(name, meaning):
    import re

    error = sqlite3.OperationalError("boo")
    error.sqlite_errorname = name
    assert re.search(meaning, _explained(error, "budget.db"))
    assert "budget.db" in _explained(error, "budget.db")


@pytest.mark.parametrize("ending", ["-wal", "-shm and -wal"])
def test_a_log_that_is_removed_under_a_running_process_is_noticed(path, ending):
    """SQLite went on writing to the file that nobody could find any more: an acknowledged spend was gone."""
    with Ledger.open(path) as ledger:
        ledger.reserve("adults", 0.1, "fourth")
        for each in ending.split(" and "):
            path.with_name(path.name + each).unlink()
        with pytest.raises(errors.LedgerError, match=r"log beside the ledger.*removed"):
            ledger.reserve("adults", 0.1, "lost")


@pytest.mark.parametrize(
    "name",
    [
        "Adults",
        "adults ",
        " adults",
        "adults\u00a0",
        "ad\u200bults",
        "\uff41dults",
        "\u0430dults",
        "ADULTS\ufe0f",
    ],
)
def test_a_name_that_reads_like_another_gets_no_budget_of_its_own(path, name):
    with Ledger.open(path) as ledger:
        with pytest.raises(errors.InputError, match="reads like 'adults'") as refusal:
            ledger.create(name, 1)
        assert str(refusal.value).isascii()
        for other in ("adult", "adults 2", "adults-2024", "\u00e0dults", "Wards  2024"):
            ledger.create(other, 1)
        # Nor does one that reads like a name which is not written plainly itself.
        with pytest.raises(errors.InputError, match="reads like 'Wards  2024'"):
            ledger.create("wards 2024", 1)


@pytest.mark.parametrize("total", [{"epsilon": 10**61}, {"rho": 10**61}])
def test_what_no_account_could_be_given_of_is_refused(tmp_path, total):
    """It could be spent, and then nothing in the ledger was shown any more."""
    with Ledger.open(tmp_path / "budget.db") as ledger:
        with pytest.raises(errors.EpsilonError, match="useful range"):
            ledger.create("people", **total)
        ledger.create("people", 10**60)
        with pytest.raises(errors.EpsilonError, match="useful range"):
            ledger.reserve("people", 10**60 + 1, "all of it")
        ledger.reserve("people", 10**60, "all of it")
        assert ledger.account("people").remaining == 0


def test_what_is_left_of_a_tiny_total_is_known_at_once(tmp_path):
    """The search for it went in steps of a digit, for ever, and held the lock of the ledger."""
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", epsilon="1e-60", delta="1e-60")
        assert 0 < ledger.account("people").epsilon_left < Fraction(1, 10**59)
        with pytest.raises(errors.BudgetExhausted, match="Nothing was spent"):
            ledger.reserve("people", 1, "too much")


def test_an_address_that_is_none_is_refused_by_name():
    with pytest.raises(errors.LedgerError, match="no address"):
        Ledger.open("postgresql://[bad")


def test_a_witness_is_a_file_of_its_own(tmp_path):
    """In a database notes are written over, and whoever named one had no witness; a text of somebody's was spoilt."""
    with Ledger.open(tmp_path / "other.db") as ledger:
        ledger.create("people", 1)
    (tmp_path / "notes.txt").write_text("my notes\n")
    for place in ("other.db", "notes.txt"):
        before = (tmp_path / place).read_bytes()
        with pytest.raises(errors.LedgerError, match="is no witness"):
            Ledger.open(tmp_path / "budget.db", witness=tmp_path / place)
        assert (tmp_path / place).read_bytes() == before
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 1)
    with pytest.raises(errors.LedgerError, match="is no witness"):
        Ledger.open(tmp_path / "budget.db", witness=tmp_path / "budget.db")
    # Notes that a crash cut short are notes.
    (tmp_path / "cut").write_bytes(b"\n1 c5f708f6a6\0\0\0\n")
    with Ledger.open(tmp_path / "fresh.db", witness=tmp_path / "cut") as ledger:
        ledger.create("people", 1)
    with Ledger.open(tmp_path / "fresh.db", witness=tmp_path / "cut") as ledger:
        assert ledger.remaining("people") == 1


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_witness_is_not_in_the_files_of_a_ledger_that_is_not_there_yet(tmp_path, end):
    """Nothing in it says so before the first line, and then notes stand among the lines until they are written over."""
    (tmp_path / "link").symlink_to(tmp_path / f"budget.db{end}")
    for place in (f"budget.db{end}", "link"):
        with pytest.raises(errors.LedgerError, match="is no witness"):
            Ledger.open(tmp_path / "budget.db", witness=tmp_path / place)
    assert [each.name for each in tmp_path.iterdir()] == ["link"]
