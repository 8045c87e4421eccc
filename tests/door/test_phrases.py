"""One table is a table, in what releases say of themselves."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.errors import VerificationError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.model.phrases import mended
from dphist.release.answers import Answer

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(6)), dphist.Ordinal("y", range(5))])


def test_one_table_is_said_as_one_and_nothing_else_verifies() -> None:
    histogram = dphist.Histogram(DOMAIN, np.arange(30).reshape(6, 5))
    for mechanism in ("marginals", "mixture", "residuals"):
        release = dphist.publish(
            histogram, epsilon=1, mechanism=mechanism, workload="marginals:x", unattended=True
        )
        assert "1 tables" not in release.note
        assert "1 attributes" not in release.note
        release.verify()
        with pytest.raises(VerificationError, match="says of itself"):
            replace(release, note=release.note + " twice").verify()


def test_only_one_of_a_thing_is_mended() -> None:
    for said in ("21 tables were measured", "1,001 tables were", "0.1 parts", "1 tablets"):
        assert mended(said) == said


def test_whoever_writes_a_note_one_of_a_thing_is_said_as_one() -> None:
    note = "1 totals for 11 cells; 1 groups were merged, 1 cells are left, 1,001 bins"
    said = Estimate(np.zeros(1), IndependentNoise(Fraction(1)), note).note
    assert said == "1 total for 11 cells; 1 group was merged, 1 cell is left, 1,001 bins"
    domain = dphist.Domain([dphist.Ordinal("x", range(1))])
    for mechanism in ("structurefirst", "noisefirst", "adaptivetree"):
        release = dphist.publish(dphist.Histogram(domain, np.ones(1, int)), epsilon=1, mechanism=mechanism)
        assert mended(release.note) == release.note
        release.verify()


def test_an_interval_is_written_so_that_its_ends_can_be_told_apart() -> None:
    """A share of 0.374 was “0.4 (0.4 to 0.4)”, an interval that does not hold it."""

    def said(value: float, low: float, high: float) -> str:
        return str(Answer(value, low, high, 0.95, "exact"))

    assert said(0.3737, 0.3717, 0.3757) == "0.3737  (95% interval 0.3717 to 0.3757)"
    assert said(41.23, 41.0, 41.5) == "41.23  (95% interval 41.00 to 41.50)"
    assert said(12.0, 9.0, 15.0) == "12.0  (95% interval 9 to 15)"
    assert said(5.0, 5.0, 5.0) == "5.0  (95% interval 5 to 5)"
    assert said(2.0, float("-inf"), float("inf")) == "2.0  (95% interval not known)"
