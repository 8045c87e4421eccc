"""How accurate answers are is said of what was measured: of tables where these were announced, never of nothing."""

import numpy as np
import pytest

import dphist
from dphist.mechanisms import Laplace, Marginals
from dphist.report import report_page
from dphist.report.accuracy import accuracy, relative
from dphist.report.dossier.folder import filled
from dphist.report.dossier.known import Known

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(20)),
        dphist.Nominal("sex", ["F", "M"]),
        dphist.Nominal("job", ["a", "b", "c"]),
        dphist.Nominal("region", ["n", "e", "s", "w"]),
    ]
)


def publish(mechanism="auto", workload=None):
    counts = np.random.default_rng(3).poisson(20, DOMAIN.shape)
    return dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=1, mechanism=mechanism, workload=workload)


@pytest.fixture(scope="module")
def pairs():
    """A release of announced tables of two attributes: nothing of more than two was measured."""
    everything = Marginals(tables=((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)))
    return publish(everything)


def test_announced_tables_have_lines_of_their_own(pairs):
    rows = accuracy(pairs)
    said = {row["about"] for row in rows if row["half_width"] is not None}
    assert said == {"1 of 4 attributes", "2 of 4 attributes", "all records"}
    assert [row["about"] for row in rows if row["half_width"] is None] == ["3 or more of 4 attributes"]
    cell = next(row for row in rows if row["about"] == "2 of 4 attributes")
    table = pairs.answer(dphist.Workload.marginals(DOMAIN, 2))
    halves = (table.high - table.low) / 2
    assert halves.min() <= cell["half_width"] <= halves.max()
    assert cell["cells"] == 1
    assert cell["part"] == pytest.approx(cell["half_width"] / np.median(table.value), rel=1.0)


def test_only_tables_that_were_measured_are_asked():
    rows = accuracy(publish(Marginals(tables=((0, 1), (2,)))))
    assert [row["about"] for row in rows if row["cells"] == 1] == [
        "1 of 4 attributes (3 tables of 4)",
        "2 of 4 attributes (1 table of 6)",
        "3 or more of 4 attributes",
        "all records",
    ]


def test_a_measured_cube_says_all_kinds():
    rows = accuracy(publish(Laplace()))
    assert list(dict.fromkeys(row["about"] for row in rows)) == [
        "1 of 4 attributes",
        "2 of 4 attributes",
        "all attributes",
    ]
    cells = [row["half_width"] for row in rows if row["cells"] == 1]
    # Sums of more noisy cells are further off.
    assert cells == sorted(cells, reverse=True)
    assert rows[-1]["cells"] == DOMAIN.size


def test_the_page_and_the_dossier_show_the_tables(pairs, tmp_path):
    page = report_page(pairs)
    table = page.split("How accurate answers are")[1].split("</table>")[0]
    assert table.count("not measured") == 1
    assert '<th scope="row">2 of 4 attributes</th>' in table
    assert '"sort": ["1 of 4 attributes", "2 of 4 attributes", "all records"]' in page
    pairs.save(tmp_path / "people.parquet")
    papers = filled("assessment.md", Known(pairs, tmp_path / "people.parquet"))
    assert "| 2 of 4 attributes | 1 | ±" in papers
    assert "| 3 or more of 4 attributes | – | not measured: bounds only | – |" in papers


def test_parts_of_the_answer_in_words():
    assert [relative(part) for part in (0.0034, 0.071, 0.5, 1.0, 2.0, None)] == [
        "0.34%",
        "7.1%",
        "50%",
        "100%",
        "over 100%",
        "–",
    ]
