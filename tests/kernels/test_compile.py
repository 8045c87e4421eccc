"""Loops that are compiled: none for small work, kept where nobody else may write, anew where nothing can be kept."""

import json
import os
import pickle
import subprocess
import sys

import pytest

from dphist.kernels.special import scaled_tail


def _run(text, **environment):
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=os.environ | environment
    )


_RELEASE = """
import json, sys
import numpy as np, dphist
sizes, mechanism = {sizes}, {mechanism!r}
domain = dphist.Domain([dphist.Ordinal(f"x{{i}}", range(size)) for i, size in enumerate(sizes)])
counts = np.arange(domain.size).reshape(domain.shape) % 7
release = dphist.publish(dphist.Histogram(domain, counts), epsilon=1, workload="ranges", mechanism=mechanism)
release.answer("x0 between 3 and 40")
release.verify()
print(json.dumps("numba" in sys.modules))
"""


@pytest.mark.parametrize(
    ("mechanism", "sizes"),
    [
        ("auto", [500]),
        ("auto", [30_000]),
        ("auto", [60, 50]),
        ("laplace", [1 << 20]),
        ("adaptivetree", [200, 200]),
    ],
)
def test_what_many_people_publish_needs_no_compiler(mechanism, sizes):
    assert json.loads(_run(_RELEASE.format(sizes=sizes, mechanism=mechanism)).stdout) is False


_CALLED = """
import sys
from dphist.kernels import compile as compiling
from dphist.cli import screen
compiling.announce_compilation(screen._compiling)
from numba.core import caching
{given}
from dphist.kernels.special import scaled_tail
print(scaled_tail(1.0))
"""
# As on an installation that may only be read: nothing can be kept beside the package.
_READ_ONLY = "caching.CacheImpl._locator_classes.remove(caching.InTreeCacheLocator)"
# As on a full disk.
_FULL = """
def full(self, name, overload):
    raise OSError("No space left on device")
caching.IndexDataCacheFile.save = full
"""


@pytest.mark.parametrize("home", [True, False])
def test_a_read_only_installation_works_and_says_where_its_cache_is(tmp_path, home):
    folder = tmp_path / "home"
    folder.mkdir()
    # Where there is no home either, machine code is made anew.
    place = str(folder) if home else "/proc/nowhere"
    run = _run(
        _CALLED.format(given=_READ_ONLY), NUMBA_CACHE_DIR="", HOME=place, XDG_CACHE_HOME=f"{place}/.cache"
    )
    assert float(run.stdout) == pytest.approx(0.2615, abs=1e-3)
    if home:
        assert f"then kept in {folder}" in run.stderr
        assert list(folder.rglob("*.nbi"))
    else:
        assert "no folder to keep them in" in run.stderr


def test_a_full_disk_keeps_nothing_and_works(tmp_path):
    run = _run(_CALLED.format(given=_FULL), NUMBA_CACHE_DIR=str(tmp_path))
    assert float(run.stdout) == pytest.approx(0.2615, abs=1e-3)
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have owners on POSIX")
def test_machine_code_that_others_may_have_written_is_not_run(tmp_path):
    def called():
        run = _run(_CALLED.format(given=""), NUMBA_CACHE_DIR=str(tmp_path))
        assert float(run.stdout) == pytest.approx(0.2615, abs=1e-3)
        return run.stderr

    assert "then kept in" in called()
    assert not called()
    (kept,) = {found.parent for found in tmp_path.rglob("*.nbi")}
    # Whoever reads this would run somebody's code.
    for found in kept.iterdir():
        found.write_bytes(b"cos\nsystem\n(S'touch here'\ntR.")
    kept.chmod(0o777)
    assert "no folder to keep them in" in called()
    kept.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(kept, 12345, -1)
        assert "no folder to keep them in" in called()


def test_a_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(scaled_tail)) is scaled_tail  # noqa: S301 -- our own bytes
