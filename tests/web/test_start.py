"""The guided start: in the terminal from a file of answers, as requests, and in a real browser."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer
import uvicorn
from typer.testing import CliRunner

import dphist
from dphist.cli import starting
from dphist.cli.commands import app as commands
from dphist.errors import DomainError, DphistError, InputError
from dphist.model.domain.words import attribute_from_words
from dphist.model.schema import Schema
from dphist.planning import Forecast
from dphist.planning.starting import Start
from dphist.web.guard import Door
from dphist.web.serve import _leading_to
from dphist.web.start import create_start


@pytest.fixture
def visits(tmp_path):
    place = tmp_path / "visits.csv"
    rows = "".join(f"{i % 100},{'FM'[i % 2]},{i}\n" for i in range(500))
    place.write_text(f"age,sex,comment\n{rows}")
    return place


@pytest.mark.parametrize(
    ("words", "attribute"),
    [
        ("0 to 99", dphist.Ordinal("x", range(100))),
        ("-5..10 by 5", dphist.Ordinal("x", range(-5, 11, 5))),
        ("bins 0, 18, 65.5", dphist.Ordinal("x", edges=[0, 18, 65.5])),
        ("bins 0 to 20 by 5 or other", dphist.Ordinal("x", edges=range(0, 21, 5), other=True)),
        (
            "dates 2024-01-01 to 2024-12-31 by 1mo",
            dphist.Ordinal("x", dates=("2024-01-01", "2025-01-01", "1mo")),
        ),
        ("2024-01-01 to 2024-12-31 by 1mo", dphist.Ordinal("x", dates=("2024-01-01", "2025-01-01", "1mo"))),
        ("F, M", dphist.Nominal("x", ["F", "M"])),
        ('"a b" , c or other', dphist.Nominal("x", ["a b", "c"], other=True)),
        ("Texas, California or others", dphist.Nominal("x", ["Texas", "California"], other=True)),
        ("Texas, California, or others", dphist.Nominal("x", ["Texas", "California"], other=True)),
        ("low < high or anything else", dphist.Ordinal("x", ["low", "high"], other=True)),
        ("Dior, Or", dphist.Nominal("x", ["Dior", "Or"])),
        ("low < middle < high", dphist.Ordinal("x", ["low", "middle", "high"])),
        ("  ", None),
        ("skip", None),
    ],
)
def test_what_is_public_is_read_from_words(words, attribute):
    assert attribute_from_words("x", words) == attribute


@pytest.mark.parametrize(
    "words",
    [
        "99 to 0",
        "0 to 99 by 0",
        "0.5 to 3",
        "bins",
        "bins a, b",
        "bins 0 to 7 by 2",
        "dates soon to later",
        "31/12/2023 to 31/12/2024",
        "F,,M",
        "anything",
    ],
)
def test_words_that_say_nothing_are_refused(words):
    with pytest.raises(DomainError, match="x: "):
        attribute_from_words("x", words)


def test_the_terminal_guides_from_a_file_to_a_report(visits, tmp_path):
    answers = tmp_path / "answers.txt"
    answers.write_text("no\n0 to 99\nF, M\n\nmarginals:2\n1\n\n2\nyes\n")
    words = ["start", str(visits), "--folder", str(tmp_path), "--answers", str(answers), "--no-browser"]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.exception
    release = dphist.load(tmp_path / "visits.release.parquet")
    release.verify()
    assert release.domain.names == ("age", "sex")
    assert (tmp_path / "visits.report.html").read_text().startswith("<!doctype html>")
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        assert [book.spent("visits"), book.total("visits")] == [1, 2]
    shown = [line.removeprefix("  $ ") for line in done.stdout.splitlines() if line.startswith("  $ ")]
    assert [line.split()[1] for line in shown] == [
        "schema", "ledger", "rehearse", "publish", "report", "explore",
    ]  # fmt: skip
    # The commands that are printed do the same: with them alone another folder comes to the same release.
    schema = Schema.read(tmp_path / "visits.toml")
    assert schema.workload == dphist.Workload.marginals(schema.domain, 2)
    assert "PRIVATE" in done.stdout
    assert "     bins 0, 18, 65, 120\n" in done.stdout, "each form of an answer has a line of its own"
    # Nothing of the records is in the schema: it is a function of the names and of the answers.
    again = Start(source=str(visits), public={"age": "0 to 99", "sex": "F, M"}, workload="marginals:2")
    assert (tmp_path / "visits.toml").read_text() == again.schema
    # A second run pays nothing: the release is there.
    refused = CliRunner().invoke(commands, words)
    assert isinstance(refused.exception, dphist.errors.OutputError)
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        assert book.spent("visits") == 1


@pytest.mark.parametrize(
    "answers",
    ["", "row\n0 to 99\n", "row\nninety\n", "\n\n\n\n", "row\n0 to 99\nF, M\n\ntables\n", "person\n", "yes\n",
     "row\n0 to 9\n\n\ncells\n-1\n", "row\n0 to 9\n\n\ncells\n1\n\n1/2\n"],
)  # fmt: skip
def test_answers_that_do_not_work_end_before_anything_is_written(answers, visits, tmp_path):
    (tmp_path / "answers.txt").write_text(answers)
    options = ["--folder", str(tmp_path), "--answers", str(tmp_path / "answers.txt"), "--no-browser"]
    done = CliRunner().invoke(commands, ["start", str(visits), *options])
    assert isinstance(done.exception, DphistError)
    assert not (tmp_path / "visits.toml").exists()
    assert not (tmp_path / "budget.db").exists()


def test_who_stops_takes_the_answers_along(visits, tmp_path, monkeypatch, capsys):
    typed = ["rows=2", "0 to 99", "F, M", "", "ranges", None]
    said = iter(typed)

    def prompt(question, default, show_default):
        answer = next(said)
        if answer is None:
            raise typer.Abort
        return answer or default

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(Start, "curve", lambda start: [("1", Forecast("auto", 2.0, 2.0, "exact"))])
    with pytest.raises(typer.Abort):
        starting._answered(str(visits), tmp_path, starting.Ask([], typed=True))
    kept = tmp_path / "visits.answers.txt"
    assert kept.read_text() == "rows=2\n0 to 99\nF, M\n\nranges\n"
    assert f"--answers {kept}" in capsys.readouterr().out
    # They are gone on from, and what is there is not written over.
    said = iter(["1/2", "people", None])
    with pytest.raises(typer.Abort):
        starting._answered(str(visits), tmp_path, starting.Ask(kept.read_text().splitlines(), typed=True))
    assert kept.read_text().endswith("ranges\n")
    said = iter(["1/2", "people", "1"])
    made = starting._answered(str(visits), tmp_path, starting.Ask(kept.read_text().splitlines(), typed=True))
    assert (made.public["age"], made.unit, made.asked, made.epsilon, made.dataset, made.total) == (
        "0 to 99", "rows=2", "ranges", "1/2", "people", "1",
    )  # fmt: skip


def test_the_budget_is_for_whom_the_start_protects(visits, tmp_path):
    start = Start(source=str(visits), public={"age": "0 to 99"}, unit="rows=2, id=comment", folder=tmp_path)
    start.write()
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        assert book.unit("visits") == dphist.Unit(rows=2, id="comment")
    words = shlex.split(start.commands["ledger"])[1:]
    words[words.index(str(tmp_path / "budget.db"))] = str(tmp_path / "typed.db")
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.exception
    with dphist.Ledger.open(tmp_path / "typed.db") as book:
        assert book.unit("visits") == dphist.Unit(rows=2, id="comment")


def test_no_is_no(visits, tmp_path):
    typed = "no\n0 to 99\nF, M\n\ncells\n1\npeople\n1\nno\n"
    done = CliRunner().invoke(commands, ["start", str(visits), "--folder", str(tmp_path)], input=typed)
    assert done.exit_code == 0, done.exception
    assert "nothing was spent" in done.stdout
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        assert book.spent("people") == 0
    assert isinstance(
        CliRunner().invoke(commands, ["start", str(visits), "--folder", str(tmp_path / "no")]).exception,
        InputError,
    )


@pytest.mark.parametrize(
    ("public", "proposed"),
    [({"0": "0 to 99", "1": "F, M"}, "marginals:2"), ({"0": "0 to 99", "1": ""}, "ranges")],
)
def test_the_page_and_the_terminal_propose_the_same(client, visits, tmp_path, public, proposed):
    """The page had proposed ranges whatever the columns, and the terminal tables of two."""
    answers = tmp_path / "answers.txt"
    answers.write_text("\n".join(["", *public.values(), "", "", "", "", "", "no", ""]))
    words = ["start", str(visits), "--folder", str(tmp_path), "--answers", str(answers), "--no-browser"]
    assert CliRunner().invoke(commands, words).exit_code == 0
    (tmp_path / "page").mkdir()
    ask = client(create_start(str(visits), tmp_path / "page"))
    form = {
        **{f"public:{place}": said for place, said in public.items()},
        "workload": "",
        "action": "rehearse",
    }
    assert ask("/", "POST", data=form).status_code == 200
    for folder in (tmp_path, tmp_path / "page"):
        assert f'workload = "{proposed}"' in (folder / "visits.toml").read_text()


FORM = {"public:0": "0 to 99", "public:1": "F, M", "workload": "cells", "epsilon": "1/2", "total": "1"}


def test_the_page_asks_for_its_token_and_pays_once_and_only_when_told(client, visits, tmp_path):
    ask = client(create_start(str(visits), tmp_path))
    first = ask("/")
    assert first.status_code == 200
    assert "comment" in first.text
    assert first.headers["referrer-policy"] == "same-origin"
    assert ask("/", "POST", data=FORM, headers={"origin": "http://elsewhere"}).status_code == 403
    checked = ask("/", "POST", data={**FORM, "action": "check"})
    assert checked.status_code == 200
    assert "100 × sex 2 = 200 combinations" in checked.text
    assert not (tmp_path / "visits.toml").exists()
    assert "Expected error by ε" in checked.text
    rehearsed = ask("/", "POST", data={**FORM, "action": "rehearse"})
    assert "PRIVATE" in rehearsed.text
    # What this start wrote may be corrected by it.
    assert (
        ask("/", "POST", data={**FORM, "public:1": "F, M or other", "action": "rehearse"}).status_code == 200
    )
    assert ask("/", "POST", data={**FORM, "action": "rehearse"}).status_code == 200
    unsaid = ask("/", "POST", data={**FORM, "action": "publish"})
    assert unsaid.status_code == 400
    assert "tick the box" in unsaid.text
    assert 'name="agreed"' in unsaid.text, "the box that was not ticked is there to be ticked"
    assert ask("/report", "POST").status_code == 404
    done = ask("/", "POST", data={**FORM, "action": "publish", "agreed": "yes"})
    assert done.status_code == 200, done.text
    again = ask("/", "POST", data={**FORM, "action": "publish", "agreed": "yes"})
    assert again.status_code == 400
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        assert str(book.spent("visits")) == "1/2"
    dphist.load(tmp_path / "visits.release.parquet").verify()
    assert "visits" in ask("/report", "POST").text
    assert ask("/static/style.css").status_code == 200
    assert ask("/static/no.js").status_code == 404
    for wrong in (
        {"public:0": "x"},
        {"epsilon": "0"},
        {"workload": "tables"},
        {"unit": "?"},
        {"total": "1/9"},
        {},
    ):
        form = {**FORM, **wrong, "action": "check"} if wrong else {}
        assert ask("/", "POST", data=form).status_code == 400


def test_a_report_that_cannot_be_written_does_not_hide_what_was_paid_for(client, visits, tmp_path):
    """A folder stands in the report's place: the page says so, where the release is, and shows the report itself."""
    (tmp_path / "visits.report.html").mkdir()
    ask = client(create_start(str(visits), tmp_path))
    done = ask("/", "POST", data={**FORM, "action": "publish", "agreed": "yes"})
    assert done.status_code == 400
    assert "cannot write" in done.text
    assert "visits.release.parquet" in done.text
    assert dphist.load(tmp_path / "visits.release.parquet").domain.size == 200
    assert ask("/report", "POST").status_code == 200


def test_the_address_opens_once_and_then_each_form_carries_its_own_key(client, visits, tmp_path):
    """What another user reads in a browser's command line, or gets as a cookie at another port, opens nothing."""
    ask = client(create_start(str(visits), tmp_path, Door(token="secret")))  # noqa: S106
    for closed in ("/", "/?token=", "/?token=wrong", "/report"):
        assert ask(closed).status_code in (403, 405), closed
    opened = ask("/?token=secret")
    assert opened.status_code == 200
    assert "set-cookie" not in opened.headers
    again = ask("/?token=secret")
    assert again.status_code == 403
    assert "opens once" in again.text
    assert "comment" not in again.text, "no column is named"
    [key] = re.findall('name="key" value="([0-9a-f]{32})"', opened.text)
    for path in ("/", "/report"):
        for wrong in ({}, {"key": ""}, {"key": "secret"}, {"key": "ü"}):
            refused = ask(path, "POST", data={**FORM, **wrong, "action": "rehearse"})
            assert refused.status_code == 403
    assert not (tmp_path / "visits.toml").exists()
    shown = ask("/", "POST", data={**FORM, "key": key, "action": "rehearse"})
    assert "PRIVATE" in shown.text
    assert key in shown.text, "the next form carries it too"


def test_a_browser_is_led_by_a_file_of_ours_once_we_answer(visits, tmp_path):
    """Its command line has no token in it, and one that lives in the terminal does not wait for us in vain."""
    reader = tmp_path / "reader.py"
    reader.write_text(
        "import os, pathlib, re, signal, stat, sys, urllib.request\n"
        "file = pathlib.Path(urllib.request.url2pathname(sys.argv[1].removeprefix('file://')))\n"
        "address = re.search('url=([^\"]*)', file.read_text()).group(1)\n"
        "said = [sys.argv[1], address, str(stat.S_IMODE(file.stat().st_mode)),\n"
        "        urllib.request.urlopen(address, timeout=60).read().decode()]\n"
        f"pathlib.Path({str(tmp_path / 'said')!r}).write_text('\\n'.join(said))\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
    )
    script = (
        "import sys; from pathlib import Path; from dphist.web.start import serve_start\n"
        "serve_start(sys.argv[1], Path(sys.argv[2]), port=0, browser=True)"
    )
    environment = {**os.environ, "BROWSER": f"{sys.executable} {reader} %s", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(visits), str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    given, address, mode, page = (tmp_path / "said").read_text().split("\n", 3)
    assert address in done.stdout
    token = address.partition("token=")[2]
    assert len(token) == 32
    assert token not in given
    assert int(mode) == 0o600
    assert "From visits.csv to a release" in page
    assert not list(tmp_path.glob("dphist-*.html")), "the file goes when the server does"


def test_a_schema_in_another_encoding_is_something_else(client, visits, tmp_path):
    """It is not written over, and the page says why."""
    (tmp_path / "visits.toml").write_bytes("# Größe\n".encode("latin-1"))
    refused = client(create_start(str(visits), tmp_path))("/", "POST", data={**FORM, "action": "rehearse"})
    assert refused.status_code == 400
    assert "says something else" in refused.text
    assert (tmp_path / "visits.toml").read_bytes() == "# Größe\n".encode("latin-1")


@pytest.mark.browser
def test_a_person_starts_in_a_browser(look, visits, tmp_path):
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    guarded = [create_start(str(visits), tmp_path, Door(port=port, token="known"))]  # noqa: S106

    async def app(scope, receive, send):
        await guarded[-1](scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{port}/?token=known"
    try:
        for width, scheme, script in ((400, "light", False), (1280, "dark", True)):
            # The address opens once: each window has a start of its own.
            guarded.append(create_start(str(visits), tmp_path, Door(port=port, token="known")))  # noqa: S106
            with _leading_to(address) as file:
                watched = look(file, width=width, scheme=scheme, script=script)
                watched.page.wait_for_url(address)
            page = watched.page
            # What can be written is a list, one form a line.
            forms = page.locator("form#start ul li").all_inner_texts()
            assert len(forms) >= 6
            assert not any("·" in form for form in forms)
            page.get_by_role("textbox", name="age (").fill("0 to 99")
            page.get_by_role("textbox", name="sex (").fill("F, M")
            page.get_by_label("What will people ask?").or_(page.locator("[name=workload]")).first.fill(
                "cells"
            )
            page.get_by_role("button", name="Check and forecast").click()
            page.wait_for_selector("#expected")
            page.get_by_role("button", name="Write schema and ledger, and rehearse").click()
            page.wait_for_selector("#told")
            assert "PRIVATE" in page.locator("#told").inner_text()
            assert (
                page.locator("body").evaluate("at => at.ownerDocument.documentElement.scrollWidth") <= width
            )
            # Whatever can be filled in or pressed has a name for those who hear the page.
            for kind in ("textbox", "button", "checkbox", "combobox"):
                for each in page.get_by_role(kind).all():
                    assert each.evaluate("at => (at.labels && at.labels.length) || at.textContent.trim()")
            assert watched.problems == []
            if script:
                axe = pytest.importorskip(
                    "axe_playwright_python.sync_playwright", reason="axe is not installed"
                )
                page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
                assert [each["id"] for each in page.evaluate("axe.run()")["violations"]] == []
        page.get_by_role("checkbox", name="Spend").check()
        page.get_by_role("button", name="Publish", exact=True).click()
        with page.expect_popup() as popup:
            page.get_by_role("button", name="Look at the report").click()
        popup.value.wait_for_selector("h1")
        assert Path(tmp_path / "visits.release.parquet").exists()
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listening.close()


def test_the_first_question_is_whether_people_have_several_rows_and_says_what_follows(visits, tmp_path):
    typed = "rows=5, id=comment\n0 to 99\nF, M\n\ncells\n1\npeople\n1\nno\n"
    done = CliRunner().invoke(commands, ["start", str(visits), "--folder", str(tmp_path)], input=typed)
    assert done.exit_code == 0, done.exception
    asked = [line for line in done.stdout.splitlines() if line[:2] in ("1.", "2.", "3.", "4.", "5.")]
    assert asked[0].startswith("1. Can one person have several rows?")
    assert "at most 5 of each count. Noise is 5 times as large" in done.stdout
    promises = {
        unit: Start(source="x.csv", public={}, unit=unit).promise for unit in ("row", "rows=3", "row, id=p")
    }
    assert "twice the ε" in promises["row"]
    assert "3 times" in promises["rows=3"]
    assert promises["row, id=p"].endswith("at most 1 of each count.")
