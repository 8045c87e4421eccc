"""The matrix: a best candidate by few draws is a lucky one, and the census is read attribute by attribute."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dphist_bench.data.coverage import adult_cube
from dphist_bench.measurements.accuracy.matrix import _beside, _Run, populations

FACTS = (1, "groups", 1000, "1", True, "cells")


def test_a_lucky_candidate_is_found_out_by_other_draws() -> None:
    """Ten candidates of the same law as ours: hindsight beats us, the one that other draws chose does not."""
    draws = np.random.default_rng(3)
    lucky, apart = [], []
    for _ in range(200):
        runs = [_Run({"cells": draws.chisquare(2, 8)}, {"cells": 1.0}) for _ in range(11)]
        rivals = dict(zip(("laplace", *"bcdefghij"), runs[1:], strict=True))
        case = _beside(FACTS, rivals, runs[0], ("cells",))
        lucky.append(case.ratio)
        apart.append(case.apart)
    assert np.mean(np.log(lucky)) > 0.2
    assert abs(np.mean(np.log(apart))) < 0.05


def test_one_draw_chooses_nobody_for_another() -> None:
    """A second ratio needs a second draw."""
    one = _Run({"cells": np.ones(1)}, {"cells": 1.0})
    assert np.isnan(_beside(FACTS, {"laplace": one}, one, ("cells",)).apart)


def test_the_census_is_one_of_the_populations(tmp_path: Path) -> None:
    """Its first attributes are counted, with age in years as long as there are few of them."""
    names = "age,workclass,education,sex,salary,marital_status,race,relationship"
    rows = ["39,a,x,F,low,m,r,s", "39,b,x,M,low,m,r,s", "41,a,y,F,high,n,q,t"]
    (tmp_path / "adult-records.csv").write_text("\n".join([names, *rows]))
    three = adult_cube(tmp_path / "adult-records.csv", 3)
    assert three.domain.names == ("age", "workclass", "education")
    assert three.counts.shape == (100, 2, 2)
    assert three.counts[39, 0, 0] == 1
    assert three.counts.sum() == 3
    assert adult_cube(tmp_path / "adult-records.csv", 8).counts.shape[0] == 10
    domain, weights = populations(3, tmp_path)["Adult"]
    assert domain == three.domain
    assert weights.sum() == 3.0
    assert set(populations(10, tmp_path)) == {"groups", "smooth"}
