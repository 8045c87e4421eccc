"""Requests that no page of ours would send: the explorer answers or refuses, it does not break."""

import asyncio

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dphist
from dphist.web import create_app

LOOKS = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
ODD = [
    "", "0", "-1", "1e999", "nan", "age", "sex", "age = 3", "age between 1 and 5", "3-5", "0-99999999999", "0.95",
    "9" * 5000, "<script>", "../../etc/passwd", "\x00", "%00", "sex in ('F','M')",
]  # fmt: skip
VALUES = st.one_of(st.sampled_from(ODD), st.text(max_size=20))
KEYS = st.sampled_from(
    [
        "q",
        "show",
        "by",
        "window",
        "node",
        "confidence",
        "axis",
        "cells",
        "from",
        "to",
        "release",
        "other",
        "x",
    ]
)


@pytest.fixture(scope="module")
def app():
    domain = dphist.Domain([dphist.Ordinal("age", range(20)), dphist.Nominal("sex", ["F", "M"])])
    return create_app(
        {
            name: dphist.publish(dphist.Histogram(domain, np.ones((20, 2), dtype=np.int64)), epsilon=1)
            for name in ("one", "two")
        }
    )


def ask(app, method, path, **options):
    async def go():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    return asyncio.run(go())


@LOOKS
@given(
    path=st.sampled_from(["/api/view", "/download.csv", "/", "/compare"]),
    asked=st.dictionaries(KEYS, VALUES, max_size=4),
)
def test_any_question_is_answered_or_refused(app, path, asked):
    answer = ask(
        app,
        "GET",
        path,
        params={key: value.encode("utf-8", "replace").decode() for key, value in asked.items()},
    )
    assert answer.status_code in (200, 400, 404, 414)
    assert "Traceback" not in answer.text
    assert (
        "<script>" not in answer.text.replace("<script src", "")
        or answer.headers["content-type"] != "text/html"
    )


@LOOKS
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
    path=st.text("abc/.%0\\~é", max_size=30),
)
def test_any_path_and_method_is_answered_or_refused(app, method, path):
    answer = ask(app, method, "/" + path.lstrip("/"))
    assert answer.status_code < 500


@settings(LOOKS, max_examples=60)
@given(
    body=st.binary(max_size=200),
    kind=st.sampled_from(["application/json", "application/x-www-form-urlencoded", "x"]),
)
def test_any_body_is_answered_or_refused(app, body, kind):
    answer = ask(app, "POST", "/api/plan", content=body, headers={"content-type": kind})
    assert answer.status_code < 500


@settings(LOOKS, max_examples=60)
@given(host=st.text(st.characters(codec="ascii", exclude_characters="\r\n\x00"), max_size=30))
def test_only_our_own_names_are_served(app, host):
    answer = ask(app, "GET", "/api/view", headers={"host": host})
    if "localhost" not in host.lower() and "127.0.0.1" not in host:
        assert answer.status_code == 400
