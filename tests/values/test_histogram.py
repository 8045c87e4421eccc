"""Histograms: exact integers, and nothing that leaks."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dphist.errors import InputError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit

DOMAIN = Domain([Ordinal("age", range(3)), Nominal("sex", ["F", "M"]), Ordinal("k", range(4))])


def test_projection_sums_and_reorders() -> None:
    counts = np.arange(24).reshape(3, 2, 4)
    histogram = Histogram(DOMAIN, counts)
    assert np.array_equal(histogram.project(["k", "age"]).counts, counts.sum(axis=1).T)
    assert np.array_equal(histogram.project(["k", "age", "sex"]).counts, counts.transpose(2, 0, 1))
    assert histogram.project(["k", "age", "sex"]).domain.names == ("k", "age", "sex")
    assert pickle.loads(pickle.dumps(histogram)) == histogram  # noqa: S301 -- our own bytes


@pytest.mark.parametrize(
    "counts",
    [
        np.zeros((3, 2, 4)),
        np.zeros((3, 2, 4), dtype=bool),
        np.full((3, 2, 4), "7"),
        np.full((3, 2, 4), -777),
        np.full((3, 2, 4), 2**63 + 777, dtype=np.uint64),
        np.full((3, 2, 5), 777),
        np.full(24, 777),
        [[777, 777], [777]],
    ],
)
def test_bad_counts_are_refused_without_being_shown(counts: object) -> None:
    with pytest.raises(InputError) as caught:
        Histogram(DOMAIN, counts)  # type: ignore[arg-type]
    assert "777" not in str(caught.value)


def test_repr_shows_no_count_and_nothing_changes() -> None:
    histogram = Histogram(DOMAIN, np.full((3, 2, 4), 777))
    assert "777" not in repr(histogram)
    with pytest.raises(ValueError, match="read-only"):
        histogram.counts[0, 0, 0] = 1
    with pytest.raises(AttributeError):
        histogram.counts = np.zeros(3)  # type: ignore[assignment]
    with pytest.raises(TypeError):
        hash(histogram)


def test_unit() -> None:
    assert Unit().steps == 1
    assert Unit(replace=True).steps == 2
    assert Unit(rows=5, id="user").steps == 5
    assert Unit(rows=5, replace=True).steps == 10
    for unit in (Unit(), Unit(rows=3, replace=True, id="who")):
        assert Unit.from_json(unit.to_json()) == unit
        assert "may be" in unit.describe()
    for bad in ({"rows": 0}, {"rows": True}, {"rows": 1.5}, {"replace": 1}, {"id": ""}, {"id": 3}):
        with pytest.raises(InputError):
            Unit(**bad)
    with pytest.raises(InputError):
        Unit.from_json({"row": 1})


def test_counts_with_labels_of_their_own_are_refused() -> None:
    sexes = Domain([Nominal("sex", ["female", "male"])])
    counts = pd.Series(["male"] * 577 + ["female"] * 314).value_counts()
    for labelled in (counts, counts.to_frame(), xr.DataArray([577, 314], coords={"sex": ["male", "female"]})):
        with pytest.raises(InputError, match="histogram: counts have labels of their own") as caught:
            Histogram(sexes, labelled)
        assert "577" not in str(caught.value)
    assert Histogram(sexes, counts.reindex(["female", "male"]).to_numpy()).counts.tolist() == [314, 577]
    assert Histogram(sexes, counts.array).counts.tolist() == [577, 314]
