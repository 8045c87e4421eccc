"""A PostgreSQL server of the tests' own, on a free port, gone when they are done."""

from __future__ import annotations

import os
import shutil
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


@contextmanager
def server() -> Iterator[str]:
    """Start a server and hand out its address, without a database."""
    where = programs()
    assert where is not None
    folder = Path(tempfile.mkdtemp(prefix="dphist-postgres-"))
    data = folder / "data"
    # initdb refuses root, so as root it is started as the user that the package made.
    root = os.geteuid() == 0
    owner = "postgres"
    become = ["runuser", "-u", owner, "--"] if root else []
    if root:
        shutil.chown(folder, owner)

    def run(*words: str) -> None:
        subprocess.run([*become, *words], check=True, capture_output=True, cwd=folder, timeout=120)

    port = _free_port()
    try:
        run(
            str(where / "initdb"), "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C",
            "--no-sync",
        )  # fmt: skip
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c max_connections=64"
        run(
            str(where / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start",
        )  # fmt: skip
        try:
            yield f"postgresql://tester@127.0.0.1:{port}"
        finally:
            run(str(where / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
            time.sleep(0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
