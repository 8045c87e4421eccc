"""Checks on readings that say where a line peaks and how fast it grows can hold and can fail."""

import pytest

from dphist_bench.cases import Case, Reading
from dphist_bench.claims import exponents, peaks, power
from dphist_bench.experiment import Finding
from dphist_bench.results import Results, Row


def _line(*values):
    rows = [Row(Case("d", "m"), 0, Reading("error", y, x)) for x, y in values]
    return Results(rows, {})


HILL = _line((1, 2.0), (2, 9.0), (3, 4.0))


@pytest.mark.parametrize(
    ("between", "least", "holds"),
    [((2, 3), False, True), ((2.5, 3), False, False), ((0, 1), True, True), ((2, 3), True, False)],
)
def test_where_a_line_peaks(between, least, holds):
    assert peaks("error", "m", between, least=least)(HILL).holds is holds


def test_what_was_not_measured_has_no_peak_and_no_power():
    assert peaks("error", "nobody", (0, 9))(HILL) == Finding(False, "nobody was not measured")
    assert not power("error", "nobody", (0, 9))(HILL).holds
    assert exponents(_line((1, 2.0)), "error", "m") == []


def test_powers_are_fitted_to_each_line():
    squares = _line(*((x, 3.0 * x**2) for x in (1.0, 2.0, 8.0)))
    assert exponents(squares, "error", "m") == pytest.approx([2.0])
    assert power("error", "m", (1.9, 2.1))(squares).holds
    assert not power("error", "m", (0.8, 1.2))(squares).holds
