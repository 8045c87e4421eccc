"""Engines that several test files share, started once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from postgres_server import missing, server

# A change lands on what it changes, not on what luck finds: the same examples every time where CI is set.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


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
    from dphist.sources.spark import local_session

    session = local_session(
        "local[2]",
        spark_driver_memory="512m",
        spark_sql_shuffle_partitions="2",
        spark_sql_session_timeZone="Asia/Tokyo",
    )
    yield session
    session.stop()
