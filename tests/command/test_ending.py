"""A command that is ended from outside says so, with the code of the signal; one whose reader left goes on."""

import os
import signal
import subprocess
import sys
import textwrap

import duckdb
import pytest

import dphist
from dphist.sources.duck.duck import Duck

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")
SCHEMA = '[[attribute]]\nname = "age"\nkind = "ordinal"\nrange = [0, 4]\n'
SPENT = "what was paid for by then stays spent: `dphist ledger show` says"


@pytest.fixture
def room(tmp_path):
    (tmp_path / "ages.csv").write_text("age\n" + "1\n2\n2\n" * 20)
    (tmp_path / "ages.toml").write_text(SCHEMA)
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("ages", 3)
    return tmp_path


PUBLISH = (
    "publish", "ages.csv", "--schema", "ages.toml", "--epsilon", "1", "--output", "ages.parquet",
    "--ledger", "budget.db", "--dataset", "ages",
)  # fmt: skip


def command(room, *words, **streams):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run(
        [sys.executable, "-m", "dphist", *words], cwd=room, check=False, timeout=120, **streams
    )


def spent(room):
    with dphist.Ledger.open(room / "budget.db") as ledger:
        return ledger.spent("ages")


def interrupted(room, number, body):
    """Run `dphist publish` in a process where ``body`` stands in the place of what saves the release."""
    script = f"""
import os, signal, sys, time
# Whoever runs the tests may have told it to be ignored, as nohup does.
signal.signal({int(number)}, signal.default_int_handler if {int(number)} == signal.SIGINT else signal.SIG_DFL)
import dphist.cli, dphist.cli.ending, dphist.publishing.checking
dphist.cli.ending._AGAIN = 0.2

def stop():
    os.kill(os.getpid(), {int(number)})
    time.sleep(60)

def save(*_):
{textwrap.indent(body, "    ")}

dphist.publishing.checking.save_noted = save
sys.argv = ["dphist", *{PUBLISH!r}]
dphist.cli.run()
"""
    return subprocess.run(
        [sys.executable, "-c", script], cwd=room, capture_output=True, text=True, timeout=120, check=False
    )


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_between_paying_and_saving_is_told(room, name):
    number = signal.Signals[name]
    done = interrupted(room, number, "stop()")
    assert done.returncode == 128 + number
    said = "stopped" if name == "SIGINT" else f"stopped by {name}"
    assert done.stderr.splitlines()[-1] == f"dphist: {said}; {SPENT}"
    assert "Traceback" not in done.stderr
    assert spent(room) == 1
    assert not [each.name for each in room.iterdir() if "partial" in each.name or "claim" in each.name]
    assert not (room / "ages.parquet").exists()


@posix
def test_an_interrupt_that_a_library_dropped_comes_again(room):
    done = interrupted(
        room, signal.SIGTERM, "try:\n    stop()\nexcept KeyboardInterrupt:\n    time.sleep(60)"
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (143, f"dphist: stopped by SIGTERM; {SPENT}")


@posix
def test_what_an_engine_says_of_an_interrupt_is_not_an_internal_error(room):
    done = interrupted(
        room,
        signal.SIGINT,
        "try:\n    stop()\nexcept KeyboardInterrupt:\n    raise RuntimeError('Query interrupted')",
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, f"dphist: stopped; {SPENT}")


@posix
def test_what_was_told_to_be_ignored_stays_so(room):
    ignoring = [sys.executable, "-c", (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )]  # fmt: skip
    script = (
        "import os, signal, dphist.cli as c; c.main = lambda: os.kill(os.getpid(), signal.SIGHUP); c.run()"
    )
    done = subprocess.run([*ignoring, "-c", script], capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), duckdb.InterruptException("no")])
def test_ctrl_c_while_duckdb_counts_is_ctrl_c(error):
    class Interrupted:
        def execute(self, _):
            raise error

        sql = execute

    with pytest.raises(KeyboardInterrupt):
        Duck(Interrupted(), "r", "the table")


def test_little_is_loaded_before_ctrl_c_is_heeded():
    """What Ctrl+C meets before `run` is called ends in a traceback."""
    script = (
        "import sys; old = set(sys.modules); from dphist.cli import run; print(*sorted({*sys.modules} - old))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(loaded.split()) <= {
        "__future__", "importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings", "_warnings",
        "dphist", "dphist.cli", "dphist.errors", "dphist.extras", "dphist.version",
    }  # fmt: skip


@posix
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "| true", "2>&1 | true", "2>/dev/full"])
def test_who_paid_saves_whether_or_not_somebody_reads(room, closed):
    words = " ".join((sys.executable, "-m", "dphist", *PUBLISH))
    # An ε that a remark is made of, so that something is written before the gate opens.
    words = words.replace("--epsilon 1", "--epsilon 11").replace("--ledger budget.db --dataset ages", "")
    done = subprocess.run(
        ["bash", "-c", f"{words} {closed}; exit ${{PIPESTATUS[0]}}"], cwd=room, check=False, timeout=120
    )
    assert done.returncode == 0
    dphist.load(room / "ages.parquet").verify()


@posix
@pytest.mark.parametrize(
    "words", [("mechanisms",), ("ledger", "show", "budget.db"), ("--help",), ("--version",)]
)
def test_a_reader_who_leaves_is_no_error_and_a_full_disk_is_one(room, words):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        left = command(room, *words, stdout=writer)
    finally:
        os.close(writer)
    assert (left.returncode, left.stderr) == (0, b"")
    if os.path.exists("/dev/full"):  # noqa: PTH110 -- no file, a device
        with open("/dev/full", "wb") as full:  # noqa: PTH123 -- no file, a device
            done = command(room, *words, stdout=full)
        assert done.returncode == 1
        assert done.stderr == b"dphist: what was to be printed cannot be written: No space left on device\n"
