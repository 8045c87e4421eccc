"""The commands that show: what they write, and how they refuse."""

import os
import re
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import dphist
from dphist.cli import main


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeing")
    domain = dphist.Domain([dphist.Ordinal("age", range(20)), dphist.Nominal("sex", ["F", "M"])])
    for name in ("one", "two"):
        made = dphist.publish(dphist.Histogram(domain, np.full((20, 2), 30)), epsilon=1)
        made.save(folder / f"{name}.parquet")
    return folder


def run(monkeypatch, capsys, room, *words):
    """Run a command in this process: starting one costs more than most of them do."""
    monkeypatch.chdir(room)
    monkeypatch.setattr(sys, "argv", ["dphist", *words])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    return end.value.code or 0, said.out, said.err


def test_report_and_plot_write_their_files(monkeypatch, capsys, room):
    code, out, _ = run(
        monkeypatch, capsys, room, "report", "one.parquet", "-o", "page.html", "--title", "Ages"
    )
    assert code == 0
    assert "page.html" in out
    assert "<h1>Ages</h1>" in (room / "page.html").read_text(encoding="utf-8")
    # A page is made anew; records that go by the name of one are not written over.
    assert run(monkeypatch, capsys, room, "report", "one.parquet", "-o", "page.html")[0] == 0
    assert "<h1>one</h1>" in (room / "page.html").read_text(encoding="utf-8")
    (room / "visits.csv").write_text("age,sex\n1,F\n")
    code, _, said = run(monkeypatch, capsys, room, "report", "one.parquet", "-o", "visits.csv")
    assert (code, (room / "visits.csv").read_text()) == (1, "age,sex\n1,F\n")
    assert "is no page" in said
    for names, file in ((["age"], "a.png"), (["age", "sex"], "b.svg"), ([], "c.svg")):
        assert run(monkeypatch, capsys, room, "plot", "one.parquet", *names, "-o", file)[0] == 0
        assert (room / file).stat().st_size > 1000
    # A picture that is there is not written over, unless one says so.
    (room / "a.png").write_text("mine")
    code, _, said = run(monkeypatch, capsys, room, "plot", "one.parquet", "-o", "a.png")
    assert (code, (room / "a.png").read_text()) == (1, "mine")
    assert "--force" in said
    assert run(monkeypatch, capsys, room, "plot", "one.parquet", "-o", "a.png", "--force")[0] == 0
    assert (room / "a.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plot", "one.parquet", "age", "-o", "a.gif"], ".png or .svg"),
        (["plot", "one.parquet", "height", "-o", "new.png"], "no attribute"),
        (["report", "missing.parquet"], "no file"),
        (["explore", "one.parquet", "one.parquet", "--no-browser"], "named twice"),
        (["explore", "one.parquet", "--port", "99999", "--no-browser"], "choose another --port"),
        (["plan"], "--schema"),
    ],
)
def test_wrong_use_ends_in_one_line(monkeypatch, capsys, room, words, said):
    code, _, err = run(monkeypatch, capsys, room, *words)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_the_explorer_starts_answers_and_stops(room):
    process = subprocess.Popen(
        [sys.executable, "-m", "dphist", "explore", "one.parquet", "two.parquet", "--port", "0", "--no-browser"],
        cwd=room, stderr=subprocess.PIPE, text=True, env=os.environ,
    )  # fmt: skip
    try:
        address = None
        for line in process.stderr:  # type: ignore[union-attr]
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if found:
                address = found[0]
                break
        assert address
        with urllib.request.urlopen(address + "api/view?q=age+%3C+5", timeout=60) as reply:  # noqa: S310 -- ours
            own = dphist.load(room / "one.parquet").answer(where={"age": (None, 4)})
            assert f'"value": {own.value}' in reply.read().decode()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert "Traceback" not in process.stderr.read()  # type: ignore[union-attr]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()  # type: ignore[union-attr]
