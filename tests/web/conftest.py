"""A release to look at, a client without a socket, and a real browser if there is one."""

import asyncio
import shutil
import socket
import threading
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

import dphist
from dphist.report.pictures import vega_script
from dphist.web import create_app
from dphist.web.guard import Door

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def make_release(mechanism="laplace", epsilon=1):
    domain = dphist.Domain(
        [
            dphist.Ordinal("age", range(100)),
            dphist.Nominal("place", {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}),
            dphist.Ordinal("income", edges=[0, 10_000, 25_000, 50_000, 1e6], other=True),
        ]
    )
    bump = np.exp(-(((np.arange(100) - 40) / 25) ** 2))
    counts = np.random.default_rng(0).poisson(20 * bump[:, None, None] * np.ones((100, 5, 5)))
    return dphist.publish(dphist.Histogram(domain, counts), epsilon=epsilon, mechanism=mechanism)


@pytest.fixture(scope="session")
def release():
    return make_release()


@pytest.fixture(scope="session")
def second():
    return make_release(epsilon="1/2")


class Client:
    """Asks an application directly; each request stands alone."""

    def __init__(self, app, host="http://localhost"):
        self.app, self.host = app, host

    def __call__(self, path, method="GET", **options):
        async def ask():
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.host) as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


@pytest.fixture(scope="session")
def client():
    return Client


@pytest.fixture(scope="session")
def get(release, second):
    return Client(create_app({"visits": release, "later": second}))


@pytest.fixture(scope="session")
def address(release, second):
    """The explorer behind a real socket, with its script unpacked, which takes seconds."""
    vega_script()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = create_app({"visits": release, "later": second}, Door(port=port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=20)
    listening.close()


@pytest.fixture(scope="module")
def browser():
    # Playwright keeps an event loop running in this thread until it is closed, and other tests need their own.
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    place = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if place is None:
        pytest.skip("no Chromium is installed here; the browser tests need one")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=place, args=ARGUMENTS)
        yield running
        running.close()


class Watched:
    """A page, every address it asked for, and everything it complained about."""

    def __init__(self, page):
        self.page = page
        self.requests: list[Any] = []
        self.problems: list[Any] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)


@pytest.fixture
def look(browser):
    """Open an address in a fresh window."""
    contexts = []

    def opened(address, width=1280, scheme="light", script=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.goto(address)
        return watched

    yield opened
    for context in contexts:
        context.close()
