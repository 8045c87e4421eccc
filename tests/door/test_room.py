"""Memory: what does not fit is refused before anything is counted or paid, and nothing is loaded after the payment."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import dphist
from dphist.errors import TooLargeError
from dphist.mechanisms.registry import MECHANISMS
from dphist.publishing import making
from dphist.publishing.making import check_room

PROC = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not say what a process takes"
)
PLANE = dphist.Domain([dphist.Ordinal("x", range(1000)), dphist.Ordinal("y", range(100))])

LIMITED = """
import resource, sys
import numpy as np
import dphist

cube = dphist.Domain([dphist.Ordinal("x", range(1024)), dphist.Ordinal("y", range(1024))])
histogram = dphist.Histogram(cube, np.ones(cube.shape, dtype=np.int64))
book = dphist.Ledger.open(sys.argv[1])
book.create("people", 9)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (300 << 20), -1))
try:
    dphist.publish(histogram, epsilon=1, mechanism="tree", ledger=book, dataset="people")
except dphist.errors.TooLargeError as error:
    print(error)
print(book.spent("people"))
"""

LATE = """
import sys
import numpy as np
import dphist
from dphist.private.ledger import Ledger

book, reserve, before = Ledger.open(sys.argv[1]), Ledger.reserve, set()
book.create("people", 9)

def watched(*words, **named):
    before.update(sys.modules)
    return reserve(*words, **named)

Ledger.reserve = watched
plane = dphist.Domain([dphist.Ordinal("x", range(64)), dphist.Ordinal("y", range(32))])
histogram = dphist.Histogram(plane, np.arange(plane.size).reshape(plane.shape))
dphist.publish(histogram, epsilon=1, workload=sys.argv[2], ledger=book, dataset="people")
late = set(sys.modules) - before
print(sorted(name for name in late if name == "numba" or name.split(".")[0] in ("dphist", "cryptography")))
"""


def told(script, *words):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@PROC
def test_a_limit_of_the_process_is_known_before_anything_is_paid(tmp_path):
    refusal, spent = told(LIMITED, tmp_path / "budget.db")
    assert "1,048,576 counts (x 1,024 × y 1,024)" in refusal
    assert "Nothing was spent" in refusal
    assert spent == "0"


@pytest.mark.parametrize("workload", ["cells", "ranges"])
def test_nothing_is_loaded_after_the_payment(tmp_path, workload):
    assert told(LATE, tmp_path / "budget.db", workload) == ["[]"]


@pytest.mark.parametrize("name", ["laplace", "tree", "auto"])
def test_every_mechanism_has_a_figure_of_its_own(monkeypatch, name):
    needed = PLANE.size * (MECHANISMS[name].memory + 40) + (1 << 27)
    monkeypatch.setattr(making, "available_memory", lambda: needed)
    check_room(MECHANISMS[name](), PLANE)
    monkeypatch.setattr(making, "available_memory", lambda: needed - 1)
    with pytest.raises(TooLargeError, match="takes up to"):
        check_room(MECHANISMS[name](), PLANE)


def test_parts_take_what_one_of_them_takes(monkeypatch):
    parts = dphist.mechanisms.ByPart(by=("y",), inner=MECHANISMS["tree"]())
    needed = 1000 * MECHANISMS["tree"].memory + PLANE.size * 40 + (1 << 27)
    monkeypatch.setattr(making, "available_memory", lambda: needed)
    check_room(parts, PLANE)
    monkeypatch.setattr(making, "available_memory", lambda: needed - 1)
    with pytest.raises(TooLargeError):
        check_room(parts, PLANE)


def test_sums_take_room_beside_the_counts(monkeypatch):
    monkeypatch.setattr(making, "available_memory", lambda: PLANE.size * 100)
    rows = {"x": np.zeros(1), "y": np.zeros(1), "cost": np.zeros(1)}
    with pytest.raises(TooLargeError, match="Nothing was spent"):
        dphist.publish(
            pyarrow.table(rows), PLANE, 1, "laplace", measures=[dphist.Measure("cost", 0, 9)], unattended=True
        )


@PROC
def test_figures_cover_what_is_taken():
    (taken,) = told(PEAK)
    assert float(taken) <= MECHANISMS["laplace"].memory + 40


PEAK = """
import os, tempfile
import numpy as np
import dphist

def peak(size):
    cube = dphist.Domain([dphist.Ordinal("x", range(size)), dphist.Ordinal("y", range(size))])
    histogram = dphist.Histogram(cube, np.ones(cube.shape, dtype=np.int64))
    open("/proc/self/clear_refs", "w").write("5")
    before = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with tempfile.TemporaryDirectory() as folder:
        dphist.publish(histogram, epsilon=1, mechanism='laplace').save(os.path.join(folder, "x.parquet"))
    (line,) = (each for each in open("/proc/self/status") if each.startswith("VmHWM"))
    return (int(line.split()[1]) * 1024 - before) / cube.size

# Once before: what compiles a kernel the first time takes room of its own.
peak(1024)
print(peak(1024))
"""
