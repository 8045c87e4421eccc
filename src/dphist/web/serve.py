"""Listening: on this machine by default, with a token when others may reach it."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path

import uvicorn

from dphist.errors import InputError
from dphist.release import Release
from dphist.report.pictures import vega_script
from dphist.web.app import create_app
from dphist.web.guard import Door, Guard
from dphist.web.view import View


def serve(
    releases: Mapping[str, Release],
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    names: Sequence[str] = (),
    say: Callable[[str], None] = print,
    browser: bool = False,
    begin: Mapping[str, str] | None = None,
) -> None:
    """Serve releases, and the planner, until interrupted. ``begin`` fills in the planner's form.

    Args:
        releases: What may be looked at, by title.
        host: The address to listen on.
        port: The port.
        names: Names by which this machine may be asked for.
        say: Is told where to look.
        browser: Whether to open one.
        begin: What the planner's form starts with.

    Example:
        >>> import inspect
        >>> inspect.signature(serve).parameters["host"].default
        '127.0.0.1'
    """
    listening = listen(host, port)
    port = listening.getsockname()[1]
    door = make_door(host, port, names)
    shown = _address(host, port, door)
    for release in releases.values():
        # Replayed and summed once, before anybody waits for it.
        release.answer()
    app = create_app(releases, door, begin)
    # Loading what draws, and unpacking its script, takes seconds; neither need wait for the first page.
    threading.Thread(target=_warm, args=(tuple(releases.values())[:1],), daemon=True).start()
    if door.token is not None:
        say("others can reach this address: whoever has it, token included, can read the releases")
    run(app, listening, shown, say, browser)


def run(app: Guard, listening: socket.socket, shown: str, say: Callable[[str], None], browser: bool) -> None:
    """Say where to look, and answer there until interrupted."""
    say(f"{shown}   (Ctrl+C stops)")
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
    with _leading_to(shown) if browser else nullcontext() as file:
        if file is not None:
            import webbrowser

            # Beside the server: a browser in the terminal lets go of us only when its reader leaves.
            threading.Thread(target=webbrowser.open, args=(file,), daemon=True).start()
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            pass
        finally:
            listening.close()


@contextmanager
def _leading_to(address: str) -> Iterator[str]:
    """A file of ours alone that leads to an address: every user here can read a browser's command line."""
    handle, name = tempfile.mkstemp(prefix="dphist-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">')
            file.write(f'<title>dphist</title><a href="{escape(address)}">Go on</a>')
        yield Path(name).as_uri()
    finally:
        Path(name).unlink(missing_ok=True)


def _warm(releases: Sequence[Release]) -> None:
    for release in releases:
        View.read(release, {}).to_json()
    vega_script()


def make_door(host: str, port: int, names: Sequence[str]) -> Door:
    """Decide by which names we may be asked for, and whether a token is needed: always, beyond this machine."""
    written = f"[{host}]" if ":" in host else host
    hosts = ["localhost", "127.0.0.1", "[::1]", written, *names]
    if _loopback(host):
        return Door(tuple(hosts), port)
    # A token is no noise: it guards a door, not a count, so it comes straight from the system.
    hosts += [socket.gethostname(), socket.getfqdn()]
    everywhere = host in ("0.0.0.0", "::")  # noqa: S104 -- recognised here, never a default
    return Door(tuple(hosts), port, any_address=everywhere, token=os.urandom(16).hex())


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address of this machine."""
    if not 0 <= port <= 65_535:
        raise InputError("a port is a number from 0 to 65535; choose another --port")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} of {host} is in use, perhaps by another page of dphist; stop that, or choose another "
                "--port (0 picks a free one)"
            ) from None
        reason = error.strerror or "it is not an address of this machine"
        raise InputError(f"cannot listen on {host} port {port}: {reason}; choose another --port") from None


def _address(host: str, port: int, door: Door) -> str:
    name = socket.gethostname() if door.any_address else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + ("" if door.token is None else f"?token={door.token}")
