"""The name of a release's file is claimed before anything is paid."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import OutputError
from dphist.publishing.checking import claimed
from dphist.release.atomic import atomic, locked

SCHEMA = '[[attribute]]\nname = "x"\nkind = "ordinal"\nrange = [0, 8]\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with records, a schema and a budget of 10, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(SCHEMA)
    (tmp_path / "x.csv").write_text("x\n" + "".join(f"{i % 8}\n" for i in range(400)))
    with dphist.Ledger.open("budget.db") as book:
        book.create("people", 10)
    return tmp_path


def publish(output, *more, source="x.csv"):
    words = [
        "publish",
        source,
        "--schema",
        "x.toml",
        "--epsilon",
        "1",
        "--ledger",
        "budget.db",
        "--dataset",
        "people",
    ]
    return CliRunner().invoke(app, [*words, "-o", str(output), *more])


def spent():
    with dphist.Ledger.open("budget.db") as book:
        return book.spent("people")


def test_two_publishes_to_one_output_pay_once(folder, monkeypatch):
    """The second comes while the first is between its claim and its payment: refused, and nothing is paid for it."""
    inside, go = threading.Event(), threading.Event()
    reserve = dphist.Ledger.reserve
    first = threading.get_ident()

    def slow(self, *args, **more):
        if threading.get_ident() != first:
            inside.set()
            assert go.wait(60)
        return reserve(self, *args, **more)

    monkeypatch.setattr(dphist.Ledger, "reserve", slow)
    done = []
    other = threading.Thread(target=lambda: done.append(publish("out.parquet")))
    other.start()
    assert inside.wait(60)
    late = publish("out.parquet")
    forced = publish("OUT.parquet", "--force")
    elsewhere = publish("other.parquet")
    go.set()
    other.join()
    assert isinstance(late.exception, OutputError)
    assert "at this moment" in str(late.exception)
    assert isinstance(forced.exception, OutputError), "on some disks this is the same name"
    assert elsewhere.exit_code == done[0].exit_code == 0
    assert spent() == 2
    again = publish("out.parquet")
    assert isinstance(again.exception, OutputError)
    assert "exists already" in str(again.exception)
    assert spent() == 2
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="only where a process can be killed outright")
def test_a_claim_dies_with_its_holder_and_gives_nothing_back(folder):
    """Killed between payment and saving: what was spent stays spent, and nobody is kept from publishing."""
    holder = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        import dphist
        from dphist.publishing.checking import claimed
        with claimed(Path("out.parquet")), dphist.Ledger.open("budget.db") as book:
            book.reserve("people", 3, "killed").open()
            print("holding", flush=True)
            time.sleep(600)
    """)
    child = subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline().strip() == "holding"
        assert isinstance(publish("out.parquet").exception, OutputError)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    assert publish("out.parquet").exit_code == 0
    assert spent() == 4


@pytest.mark.skipif(sys.platform == "win32", reason="where a claim is a lock")
def test_what_killed_processes_left_is_taken_away_and_nothing_else(folder):
    """Claims and unfinished files of other outputs too, but not those that somebody holds or has just made."""
    left = [f".{'a' * 24}.claim", f".{'b' * 24}.claim", f".x.parquet.{'c' * 16}.partial"]
    kept = [".mine.claim", ".other.partial", f".{'d' * 24}.claim", f".y.{'e' * 16}.partial"]
    for name in left + kept:
        Path(name).touch()
        if name != kept[-1]:
            os.utime(name, (1, 1))
    held = locked(Path(kept[2]), 0o644)
    assert publish("out.parquet").exit_code == 0
    os.close(held)
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == set(kept)


@pytest.mark.skipif(sys.platform == "win32", reason="where links are common")
def test_a_claim_follows_no_link(folder):
    place = folder / f".{sha256(b'out.parquet').hexdigest()[:24]}.claim"
    place.symlink_to(folder / "elsewhere")
    assert isinstance(publish("out.parquet").exception, OutputError)
    assert not (folder / "elsewhere").exists()
    assert spent() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="where files have modes")
def test_a_file_has_the_rights_that_the_umask_leaves_and_nobody_changes_it(tmp_path, monkeypatch):
    """Other threads write files of theirs at the same time."""
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)
        with atomic(tmp_path / "out.txt") as temporary:
            temporary.write_text("whole")
        monkeypatch.undo()
    finally:
        os.umask(before)
    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o640


def test_one_of_many_that_come_at_once_has_the_claim(tmp_path):
    """However openings, lockings and lettings go interleave: never two holders at a time."""
    holders, most, had = [], [], []

    def come():
        for _ in range(60):
            try:
                with claimed(tmp_path / "r.parquet"):
                    holders.append(1)
                    most.append(len(holders))
                    time.sleep(0.0002)
                    holders.pop()
                    had.append(1)
            except OutputError:
                pass

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert had
    assert max(most) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only where a name may be any bytes")
def test_a_name_that_is_no_text_is_refused_before_payment(folder):
    """It had been paid for, and then nothing could write it; the same for a folder above it."""
    bad = os.fsdecode(b"caf\xe9")
    (folder / bad).mkdir()
    for output in (f"{bad}.parquet", f"{bad}/out.parquet"):
        refused = publish(output)
        assert isinstance(refused.exception, OutputError)
        assert "no text in UTF-8" in str(refused.exception)
    assert spent() == 0
    release = dphist.publish(
        dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(3))]), [1, 2, 3]),
        epsilon=1,
        unattended=True,
    )
    with pytest.raises(OutputError, match="no text in UTF-8"):
        release.save(folder / f"{bad}.parquet")


@pytest.mark.parametrize("letter", ["a", "ä", "😀"])
def test_a_long_name_is_written_or_refused_before_payment(folder, letter):
    """The longest name that the disk takes is written; one more is refused in a sentence, and costs nothing."""
    most = (os.pathconf(folder, "PC_NAME_MAX") - len(".parquet")) // len(letter.encode())
    fits = publish(letter * most + ".parquet")
    assert fits.exit_code == 0, fits.exception
    assert spent() == 1
    late = publish(letter * (most + 1) + ".parquet")
    assert isinstance(late.exception, OutputError)
    assert "cannot write" in str(late.exception)
    assert spent() == 1


@pytest.mark.parametrize("output", ["x.csv", "x.toml", "budget.db", "here/../x.csv", "link.csv"])
def test_force_does_not_write_over_what_is_read_or_paid_from(folder, output):
    """--force is about releases: records, schema and ledger stay as they are, by whatever name they are called."""
    (folder / "here").mkdir()
    (folder / "link.csv").hardlink_to(folder / "x.csv")
    before = {name: (folder / name).read_bytes() for name in ("x.csv", "x.toml")}
    for source in ("x.csv", "x*.csv"):
        refused = publish(output, "--force", source=source)
        assert isinstance(refused.exception, OutputError)
        assert "would be lost" in str(refused.exception)
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert spent() == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where pipes have names")
@pytest.mark.parametrize("output", ["out.csv", "out.TSV", "out.xlsx"])
def test_a_name_that_promises_another_kind_of_file_is_refused_before_payment(folder, output):
    refused = publish(output)
    assert refused.exception.exit_code == 2
    assert str(refused.exception).startswith(
        f"--output {output}: a release is a Parquet file; nothing was spent"
    )
    assert "out.parquet" in str(refused.exception)
    assert spent() == 0
    assert not (folder / output).exists()
    assert publish("out").exit_code == 0, "a name without an ending promises nothing"


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(folder):
    """Whoever may write to its folder would have moved a file over it: /dev/null, for one, with --force."""
    os.mkfifo(folder / "pipe.parquet")
    (folder / "link.parquet").symlink_to("/dev/null")
    for name in ("pipe.parquet", "link.parquet"):
        refused = publish(name, "--force")
        assert isinstance(refused.exception, OutputError)
        assert "a device or a pipe" in str(refused.exception)
        with pytest.raises(OutputError, match="a device or a pipe"), atomic(folder / name):
            raise AssertionError("never here")
    assert spent() == 0


def test_what_is_there_is_refused_after_the_claim_too(tmp_path):
    """Somebody who saved between a look and the claim is seen."""
    path = tmp_path / "r.parquet"
    dphist.publish(
        dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(3))]), np.arange(3)), epsilon=1
    ).save(path)
    with pytest.raises(OutputError, match="exists already"), claimed(path):
        raise AssertionError("never here")
    with claimed(path, force=True):
        assert path.exists()


def test_a_suggestion_is_not_paid_for_where_it_cannot_be_written(folder):
    """It had been learned and paid for, and then refused, since the file was there."""
    (folder / "x.csv").write_text("x\n" + "".join(f"{i % 50}\n" for i in range(4000)))
    words = ["schema", "suggest", "x.csv", "--column", "x", "--epsilon", "1", "--ledger", "budget.db"]
    words += ["--dataset", "people", "-o"]
    for output in ("x.toml", "x.csv", "nowhere/new.toml"):
        refused = CliRunner().invoke(app, [*words, output])
        assert isinstance(refused.exception, OutputError)
        assert "--force" not in str(refused.exception)
    assert spent() == 0
    assert CliRunner().invoke(app, [*words, "new.toml"]).exit_code == 0
    assert "[[measure]]" in (folder / "new.toml").read_text()
    assert spent() == 1


@pytest.mark.parametrize("name", ["visits.parquet", "visits.toml", "release.parquet", "budget.db"])
def test_the_demo_leaves_files_that_it_did_not_make(tmp_path, monkeypatch, name):
    """They have the names of the first pages of the documentation, so somebody's own may well be there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(b"mine")
    refused = CliRunner().invoke(app, ["demo", ".", "--rows", "1000"])
    assert isinstance(refused.exception, OutputError)
    assert "name another folder" in str(refused.exception)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"mine"


def test_the_demo_says_what_is_wrong_with_its_folder_and_rows(tmp_path):
    """A file where the folder should be, or no records: one sentence."""
    (tmp_path / "file").write_text("")
    assert isinstance(CliRunner().invoke(app, ["demo", str(tmp_path / "file")]).exception, OutputError)
    nothing = CliRunner().invoke(app, ["demo", str(tmp_path / "new"), "--rows", "0"])
    assert isinstance(nothing.exception, dphist.errors.InputError)


def test_tables_that_cannot_be_rounded_are_not_paid_for(folder):
    """Rounding was refused when the tables were there and paid for, and they were thrown away."""
    names = [f"q{place}" for place in range(18)]
    block = '[[attribute]]\nname = "{}"\nkind = "nominal"\ncategories = ["no", "yes"]\n'
    (folder / "x.toml").write_text("".join(block.format(name) for name in names))
    (folder / "x.csv").write_text("\n".join([",".join(names), *[",".join(["no"] * 18)] * 50]) + "\n")
    wide = ("--mechanism", "residuals", "--marginals", "q0,q1")
    told = publish("out.parquet", *wide, "--integer")
    assert told.exit_code != 0
    assert "--integer" in str(told.exception)
    assert "nothing was spent" in str(told.exception)
    assert spent() == 0
    assert publish("out.parquet", *wide, "--nonnegative").exit_code == 0
    assert dphist.load("out.parquet").cells.form == "tables"


def test_a_release_that_cannot_be_written_after_payment_is_kept_elsewhere(
    folder, monkeypatch, tmp_path_factory
):
    """The disk has filled up since the name was claimed, or the file that is there may not be replaced."""
    from dphist.publishing.checking import verify_file

    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    replace = os.replace

    def busy(source, target, **more):
        if str(target).endswith("out.parquet") and not str(target).startswith(str(spare)):
            raise OSError(16, "Device or resource busy")
        return replace(source, target, **more)

    monkeypatch.setattr(os, "replace", busy)
    told = publish("out.parquet")
    assert told.exit_code != 0
    (kept,) = spare.glob("dphist-*/out.parquet")
    assert str(kept) in "".join(str(told.exception).split())
    assert "paid for" in str(told.exception)
    assert not (folder / "out.parquet").exists()
    assert spent() == 1
    with dphist.Ledger.open("budget.db") as book:
        verify_file(kept, book)


def test_rows_without_a_cell_can_be_left_out_of_added_tables_too(folder):
    """What the refusal tells people to say must be an option of the command that refused."""
    names = [f"q{place}" for place in range(18)]
    block = '[[attribute]]\nname = "{}"\nkind = "nominal"\ncategories = ["no", "yes"]\n'
    (folder / "x.toml").write_text("".join(block.format(name) for name in names))
    lines = [",".join(["no"] * 18)] * 50 + [",".join(["perhaps"] * 18)] * 50
    (folder / "x.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    wide = ("--mechanism", "residuals", "--marginals", "q0,q1", "--allow-dropped", "0.6")
    assert publish("out.parquet", *wide).exit_code == 0

    def add(*more):
        words = [
            "add",
            "out.parquet",
            "x.csv",
            "--marginals",
            "q1,q2",
            "--epsilon",
            "1",
            "-o",
            "more.parquet",
        ]
        return CliRunner().invoke(app, [*words, "--ledger", "budget.db", "--dataset", "people", *more])

    refused = add()
    assert "--allow-dropped 0.5" in str(refused.exception)
    assert spent() == 1
    assert add("--allow-dropped", "0.6").exit_code == 0
    assert spent() == 2


def test_a_ledger_that_cannot_note_the_file_says_that_it_is_paid_for(folder, monkeypatch):
    """It said “nothing was acknowledged, try again”, and who did paid twice."""
    from dphist.errors import LedgerError

    def full(*_):
        raise LedgerError("the disk of the ledger is full; nothing was acknowledged")

    monkeypatch.setattr(dphist.Ledger, "complete", full)
    told = publish("out.parquet")
    assert str(told.exception).startswith("out.parquet is saved and paid for")
    dphist.load("out.parquet").verify()


def test_a_ledger_by_its_address_is_neither_made_nor_written_over(folder):
    """A file written as an address is the file: mistyped it made an empty ledger, and with %20 it could be lost."""
    (folder / "budget.db").rename(folder / "our budget.db")
    words = ["publish", "x.csv", "--schema", "x.toml", "--epsilon", "1", "--dataset", "people"]
    told = CliRunner().invoke(app, [*words, "--ledger", "sqlite:///our%20budge.db", "-o", "out.parquet"])
    assert "there is no ledger" in str(told.exception)
    assert not (folder / "our budge.db").exists()
    again = ["--ledger", "sqlite:///our%20budget.db", "--force", "-o"]
    told = CliRunner().invoke(app, [*words, *again, "our budget.db"])
    assert "is read or paid from" in str(told.exception)
    assert CliRunner().invoke(app, [*words, *again, "out.parquet"]).exit_code == 0
