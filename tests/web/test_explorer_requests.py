"""The explorer without a browser: what it serves equals the release, and what it refuses it refuses in words."""

import csv
import io
import re
from urllib.parse import urlencode

import pytest

from dphist.release.asking import read_question
from dphist.web import create_app
from dphist.web.guard import Door
from dphist.web.serve import make_door


def view(get, **asked):
    reply = get(f"/api/view?{urlencode(asked)}")
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"q": "age between 30 and 40"}, {"age": (30, 40)}),
        ({"q": "age >= 65 and place = 'hills'"}, {"age": (65, None), "place": "hills"}),
        ({"axis": "age", "cells": "30-41"}, {"age": (30, 40)}),
        ({"axis": "age", "from": "30", "to": "40"}, {"age": (30, 40)}),
        ({"axis": "place", "cells": "0-1,3-5"}, {"place": ["a", "hills"]}),
        ({"axis": "income", "cells": "1-3"}, {"income": (10_000, 49_999)}),
        ({"axis": "income", "cells": "4-5"}, {"income": "other"}),
        ({"q": "place in ('a', 'c')", "axis": "age", "cells": "0-18"}, {"place": ["a", "c"], "age": (0, 17)}),
        ({}, {}),
    ],
)
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_answers_are_the_releases_own_and_the_words_say_the_same(get, release, asked, where, confidence):
    said = view(get, confidence=confidence, **asked)
    own = release.answer(where=where, confidence=confidence)
    assert (said["answer"]["value"], said["answer"]["low"], said["answer"]["high"]) == (
        own.value,
        own.low,
        own.high,
    )
    assert said["answer"]["method"] == own.method
    # The question in words, and the one in Python, select the same cells again.
    again = release.answer(read_question(said["question"], release.domain), confidence=confidence)[0]
    assert again.value == own.value
    code = said["python"].replace("release.answer(", f"release.answer(confidence={confidence}, ")
    assert eval(code, {"release": release}) == own  # noqa: S307 -- our own words


def test_every_bar_is_an_answer_of_the_release(get, release):
    said = view(get, q="place = 'north'", show="age")
    assert len(said["rows"]) == 100
    for row in said["rows"][::9]:
        own = release.answer(where={"age": int(row["label"]), "place": "north"})
        assert (row["estimate"], row["low"], row["high"]) == (own.value, own.low, own.high)
    drawn = said["spec"]["datasets"]["numbers"]
    assert [row["estimate"] for row in drawn] == [row["estimate"] for row in said["rows"]]


def test_hierarchies_roll_down_and_up(get, release):
    top = view(get, show="place")
    assert [row["label"] for row in top["rows"]] == ["north", "south"]
    south = next(row for row in top["rows"] if row["label"] == "south")
    assert south["opens"]
    down = view(get, show="place", node=south["node"])
    assert [row["label"] for row in down["rows"]] == ["coast", "hills"]
    assert [crumb["name"] for crumb in down["crumbs"]] == ["all of place", "south"]
    assert down["rows"][1]["estimate"] == release.answer(where={"place": "hills"}).value
    assert view(get, show="place", node=down["crumbs"][0]["node"])["rows"] == top["rows"]


def test_conditions_are_named_as_people_would(get):
    said = view(get, q="place in ('a', 'hills') and age >= 65 and income < 25000")["conditions"]
    assert said["place"]["words"] == "a, hills"
    assert (said["age"]["words"], said["age"]["from"], said["age"]["to"]) == ("65 to 99", "65", "99")
    assert said["income"]["words"] == "[0, 25,000)"


def test_zooming_draws_only_the_window(get):
    said = view(get, window="20-30")
    assert [row["label"] for row in said["rows"]] == [str(age) for age in range(20, 30)]


def test_a_heat_map_holds_answers_of_the_release(get, release):
    drawn = view(get, show="age", by="income")["spec"]["datasets"]["numbers"]
    assert len(drawn) == 100 * 5
    row = next(row for row in drawn if row["label"] == "40" and row["other"] == "other")
    assert row["estimate"] == release.answer(where={"age": 40, "income": "other"}).value


def test_the_download_holds_the_selected_cells(get, release):
    reply = get(
        "/download.csv?"
        + urlencode({"q": "age between 30 and 33 and place = 'a'", "show": "age", "by": "place"})
    )
    assert reply.headers["content-disposition"] == 'attachment; filename="visits.csv"'
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert [(row["age"], row["place"]) for row in rows] == [(str(age), "a") for age in range(30, 34)]
    for row in rows:
        own = release.answer(where={"age": int(row["age"]), "place": "a"})
        assert (float(row["estimate"]), float(row["low"]), float(row["high"])) == (
            own.value,
            own.low,
            own.high,
        )


def test_pages_say_the_answer_without_any_script(get, release):
    text = get("/?" + urlencode({"q": "age between 30 and 40"})).text
    assert f"{release.answer(where={'age': (30, 40)}).value:,.1f}" in text


def test_comparing_asks_both_releases(get, release, second):
    text = get("/compare?" + urlencode({"q": "age < 20"})).text
    for each in (release, second):
        assert f"{each.answer(where={'age': (None, 19)}).value:,.1f}" in text


def test_releases_are_told_apart_by_number(get, release, second):
    assert view(get, release=1)["answer"]["value"] == second.answer().value != release.answer().value


BAD = {
    "unknown attribute in words": "/api/view?" + urlencode({"q": "height = 1"}),
    "unknown attribute to show": "/api/view?show=height",
    "unknown axis": "/api/view?axis=height&cells=0-1",
    "reversed range in words": "/api/view?" + urlencode({"q": "age between 40 and 30"}),
    "reversed cells": "/api/view?axis=age&cells=40-30",
    "reversed bounds": "/api/view?axis=age&from=40&to=30",
    "cells outside": "/api/view?axis=age&cells=0-1000",
    "huge number": "/api/view?axis=age&cells=0-" + "9" * 60,
    "bound that is no number": "/api/view?axis=age&from=young",
    "no such group": "/api/view?show=place&node=99",
    "window outside": "/api/view?window=90-200",
    "confidence above one": "/api/view?confidence=2",
    "confidence not a number": "/api/view?confidence=nan",
    "unknown parameter": "/api/view?where=age",
    "parameter given twice": "/api/view?show=age&show=place",
    "no such release": "/api/view?release=7",
    "release that is a path": "/api/view?release=../../etc/passwd",
    "garbage": "/api/view?" + urlencode({"q": "'; drop table visits; --"}),
    "huge question": "/api/view?" + urlencode({"q": "age = 1" + " " * 10_000}),
}


@pytest.mark.parametrize("path", BAD.values(), ids=BAD.keys())
def test_bad_requests_get_plain_words_and_nothing_else(get, path):
    for address in (path, path.replace("/api/view", "/"), path.replace("/api/view", "/download.csv")):
        reply = get(address)
        assert reply.status_code == 400, (address, reply.text)
        assert "Traceback" not in reply.text
        assert len(reply.text) < 2_000
    assert get(path).json().keys() == {"error"}


def test_a_question_too_long_for_an_address_is_refused(get):
    assert get("/api/view?q=" + "a" * 20_000).status_code == 414


@pytest.mark.parametrize(
    "path",
    ["/nope", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
     "/static/app.py", "/docs", "/openapi.json", "/redoc", "/static/vega.js/..", "http://localhost//evil.example/"],
)  # fmt: skip
def test_paths_that_are_not_ours_do_not_exist(get, path):
    reply = get(path)
    assert reply.status_code == 404
    assert "create_app" not in reply.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(get, method):
    assert get("/", method).status_code == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:81"]
)
def test_another_host_header_is_refused(client, release, host):
    ask = client(create_app({"visits": release}, Door(port=80)))
    reply = ask("/", headers={"Host": host})
    assert reply.status_code == 400
    assert "visits" not in reply.text
    assert ask("/", headers={"Host": "LOCALHOST"}).status_code == 200


def test_requests_from_other_sites_are_refused(get):
    assert get("/api/plan", "POST", headers={"Origin": "http://evil.example"}).status_code == 403
    assert get("/", headers={"Origin": "http://localhost"}).status_code == 200
    # What cannot be read is another site, and no error of ours.
    for odd in (
        "null",
        "http://[localhost",
        "http://localhost@evil.example",
        "http://localhost.evil.example",
    ):
        assert get("/", headers={"Origin": odd}).status_code == 403


def test_a_token_is_asked_for_beyond_this_machine(client, release):
    assert make_door("127.0.0.1", 8321, []).token is None
    assert make_door("localhost", 8321, []).token is None
    door = make_door("192.0.2.7", 8321, ["data.example"])
    other = make_door("192.0.2.7", 8321, [])
    assert len(door.token) == 32  # type: ignore[arg-type]
    assert door.token != other.token
    ask = client(create_app({"visits": release}, door), "http://192.0.2.7:8321")
    for path in (
        "/",
        "/?token=",
        "/?token=wrong",
        f"/?token={other.token}",
        f"/?token={door.token}&token=x",
        "/static/vega.js",
    ):
        reply = ask(path)
        assert reply.status_code == 403, path
        assert "visits" not in reply.text
    assert ask("/", headers={"Cookie": f"dphist_8321={other.token}"}).status_code == 403
    entered = ask(f"/?token={door.token}&show=place")
    assert entered.status_code == 303
    assert entered.headers["location"] == "/?show=place"
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ask("/", headers={"Cookie": cookie.split(";")[0]}).status_code == 200
    # The token moves to a cookie, and never sends anybody elsewhere.
    assert (
        ask(f"http://192.0.2.7:8321//evil.example/?token={door.token}").headers["location"]
        == "/evil.example/"
    )
    assert ask("/", headers={"Host": "evil.example:8321"}).status_code == 400
    assert ask(f"/?token={door.token}", headers={"Host": "data.example:8321"}).status_code == 303


def test_listening_everywhere_accepts_numbers_but_no_strange_names():
    door = make_door("0.0.0.0", 8321, [])  # noqa: S104 -- nothing listens here
    assert door.token
    assert door.knows("192.0.2.9:8321")
    assert door.knows("[2001:db8::1]:8321")
    assert not door.knows("evil.example:8321")


def test_every_answer_forbids_the_page_to_fetch_or_be_framed(get):
    for path in ("/", "/nope", "/static/style.css", "/plan", "/report"):
        headers = get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe-eval" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_no_page_names_another_host(get):
    for path in (
        "/",
        "/compare",
        "/plan",
        "/static/explorer.js",
        "/static/planner.js",
        "/static/drawing.js",
        "/static/style.css",
    ):
        # Vega-Lite's own schema is a name, not an address to fetch.
        text = get(path).text.replace("https://vega.github.io/schema/", "")
        assert not re.search(r"(https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text), path


def test_names_from_a_schema_cannot_become_markup(client):
    import numpy as np

    import dphist

    evil = "</script><script>alert(1)</script>"
    domain = dphist.Domain([dphist.Ordinal("x", [evil, "b"]), dphist.Nominal(evil, [evil, "it's"])])
    made = dphist.publish(dphist.Histogram(domain, np.ones((2, 2), dtype=np.int64)), epsilon=1)
    ask = client(create_app({evil: made}))
    for path in ("/", "/?show=" + evil.replace("/", "%2F"), "/report"):
        text = ask(path).text
        assert "<script>alert(1)" not in text
    said = ask("/api/view?axis=" + evil.replace("/", "%2F") + "&cells=1-2").json()
    assert said["answer"]["value"] == made.answer(where={evil: "it's"}).value
    assert read_question(said["question"], domain) == read_question(f"\"{evil}\" = 'it''s'", domain)
