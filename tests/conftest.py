"""Engines that several test files share, started once; who runs what, and with which noise."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dphist.planning import forecast
from dphist.private.noise import Noise, keystream
from postgres_server import missing, server
from scheduling import OneSpark, long_files_first

# A change fails on what it changes, not on what luck finds: the same draws and the same examples every time. Another
# number looks at other draws, and ``DPHIST_TEST_SEED=fresh`` at the system's own, as a custodian would have them.
SEED = os.environ.get("DPHIST_TEST_SEED", "0")
settings.register_profile("same", derandomize=True, deadline=None)
if SEED != "fresh":
    settings.load_profile("same")


# Whatever was simulated is said and shown alike: one run stands for sixteen, but where the figures are looked at.
ALL_RUNS = forecast._RUNS
vars(forecast)["_RUNS"] = ((1 << 24, 1),)


@pytest.fixture
def all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate forecasts as often as users do."""
    monkeypatch.setattr(forecast, "_RUNS", ALL_RUNS)


@pytest.fixture
def no_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearse without forecasts, which know nothing of the records and take most of the time."""
    monkeypatch.setattr("dphist.planning.rehearsal.release_forecasts", lambda *given, **named: {})


# A Java that lives for a minute does not earn what it costs to compile its code well: half of Spark's processor time.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


class _SameKeys:
    """The operating system as the keystream sees it, with keys that follow from a test's name."""

    def __init__(self, name: str) -> None:
        self._name, self._turn, self._process = f"{SEED} {name}", itertools.count(), os.getpid()

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def urandom(self, size: int) -> bytes:
        # Asked all the same: some tests count how often. A forked child must not repeat its parent.
        os.urandom(size)
        branch = "" if os.getpid() == self._process else str(os.getpid())
        return hashlib.shake_256(f"{self._name} {next(self._turn)} {branch}".encode()).digest(size)


def _draw_the_same(name: str) -> None:
    vars(keystream)["os"] = _SameKeys(name)
    Noise.system().keystream.renew()


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same noise in every run, where test files draw while they are read."""
    if SEED != "fresh":
        _draw_the_same("reading")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw the same noise in every run of a test and its fixtures; processes that a test starts draw their own."""
    if SEED != "fresh":
        _draw_the_same(item.nodeid)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with long files where processes share the run."""
    if hasattr(config, "workerinput"):
        long_files_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Any:
    """Hand out files in the order in which processes have them."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return OneSpark(config, log)


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    """The address of a fresh PostgreSQL server, with the database ``postgres`` in it."""
    if why := missing():
        pytest.skip(why)
    with server() as address:
        yield address


@pytest.fixture
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep witnesses of ledgers elsewhere out of the user's own state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that promised to skip nothing and did."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("DPHIST_SKIP_NOTHING") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("tests were skipped, and nothing should be; see the reasons below", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def spark_session() -> Iterator[object]:
    """A small Spark on this machine."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from dphist.sources.databases.spark import local_session

    session = local_session(
        "local[2]",
        spark_driver_memory="512m",
        spark_sql_shuffle_partitions="2",
        spark_sql_session_timeZone="Asia/Tokyo",
    )
    yield session
    session.stop()
