"""Who may ask: the check that every request passes before anything else looks at it.

A page from elsewhere can make a browser send requests to this machine, also under a name that an attacker's name server
points here. So the Host header must name us, a request that says which site sent it must have come from our own pages,
and whoever listens beyond this machine asks for a token. Answers carry headers that keep the pages from fetching or
being framed by anything else.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A report carries its script inside, and needs nothing else.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    # Without any referrer a form says “null” for where it comes from, and we could not know it for ours.
    b"referrer-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"content-security-policy": POLICY.encode(),
    b"cache-control": b"no-store",
}


@dataclass(frozen=True)
class Door:
    """Where the explorer listens, by which names it may be asked for, and with which token if any."""

    hosts: Collection[str] = ("localhost", "127.0.0.1", "[::1]")
    port: int | None = None
    any_address: bool = False
    token: str | None = None

    def knows(self, header: str) -> bool:
        """Tell whether a Host header names us."""
        name, colon, port = header.rpartition(":") if not header.endswith("]") else (header, "", "")
        if not colon:
            name, port = header, "80"
        if self.port is not None and port != str(self.port):
            return False
        name = name.lower().removesuffix(".")
        if name in {host.lower() for host in self.hosts}:
            return True
        if not self.any_address:
            return False
        # Listening on every address: any number is one of ours, but a name could be anybody's.
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    @property
    def cookie(self) -> str:
        """Name the cookie that keeps the token; one per port, since cookies do not tell ports apart."""
        return f"dphist_{self.port or 80}"


class Guard:
    """Stands before the application and turns away what must not reach it."""

    def __init__(self, app: App, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it with a reason."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                extra = [(name, value) for name, value in _HEADERS.items() if name not in given]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            status, text, headers = refusal
            await _plain(dressed, status, text, headers)
            return
        await self.app(scope, receive, dressed)

    def _refusal(self, scope: Scope) -> tuple[int, str, dict[bytes, bytes]] | None:
        hosts = _header(scope, b"host")
        if len(hosts) != 1 or not self.door.knows(hosts[0]):
            return 400, "This address is not served here: use the one that dphist printed.", {}
        origins = _header(scope, b"origin")
        if any(_site(origin) != hosts[0] for origin in origins):
            return 403, "This request came from another site and is refused.", {}
        if len(scope["query_string"]) > 16_384:
            return 414, "The question is too long; choose ranges or groups instead of single values.", {}
        if len(scope["path"]) > 512:
            return 414, "The address is too long.", {}
        return self._token(scope) if self.door.token is not None else None

    def _token(self, scope: Scope) -> tuple[int, str, dict[bytes, bytes]] | None:
        expected = str(self.door.token)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if given:
            if not all(_same(value, expected) for value in given):
                return 403, "The token is wrong: use the address that dphist printed.", {}
            # Out of the address bar, where it could be copied along, and into a cookie that scripts cannot read.
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            cookie = f"{self.door.cookie}={expected}; HttpOnly; SameSite=Strict; Path=/"
            # Two slashes at the start of a path would lead to another host.
            path = "/" + scope["path"].lstrip("/\\")
            place = urlencode([("", path)])[1:].replace("%2F", "/") + (f"?{rest}" if rest else "")
            return 303, "", {b"set-cookie": cookie.encode(), b"location": place.encode()}
        for line in _header(scope, b"cookie"):
            for part in line.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.door.cookie and _same(value, expected):
                    return None
        return 403, "A token is needed: use the address that dphist printed.", {}


def _site(origin: str) -> str:
    """The host and port that a request says it came from; none where it names none that can be read."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _header(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


async def _plain(send: Send, status: int, text: str, headers: dict[bytes, bytes]) -> None:
    body = text.encode()
    listed = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*listed, *headers.items()]})
    await send({"type": "http.response.body", "body": body})
