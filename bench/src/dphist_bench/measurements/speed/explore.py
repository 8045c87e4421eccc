"""What one interaction with the explorer costs the server, in CPU time, on a release of a million cells.

Requests go through the whole application, guard included, but not through a socket.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.publishing.door import publish
from dphist.release import Release
from dphist.web import create_app
from dphist_bench.measuring import Line

_REPEATS = 5


def measure(*, quick: bool, cells: int = 1_000_000, mechanism: str = "laplace") -> Iterator[Line]:
    """Give a row an interaction, on a line, a plane and a cube of so many cells."""
    for axes in (1, 2, 3):
        side = round((1_000 if quick else cells) ** (1 / axes))
        release = _release((side,) * axes, mechanism)
        for name, best, worst in interactions(release):
            yield {
                "interaction": name,
                "cells": release.domain.size,
                "CPU ms, median": best,
                "CPU ms, worst": worst,
            }


def interactions(release: Release) -> list[tuple[str, float, float]]:
    """Give each interaction's name, and its median and worst CPU time in milliseconds after the first."""
    app = create_app({"bench": release})
    side, axes = release.domain.shape[0], len(release.domain.shape)
    asked = {
        "open the page": "/",
        "ask in words": f"/api/view?q=a0+between+{side // 4}+and+{side // 2}",
        "drag a range": f"/api/view?axis=a0&cells={side // 10}-{side // 2}",
        "zoom in": f"/api/view?window={side // 10}-{side // 2}",
        "other confidence": "/api/view?confidence=0.9",
        "download": f"/download.csv?q=a0+between+1+and+{min(side - 1, 1000)}",
    }
    if axes > 1:
        asked["show another attribute"] = f"/api/view?show=a1&q=a0+between+{side // 4}+and+{side // 2}"
        asked["heat map"] = "/api/view?by=a1"
    return [(name, *_times(app, address)) for name, address in asked.items()]


def _times(app: Any, address: str) -> tuple[float, float]:
    _get(app, address)
    spent = []
    for _ in range(_REPEATS):
        began = time.process_time()
        _get(app, address)
        spent.append(1000 * (time.process_time() - began))
    return sorted(spent)[_REPEATS // 2], max(spent)


def _get(app: Any, address: str) -> None:
    path, _, query = address.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "headers": [(b"host", b"localhost")],
        "server": ("localhost", 80), "client": ("localhost", 1), "root_path": "",
    }  # fmt: skip
    status = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    asyncio.run(app(scope, receive, send))
    assert status == [200], status


def _release(shape: tuple[int, ...], mechanism: str) -> Release:
    domain = Domain([Ordinal(f"a{axis}", range(n)) for axis, n in enumerate(shape)])
    counts = np.arange(domain.size, dtype=np.int64).reshape(shape) % 97
    release: Release = publish(Histogram(domain, counts), epsilon=1, mechanism=mechanism)
    return release
