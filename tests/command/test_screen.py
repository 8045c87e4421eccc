"""What is printed arrives whatever the screen's encoding is, and whoever stops a command is told so in a word."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import dphist
import dphist.cli
from dphist.report import figure, picture

NAMES = ["Zürich", "Łódź", "東京", "😀"]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release whose labels no code page has all of."""
    path = tmp_path_factory.mktemp("screen") / "r.parquet"
    domain = dphist.Domain([dphist.Nominal("Ort ε", NAMES)])
    dphist.publish(
        dphist.Histogram(domain, np.array([90, 50, 70, 30])), epsilon=1, mechanism="laplace", unattended=True
    ).save(path)
    return path


def run(*words, encoding="utf-8"):
    return subprocess.run(
        [sys.executable, "-m", "dphist", *map(str, words)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "ascii:surrogateescape"])
def test_letters_that_a_screen_lacks_are_printed_by_number(release, encoding):
    """For people and for programs, whose JSON has the same texts."""
    plain = encoding.partition(":")[0]
    shown = run("show", release, encoding=encoding)
    assert shown.returncode == 0, shown.stderr
    assert "\\u03b5" in shown.stdout.decode(plain)
    answered = run("query", release, "--json", encoding=encoding)
    assert json.loads(answered.stdout.decode(plain)) == json.loads(run("query", release, "--json").stdout)
    table = run("sql", release, 'select "Ort ε" as "Ort" from release', "--json", encoding=encoding)
    assert table.returncode == 0, table.stderr
    found = json.dumps(json.loads(table.stdout.decode(plain)), ensure_ascii=False)
    assert all(name in found for name in NAMES)


def test_synthetic_records_keep_their_labels_on_any_screen(release):
    """A table goes through a pipe as it goes to a file: in UTF-8."""
    piped = run("records", release, encoding="cp1252")
    assert piped.returncode == 0, piped.stderr
    assert set(piped.stdout.decode().split()) >= set(NAMES[:3])


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("begin", [dphist.cli.main, dphist.cli.run])
def test_ctrl_c_is_one_word(begin, monkeypatch, capsys):
    """Before the library that reads arguments has a say, too, and while modules are loaded."""
    monkeypatch.setattr("dphist.cli._command", interrupted)
    monkeypatch.setattr(sys, "argv", ["dphist", "show"])
    with pytest.raises(SystemExit) as stopped:
        begin()
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "dphist: stopped\n"
    monkeypatch.setattr(sys, "argv", ["dphist", "publish", "--ledger=budget.db"])
    with pytest.raises(SystemExit):
        begin()
    assert "stays spent" in capsys.readouterr().err


def test_ctrl_c_in_the_midst_of_a_command_is_told_too(tmp_path, monkeypatch, capsys):
    """The library that reads arguments made an exit code of it: a budget was spent, and nothing was said."""
    monkeypatch.setattr("dphist.cli.publishing.read_declared", interrupted)
    words = [
        "publish",
        "x.csv",
        "--schema",
        "x.toml",
        "--epsilon",
        "1",
        "--ledger",
        "b.db",
        "-o",
        "x.parquet",
    ]
    monkeypatch.setattr(sys, "argv", ["dphist", *words])
    with pytest.raises(SystemExit) as stopped:
        dphist.cli.main()
    assert stopped.value.code == 130
    assert "what was paid for by then stays spent" in capsys.readouterr().err


@pytest.fixture
def misleading(tmp_path):
    """A release whose names are commands of a terminal, or no text of a picture's."""
    path = tmp_path / "misleading.parquet"
    labels = ["\x1b[2Jred", "a\nb", "\u202e901", "\x00", "\x9b1m"]
    domain = dphist.Domain([dphist.Nominal("\x1b]0;name\x07", labels)])
    dphist.publish(
        dphist.Histogram(domain, np.array([90, 50, 70, 30, 20])),
        epsilon=1,
        mechanism="laplace",
        unattended=True,
    ).save(path)
    return path, labels


def test_names_in_a_release_command_no_terminal(misleading):
    path, labels = misleading
    for words in (["show", path], ["sql", path, "select * from release"], ["query", path, "nothing = 1"]):
        done = run(*words)
        said = (done.stdout + done.stderr).decode()
        assert "\\u001b" in said
        assert not any(mark in said for mark in "\x1b\x07\x00\x9b\u202e")
        if words[0] != "query":
            assert "a\\u000ab" in said
    # Programs get the very names.
    found = json.loads(run("sql", path, "select * from release", "--json").stdout)
    assert [each["\x1b]0;name\x07"] for each in found] == labels


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("names", [["a\\b"], ["a\\b", "c\\u0000d"]])
def test_names_with_a_backslash_are_drawn(kind, names, tmp_path):
    """A drawing program took them for JSON's: \\b became a control character that no picture can hold."""
    domain = dphist.Domain([dphist.Nominal("a\\b", ["p\\t", "q\\"]), dphist.Nominal("c\\u0000d", ["x", "y"])])
    release = dphist.publish(
        dphist.Histogram(domain, np.array([[90, 50], [70, 30]])), epsilon=1, mechanism="laplace"
    )
    drawn = picture(figure(release, names), kind)
    if kind == "svg":
        told = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 -- our own
        assert "p\N{SET MINUS}t" in told


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_names_that_no_picture_can_have_are_drawn_by_number(misleading, kind, tmp_path):
    done = run("plot", misleading[0], "--output", tmp_path / f"plot.{kind}")
    assert done.returncode == 0, done.stderr
    if kind == "svg":
        drawn = ElementTree.fromstring((tmp_path / "plot.svg").read_bytes())  # noqa: S314 -- our own
        assert any("U+0000" in (text or "") for text in drawn.itertext())
