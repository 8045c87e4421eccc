"""Full disks, read-only folders, kill −9, and clocks that go backwards."""

import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dphist
from dphist.errors import DphistError, OutputError
from dphist.release import atomic

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(2000))])
HISTOGRAM = dphist.Histogram(DOMAIN, np.arange(2000))


def python(code, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, **options
    )


def full_disk(limit):
    """Files may not grow past ``limit``, as on a disk with no room; the signal would kill us, so ignore it."""

    def before():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return before


@pytest.mark.parametrize("limit", [0, 512, 4096, 10_000])
def test_a_full_disk_leaves_no_half_release_and_says_so(limit, tmp_path):
    path = tmp_path / "r.parquet"
    done = python(
        f"""
        import numpy as np, dphist
        domain = dphist.Domain([dphist.Ordinal("x", range(2000))])
        release = dphist.publish(dphist.Histogram(domain, np.arange(2000)), epsilon=1)
        try:
            release.save({str(path)!r})
        except dphist.errors.OutputError as error:
            print("refused:", error)
        """,
        preexec_fn=full_disk(limit),
    )
    assert done.returncode == 0, done.stderr
    assert "refused:" in done.stdout
    assert "full" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stops_the_ledger_before_it_acknowledges(tmp_path):
    place = tmp_path / "budget.db"
    with dphist.Ledger.open(place) as book:
        book.create("people", 100)
    size = place.stat().st_size
    done = python(
        f"""
        import numpy as np, dphist
        book = dphist.Ledger.open({str(place)!r}, patience=2)
        acknowledged = 0
        try:
            for _ in range(400):
                book.reserve("people", "1/10", purpose="fill " * 40)
                acknowledged += 1
        except dphist.errors.DphistError as error:
            print("refused:", error)
        print("acknowledged", acknowledged)
        """,
        preexec_fn=full_disk(size + 300_000),
    )
    assert done.returncode == 0, done.stderr
    assert "refused:" in done.stdout, done.stdout
    acknowledged = int(done.stdout.strip().split()[-1])
    assert 0 < acknowledged < 400
    with dphist.Ledger.open(place) as book:
        # All that was acknowledged is there; at most the one that failed may be too, never fewer.
        assert acknowledged <= book.spent("people") * 10 <= acknowledged + 1


@pytest.fixture
def shared_folder():
    """A folder that every user can reach, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def as_nobody(act):
    """What a call says in a process that root's powers do not help: root may write anywhere."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        told = "nothing"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65_534)
                os.setuid(65_534)
            try:
                act()
            except DphistError as error:
                told = f"{type(error).__name__}: {error}"
            except BaseException as error:
                told = f"unforeseen {type(error).__name__}: {error}"
        finally:
            os.write(writer, told.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


forking = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@forking
def test_a_folder_that_may_not_be_written_is_named(shared_folder):
    release = dphist.publish(HISTOGRAM, epsilon=1)
    release.save(shared_folder / "before.parquet")
    # Once as ourselves: the other user has no place to keep compiled kernels, and that is not what is tried here.
    dphist.load(shared_folder / "before.parquet").verify()
    shared_folder.chmod(0o555)
    told = as_nobody(lambda: release.save(shared_folder / "r.parquet"))
    assert told.startswith("OutputError: cannot write")
    assert "Permission denied" in told
    assert "choose another" in told
    # An existing release is read all the same, and not replaced.
    assert as_nobody(lambda: dphist.load(shared_folder / "before.parquet").verify()) == "nothing"
    assert as_nobody(lambda: release.save(shared_folder / "before.parquet")).startswith("OutputError")
    assert [path.name for path in shared_folder.iterdir()] == ["before.parquet"]


@forking
def test_a_ledger_that_may_not_be_written_is_named_and_nothing_is_published(shared_folder):
    place = shared_folder / "budget.db"
    with dphist.Ledger.open(place) as book:
        book.create("people", 1)
    for path in shared_folder.iterdir():
        path.chmod(0o444)
    shared_folder.chmod(0o555)

    def publish():
        with dphist.Ledger.open(place, patience=1) as book:
            dphist.publish(HISTOGRAM, epsilon=1, ledger=book, dataset="people")

    told = as_nobody(publish)
    assert told.startswith("LedgerError")
    assert "writable" in told
    with dphist.Ledger.open(place) as book:
        assert book.spent("people") == 0


@forking
def test_the_command_line_looks_at_the_folder_before_it_spends(shared_folder):
    from typer.testing import CliRunner

    from dphist.cli.commands import app

    writable = shared_folder / "writable"
    writable.mkdir()
    writable.chmod(0o777)
    place, locked = writable / "budget.db", shared_folder / "locked"
    locked.mkdir(mode=0o555)
    (writable / "d.csv").write_text("x\n1\n2\n")
    (writable / "s.toml").write_text('[[attribute]]\nname = "x"\nkind = "ordinal"\nrange = [0, 10]\n')
    with dphist.Ledger.open(place) as book:
        book.create("people", 1)
    for path in writable.iterdir():
        path.chmod(0o666)

    words = ["publish", str(writable / "d.csv"), "--schema", str(writable / "s.toml"), "--epsilon", "1"]
    # Once with nothing in the way: what the command imports late, nobody may not be allowed to read.
    first = CliRunner().invoke(app, [*words, "-o", str(writable / "first.parquet")])
    assert first.exit_code == 0, first.output
    words += ["--ledger", str(place), "--dataset", "people", "-o", str(locked / "r.parquet")]

    def publish():
        result = CliRunner().invoke(app, words)
        if result.exception is not None:
            raise result.exception

    told = as_nobody(publish)
    assert "cannot write" in told, told
    with dphist.Ledger.open(place) as book:
        assert book.spent("people") == 0


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_refuses_is_named(code, tmp_path, monkeypatch):
    """A disk mounted read-only, out of rights, room or quota, or broken: refused in the disk's own words."""
    release = dphist.publish(HISTOGRAM, epsilon=1)

    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(atomic, "locked", refuse)
    with pytest.raises(OutputError, match=f"cannot write.*{os.strerror(code)}"):
        release.save(tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_kill_9_at_any_moment_spends_at_least_what_was_published(tmp_path):
    """Publish in a loop, kill without warning: every release that was acknowledged is in the ledger."""
    place = tmp_path / "budget.db"
    with dphist.Ledger.open(place) as book:
        book.create("people", 10_000)
    kills = published = 0
    for pause in (0.05, 0.2, 0.33, 0.5):
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(f"""
                    import numpy as np, dphist
                    domain = dphist.Domain([dphist.Ordinal("x", range(8))])
                    book = dphist.Ledger.open({str(place)!r})
                    print("ready", flush=True)
                    while True:
                        dphist.publish(dphist.Histogram(domain, np.arange(8)), epsilon=1, ledger=book, dataset="people")
                        print("published", flush=True)
                """),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout.readline() == "ready\n"  # type: ignore[union-attr]
        assert child.stdout.readline() == "published\n"  # type: ignore[union-attr]
        published += 1
        try:
            child.wait(timeout=pause)
        except subprocess.TimeoutExpired:
            child.kill()
        published += child.stdout.read().count("published\n")  # type: ignore[union-attr]
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]
        kills += 1
        with dphist.Ledger.open(place) as book:
            # One release may have been paid for and not acknowledged when the blow fell.
            assert published <= book.spent("people") <= published + kills
    assert kills == 4


def test_a_clock_that_goes_backwards_changes_nothing_but_the_time(tmp_path, monkeypatch):
    from dphist.private.ledger import book as ledger_book

    times = iter(
        [datetime(2030, 1, 1, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    )
    last = [datetime(1970, 1, 1, tzinfo=UTC)]

    def now():
        last[0] = next(times, last[0])
        return last[0].isoformat()

    monkeypatch.setattr(ledger_book, "now", now)
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        for _ in range(3):
            book.reserve("people", "1/4", purpose="time travel")
        assert book.spent("people") == Fraction(3, 4)
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        assert book.spent("people") == Fraction(3, 4)
        assert [entry.id for entry in book.entries("people")] == sorted(
            entry.id for entry in book.entries("people")
        )
        with pytest.raises(DphistError):
            book.reserve("people", "1/2", purpose="too much")
