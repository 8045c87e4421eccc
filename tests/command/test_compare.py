"""``dphist compare``: for public data only, and it says so."""

import io
import json
import sys

import pytest

from dphist.cli import main

SCHEMA = '[[attribute]]\nname = "x"\nkind = "ordinal"\nrange = [0, 16]\n'


@pytest.fixture
def room(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(str(i % 20) for i in range(3000)) + "\n")
    (tmp_path / "rows.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(monkeypatch, *words):
    asked = ["dphist", "compare", "rows.csv", "--schema", "rows.toml", *words]
    monkeypatch.setattr(sys, "argv", asked)
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code


def test_it_compares_error_and_time(room, monkeypatch, capsys):
    words = ["--mechanism", "laplace", "--mechanism", "uniform", "--mechanism", "tree", "--trials", "2"]
    assert command(monkeypatch, "--public", "--json", *words) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == {"laplace", "uniform", "tree"}
    assert [row["error"] for row in rows] == sorted(row["error"] for row in rows)
    assert any(row["skyline"] for row in rows)
    assert command(monkeypatch, "--public", *words) == 0
    assert "skyline" in capsys.readouterr().out


def test_it_asks_before_it_prints_what_is_not_private(room, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert command(monkeypatch, "--mechanism", "laplace") == 1
    shown = capsys.readouterr()
    assert "not private" in shown.err
    assert shown.out.strip() == ""


@pytest.mark.parametrize(
    ("words", "said"), [(["--trials", "0"], "trials"), (["--mechanism", "laplas"], "laplace")]
)
def test_wrong_use_is_named(room, monkeypatch, capsys, words, said):
    assert command(monkeypatch, "--public", *words) == 2
    assert said in capsys.readouterr().err


def test_how_far_it_has_come_is_said_and_what_does_not_fit_is_sampled(room, monkeypatch, capsys):
    from dphist.planning.compare import sampled
    from dphist.waiting import listening

    said: list[str] = []
    monkeypatch.setattr(
        sys.modules["dphist.planning.compare"], "sampled", lambda asked, *_: sampled(asked, 50)
    )
    words = ["--mechanism", "laplace", "--mechanism", "uniform", "--trials", "1"]
    with listening(said.append):
        assert command(monkeypatch, "--public", *words) == 0
    assert said == ["comparing mechanisms: 50 %"]
    assert "a sample of 50" in capsys.readouterr().out


def test_samples_are_questions_of_the_workload():
    import dphist
    from dphist.planning.compare import sampled

    domain = dphist.Domain([dphist.Ordinal("x", range(40)), dphist.Ordinal("y", range(30))])
    for workload in (dphist.Workload.cells(domain), dphist.Workload.prefixes(domain)):
        few = sampled(workload, 100)
        assert 50 <= len(few) <= 100
        known = {
            (*low, *high) for low, high in zip(workload.low.tolist(), workload.high.tolist(), strict=True)
        }
        assert {(*low, *high) for low, high in zip(few.low.tolist(), few.high.tolist(), strict=True)} <= known
    assert len(sampled(dphist.Workload.all_ranges(domain), 100)) == 100
    assert sampled(dphist.Workload.cells(domain)) == dphist.Workload.cells(domain)
