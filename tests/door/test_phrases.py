"""One table is a table, in what releases say of themselves; and files that said otherwise still verify."""

from dataclasses import replace

import numpy as np
import pytest

import dphist
from dphist.errors import VerificationError
from dphist.model.phrases import mended

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(6)), dphist.Ordinal("y", range(5))])


def test_one_table_is_said_as_one_and_an_older_file_still_verifies() -> None:
    histogram = dphist.Histogram(DOMAIN, np.arange(30).reshape(6, 5))
    changed = 0
    for mechanism in ("marginals", "mixture", "residuals"):
        release = dphist.publish(
            histogram, epsilon=1, mechanism=mechanism, workload="marginals:x", unattended=True
        )
        assert "1 tables" not in release.note
        assert "1 attributes" not in release.note
        older = release.note.replace("1 table was", "1 tables were").replace("1 table ", "1 tables ")
        older = older.replace("1 attribute ", "1 attributes ")
        changed += older != release.note
        replace(release, note=older).verify()
        with pytest.raises(VerificationError, match="says of itself"):
            replace(release, note=release.note + " twice").verify()
    assert changed


def test_only_one_of_a_thing_is_mended() -> None:
    for said in ("21 tables were measured", "1,001 tables were", "0.1 parts", "1 totals"):
        assert mended(said) == said
