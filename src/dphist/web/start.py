"""The guided start as a page: the same steps as in the terminal, for whoever has the address and its token.

The page can show a rehearsal, which is as private as the records, and it can pay. So it asks for a token on this
machine too, where other users could reach the port. The address opens once; after that each form carries a key of its
own. A cookie would not do: browsers hand it to whatever listens at another port of this machine.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from dphist.errors import DphistError, QueryError
from dphist.model.domain.words import FORMS
from dphist.model.phrases import counted
from dphist.planning.forecast import Forecast
from dphist.planning.starting import Start, columns
from dphist.release import Release
from dphist.release.atomic import atomic
from dphist.report import report_page
from dphist.version import __version__
from dphist.web.app import bare, form_of, pages
from dphist.web.guard import REPORT_POLICY, Door, Guard
from dphist.web.serve import listen, make_door, run

Curve = list[tuple[str, Forecast]]


def create_start(source: str, folder: Path, door: Door | None = None) -> Guard:
    """Build the guided start of one file, behind its guard."""
    listed = columns(source)
    door = door or Door()
    # A token is no noise: it guards a door, not a count, so it comes straight from the system.
    key = os.urandom(16).hex()
    opened = threading.Event()
    app = bare(lambda _, status, message: PlainTextResponse(message, status_code=status))
    made: list[Release] = []
    wrote: list[str] = []
    # The curve of expected error simulates releases: it is drawn once for what was answered, not at every step.
    curves: dict[str, Curve] = {}
    # One step at a time: two clicks on “publish” must not pay twice.
    busy = threading.Lock()

    def page(status: int = 200, **facts: Any) -> HTMLResponse:
        text = pages().get_template("start.html").render(
            links=[], key=key, version=__version__, source=Path(source).name, columns=listed, forms=FORMS, **facts,
        )  # fmt: skip
        return HTMLResponse(text, status_code=status)

    def step(form: Mapping[str, str]) -> dict[str, Any]:
        start = _read(source, folder, listed, form)
        facts: dict[str, Any] = {"form": form}
        action = form.get("action", "check")
        try:
            start.check()
            # A schema says what will be asked and who is protected, too.
            if start.schema not in curves:
                curves[start.schema] = start.curve()
            facts |= _described(start, curves[start.schema])
            if action in ("rehearse", "publish"):
                start.write(wrote[-1] if wrote else None)
                wrote[:] = [start.schema]
                facts["written"] = [str(start.file("schema")), str(start.file("ledger"))]
            if action == "rehearse":
                facts["rehearsal"] = str(start.rehearse())
            if action == "publish":
                if form.get("agreed") != "yes":
                    facts["unticked"] = True
                    raise QueryError("tick the box that says the budget may be spent")
                release = start.publish()
                # Said before the report is tried: what was paid for is there, whatever becomes of a page about it.
                made[:] = [release]
                facts["published"] = [str(start.file("release"))]
                with atomic(start.file("report")) as temporary:
                    temporary.write_text(
                        report_page(release, title=start.stem, file=start.file("release").name),
                        encoding="utf-8",
                    )
                facts["published"].append(str(start.file("report")))
        except DphistError as error:
            facts["problem"] = str(error)
        return facts

    async def own(request: Request) -> dict[str, str]:
        """Read a form, which must be one of this page."""
        form = await form_of(request)
        if door.token is not None and not hmac.compare_digest(form.get("key", "").encode(), key.encode()):
            raise HTTPException(403, "this form is not of the page that was opened here")
        return form

    @app.get("/")
    async def begin(token: str = "") -> Response:
        if door.token is not None:
            if not hmac.compare_digest(token.encode(), door.token.encode()):
                raise HTTPException(403, "a token is needed: use the address that dphist printed")
            if opened.is_set():
                raise HTTPException(
                    403,
                    "this address opens once, and was opened; if not by you, somebody else has this page. Stop "
                    "dphist (Ctrl+C) and start again: files that are there are kept",
                )
            opened.set()
        return page(form={})

    @app.post("/")
    async def answer(request: Request) -> Response:
        form = await own(request)

        def taken() -> dict[str, Any]:
            with busy:
                return step(form)

        facts = await run_in_threadpool(taken)
        return page(400 if facts.get("problem") else 200, **facts)

    @app.post("/report")
    async def report(request: Request) -> Response:
        await own(request)
        if not made:
            raise HTTPException(404)
        text = await run_in_threadpool(
            report_page, made[0], title=Path(source).stem, file=f"{Path(source).stem}.release.parquet"
        )
        return HTMLResponse(text, headers={"content-security-policy": REPORT_POLICY})

    return Guard(app, replace(door, token=None))


def serve_start(
    source: str, folder: Path, *, port: int = 8321, say: Callable[[str], None] = print, browser: bool = False
) -> None:
    """Serve the guided start until interrupted, on this machine, to whoever has the token."""
    listening = listen("127.0.0.1", port)
    port = listening.getsockname()[1]
    known = make_door("127.0.0.1", port, ())
    # A token is no noise: it guards a door, not a count, so it comes straight from the system.
    door = Door(known.hosts, port, token=os.urandom(16).hex())
    app = create_start(source, folder, door)
    shown = f"http://127.0.0.1:{port}/?token={door.token}"
    say("this page can show private facts about the records, and can pay: keep its address to yourself")
    run(app, listening, shown, say, browser)


def _read(source: str, folder: Path, listed: list[tuple[str, str]], form: Mapping[str, str]) -> Start:
    public = {name: form.get(f"public:{place}", "") for place, (name, _) in enumerate(listed)}
    given = {
        key: form[key]
        for key in ("unit", "workload", "epsilon", "total", "dataset")
        if form.get(key, "").strip()
    }
    return Start(source=source, public=public, folder=folder, **given)


def _described(start: Start, curve: Curve) -> dict[str, Any]:
    axes = " × ".join(f"{a.name} {a.size}" for a in start.domain.attributes)
    return {
        "cells": f"{axes} = {counted(start.domain.size, 'combination')}",
        "schema": start.schema,
        "commands": start.commands,
        "curve": [(epsilon, each.said) for epsilon, each in curve],
    }
