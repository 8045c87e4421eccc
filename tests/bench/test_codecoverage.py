"""The page of lines and branches (`measurements.trust.codecoverage`) is made from what coverage.py wrote."""

import json

from dphist_bench import catalogue
from dphist_bench.measurements.trust.codecoverage import ROOT, places


def file(lines, missing, branches=0, taken=0):
    told = {"num_statements": lines, "covered_lines": lines - len(missing)}
    return {
        "summary": told | {"num_branches": branches, "covered_branches": taken},
        "missing_lines": missing,
    }


def test_a_page_is_made_of_a_report(tmp_path, capsys):
    files = {
        "src/dphist/private/gate.py": file(100, [7, 8, 9, 40], 10, 9),
        "src/dphist/private/held.py": file(10, []),
        "src/dphist/sources/duck/duck.py": file(50, [3]),
        "src/dphist/model/unit.py": file(1000, list(range(900))),
    }
    report, page = tmp_path / "report.json", tmp_path / "page.md"
    report.write_text(json.dumps({"files": files}))
    options = ["--quick", "--report", str(report), "--page", str(page)]
    assert catalogue.measure("codecoverage", options, tmp_path) == 0
    assert "the module" in capsys.readouterr().out
    words = page.read_text()
    assert "| `private/` | 96.4 % | 90.0 % | 4 of 110 |" in words
    assert "| `sources/` | 98.0 % | – | 1 of 50 |" in words
    assert "held.py" not in words
    assert "unit.py" not in words


def test_what_was_not_run_is_named_by_its_function():
    source = (ROOT / "src/dphist/private/gate.py").read_text(encoding="utf-8")
    split = 1 + source[: source.index("fractions = shares(parts)")].count("\n")
    assert places(source, [split, split + 1]) == "`PrivateCounts.split`"
    assert places(source, [1, split]) == "the module, `PrivateCounts.split`"
