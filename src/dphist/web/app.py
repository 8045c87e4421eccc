"""The explorer's addresses, each a page or the numbers of one. Nothing else is served, from disk or elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from jinja2 import Environment, PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from dphist.arguments import explained
from dphist.errors import DphistError, QueryError
from dphist.release import Release
from dphist.report import report_page
from dphist.report.page import embed, example, read, style
from dphist.report.pictures import vega_script
from dphist.report.tables import can_guarantee
from dphist.report.wording import question
from dphist.version import __version__
from dphist.web import planner
from dphist.web.guard import REPORT_POLICY, Door, Guard
from dphist.web.view import CONFIDENCES, View, compare, control

# What may be asked for by name; a path that is not a key here does not exist.
_STATIC: dict[str, tuple[str, Callable[[], str]]] = {
    "style.css": ("text/css", lambda: style() + _read("explorer.css")),
    "drawing.js": ("text/javascript", lambda: read("drawing.js")),
    "explorer.js": ("text/javascript", lambda: _read("explorer.js")),
    "planner.js": ("text/javascript", lambda: _read("planner.js")),
    "vega.js": ("text/javascript", vega_script),
}


@explained
def create_app(
    releases: Mapping[str, Release], door: Door | None = None, begin: Mapping[str, str] | None = None
) -> Guard:
    """Build the explorer of some releases (none: only the planner), behind its guard.

    Args:
        releases: What may be looked at, by title.
        door: By which names and with which token; this machine's by default.
        begin: What the planner's form starts with.

    Returns:
        An ASGI application.

    Example:
        >>> app = create_app({})
        >>> callable(app)
        True
    """
    titles, listed = list(releases), list(releases.values())
    # One at a time: forecasts take seconds each, and all other pages would wait for a thread.
    forecasting = asyncio.Semaphore()

    def page(name: str, status: int = 200, **facts: Any) -> HTMLResponse:
        links = [("/", "Explore")] if listed else []
        links += [("/compare", "Compare")] if len(listed) > 1 else []
        links += [("/report", "Report")] if listed else []
        links += [("/plan", "Plan")]
        text = pages().get_template(name).render(links=links, titles=titles, version=__version__, **facts)
        return HTMLResponse(text, status_code=status)

    def complain(request: Request, status: int, message: str) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": message}, status_code=status)
        if request.url.path.startswith(("/static/", "/download")):
            return PlainTextResponse(message, status_code=status)
        return page("error.html", status, message=message)

    app = bare(complain)

    def chosen_release(
        asked: Mapping[str, str], key: str = "release", default: int = 0
    ) -> tuple[int, Release]:
        given = asked.get(key) or str(default)
        if not given.isascii() or not given.isdigit() or len(given) > 3 or int(given) >= len(listed):
            raise QueryError("there is no such release here")
        return int(given), listed[int(given)]

    def asked_of(request: Request) -> dict[str, str]:
        pairs = request.query_params.multi_items()
        for key, _ in pairs:
            if sum(key == other for other, _ in pairs) > 1:
                raise QueryError(f"the parameter {key[:40]!r} is given twice")
        return dict(pairs)

    @app.get("/")
    def explore(request: Request) -> Response:
        if not listed:
            return page("plan.html", **planner.start(begin))
        asked = asked_of(request)
        number, release = chosen_release(asked)
        shown = View.read(release, asked).to_json()
        return page(
            "explore.html",
            title=titles[number],
            number=number,
            release=release,
            guarantee=release.guarantee.describe(),
            mechanism=release.maker,
            view=shown,
            example=question(release.domain, example(release)),
            state=embed(shown),
            controls=[control(attribute) for attribute in release.domain.attributes],
            confidences=CONFIDENCES,
            proven=can_guarantee(release),
            address=urlencode({"release": number, "q": shown["question"], "show": shown["show"]}),
        )

    @app.get("/api/view")
    def view(request: Request) -> Response:
        asked = asked_of(request)
        _, release = chosen_release(asked)
        return Response(json.dumps(View.read(release, asked).to_json()), media_type="application/json")

    @app.get("/download.csv")
    def download(request: Request) -> Response:
        asked = asked_of(request)
        number, release = chosen_release(asked)
        text = View.read(release, asked).to_csv()
        # Only letters and digits, so that no title can break out of the header.
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in titles[number])[:60]
        headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    @app.get("/compare")
    def compare_page(request: Request) -> Response:
        if len(listed) < 2:
            raise HTTPException(404)
        asked = asked_of(request)
        one, other = chosen_release(asked), chosen_release(asked, "other", 1)
        shown = compare(titles[one[0]], one[1], titles[other[0]], other[1], asked)
        return page("compare.html", one=one[0], other=other[0], confidences=CONFIDENCES, **shown)

    @app.get("/report")
    def report(request: Request) -> Response:
        if not listed:
            raise HTTPException(404)
        number, release = chosen_release(asked_of(request))
        text = report_page(release, title=titles[number], file=f"{titles[number]}.parquet")
        return HTMLResponse(text, headers={"content-security-policy": REPORT_POLICY})

    @app.get("/plan")
    def plan_page() -> Response:
        return page("plan.html", **planner.start(begin))

    @app.post("/api/plan")
    async def plan_one(request: Request) -> Response:
        form = await form_of(request)
        async with forecasting:
            return JSONResponse(await run_in_threadpool(planner.forecast, form))

    return Guard(app, door or Door())


async def form_of(request: Request) -> dict[str, str]:
    """Read a posted form, up to a length that no person types."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > 65_536:
            raise HTTPException(413, "the form is too long for this page; use the command line")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1000))
    except ValueError:
        raise HTTPException(400, "the form cannot be read") from None


def bare(complain: Callable[[Request, int, str], Response]) -> FastAPI:
    """An application with nothing on it but styles and scripts; what it refuses is said by ``complain``."""
    # The interactive documentation would be fetched from elsewhere.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            raise HTTPException(404)
        kind, text = _STATIC[name]
        return Response(text(), media_type=f"{kind}; charset=utf-8")

    @app.exception_handler(DphistError)
    async def refuse(request: Request, error: DphistError) -> Response:
        return complain(request, 400, str(error))

    @app.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> Response:
        words = {404: "there is no such page here", 405: "this page is only for reading"}
        return complain(request, error.status_code, words.get(error.status_code, str(error.detail)))

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        # Nothing more is said here, as it may quote a record.
        return complain(request, 500, "something went wrong here; the terminal that runs dphist says what")

    return app


def _read(name: str) -> str:
    return files("dphist.web").joinpath("static", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def pages() -> Environment:
    """The pages' templates."""
    made = Environment(loader=PackageLoader("dphist.web", "pages"), autoescape=True, trim_blocks=True)
    made.filters["number"] = lambda value: "–" if value is None or value != value else f"{value:,.1f}"
    return made
