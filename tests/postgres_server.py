"""A PostgreSQL server of the tests' own, on a free port, gone when they are done."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The folder of the server's programs, newest version first."""
    if found := shutil.which("pg_ctl"):
        return Path(found).parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), reverse=True)
    return places[0].parent if places else None


def missing() -> str:
    """Why no server can be started here, or nothing."""
    if programs() is None:
        return "PostgreSQL's server is not installed (pg_ctl)"
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL refuses to run as root, and runuser is missing"
    return ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server that can be made to crash, and started again."""

    def __init__(self, folder: Path) -> None:
        where = programs()
        assert where is not None
        self.where, self.folder, self.data = where, folder, folder / "data"
        # initdb refuses root, so as root it is started as the user that the package made.
        root = os.geteuid() == 0
        owner = "postgres"
        self._become = ["runuser", "-u", owner, "--"] if root else []
        if root:
            shutil.chown(folder, owner)
        self.port = _free_port()
        self.address = f"postgresql://tester@127.0.0.1:{self.port}"
        self._run(
            str(where / "initdb"), "-D", str(self.data), "-U", "tester", "-A", "trust", "-E", "UTF8",
            "--locale=C", "--no-sync",
        )  # fmt: skip

    def _run(self, *words: str, check: bool = True) -> int:
        done = subprocess.run(
            [*self._become, *words], check=check, capture_output=True, cwd=self.folder, timeout=120
        )
        return done.returncode

    def start(self) -> None:
        """Start, and wait until it answers; after a kill old processes may hold on for a moment."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} "
            "-c max_connections=64"
        )
        words = [
            str(self.where / "pg_ctl"),
            "-D",
            str(self.data),
            "-w",
            "-l",
            str(self.folder / "log"),
            "-o",
            options,
        ]
        for _ in range(100):
            if self._run(*words, "start", check=False) == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL does not start")

    def stop_at_once(self) -> None:
        """End every process without a farewell; the next start recovers from the log."""
        self._run(str(self.where / "pg_ctl"), "-D", str(self.data), "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill −9 the first process of the server."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)


@contextmanager
def running() -> Iterator[Server]:
    """Start a server of its own, to be broken."""
    folder = Path(tempfile.mkdtemp(prefix="dphist-postgres-"))
    try:
        made = Server(folder)
        made.start()
        try:
            yield made
        finally:
            made.stop_at_once()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """Start a server and hand out its address, without a database."""
    with running() as made:
        yield made.address
