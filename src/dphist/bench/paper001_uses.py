"""Figures 17 and 18 of the DPCube paper: classification accuracy and the reduction ratio of blocking."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dphist.bench import people
from dphist.door import _release
from dphist.histogram import Histogram
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.dpcube import DPCube
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spatialtrees import HierarchicalKD
from dphist.private.noise import Keystream, Noise
from dphist.release import Release
from dphist.unit import Unit
from dphist.uses.classify import ReleaseID3, private_id3
from dphist.uses.linkage import Blocking

Row = dict[str, Any]

FEATURES = ("workclass", "marital_status", "race", "sex")
LINKED = ("age", "education_num", "marital_status", "race", "sex")


def figure_17(records: people.Records, runs: int) -> list[Row]:
    """Accuracy on held-out records against α: ID3 on the records, on DPCube's release, and the interactive one.

    Two thirds train and a third tests, since only the file's training part is at hand.
    """
    draw = np.random.default_rng(11)  # noqa: TID251 -- which records are held out
    order = draw.permutation(len(records["salary"]))
    cut = 2 * order.size // 3
    train, test = people.some(records, order[:cut]), people.some(records, order[cut:])
    histogram = people.count(train, *FEATURES, "salary")
    truth = test["salary"]
    figure = "Fig. 17: share of records classified right"
    plain = ReleaseID3("salary").fit(histogram).score(test, truth)
    commonest = float(np.mean(truth == "<=50K"))
    rows: list[Row] = []
    for epsilon in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        found: dict[str, list[float]] = {"DPCube ID3": [], "noisy cells ID3": [], "interactive ID3": []}
        for seed in range(runs):
            made = seeded(histogram, DPCube(estimator="nonnegative"), epsilon, seed)
            found["DPCube ID3"].append(ReleaseID3("salary").fit(made).score(test, truth))
            made = seeded(histogram, Laplace(), epsilon, seed)
            found["noisy cells ID3"].append(ReleaseID3("salary").fit(made).score(test, truth))
            noise = Noise(Keystream.for_tests(seed))
            model = private_id3(histogram, "salary", epsilon, depth=len(FEATURES), noise=noise)
            found["interactive ID3"].append(model.score(test, truth))
        means = {name: float(np.mean(scores)) for name, scores in found.items()}
        for name, value in ({"original ID3": plain, "always the commonest": commonest} | means).items():
            rows.append({"figure": figure, "axis": "α", "x": epsilon, "method": name, "value": value})
    return rows


def figure_18(records: people.Records, runs: int, quick: bool) -> list[Row]:
    """Reduction ratio (Equation 10) against α with two attributes, and against their number at α = 0.1.

    Each party holds a random half of the records. Blocks are the leaves of both releases, and all are compared, so
    that records which agree always meet (dropping blocks that look empty spares more pairs and loses matches).
    """
    draw = np.random.default_rng(12)  # noqa: TID251 -- who holds which records
    order = draw.permutation(len(records["age"]))
    sides = people.some(records, order[::2]), people.some(records, order[1::2])
    methods: dict[str, Mechanism] = {
        "DPCube": DPCube(estimator="uniform"),
        "hierarchical kd": HierarchicalKD(),
    }
    rows: list[Row] = []
    for epsilon in (0.05, 0.1, 0.2, 0.5, 1.0):
        for name, mechanism in methods.items():
            value = _ratio(sides, LINKED[:2], mechanism, epsilon, runs)
            rows.append(_row("Fig. 18(a): reduction ratio, two attributes", "α", epsilon, name, value))
    for attributes in range(2, 4 if quick else len(LINKED) + 1):
        for name, mechanism in methods.items():
            value = _ratio(sides, LINKED[:attributes], mechanism, 0.1, runs)
            rows.append(_row("Fig. 18(b): reduction ratio, α = 0.1", "attributes", attributes, name, value))
    return rows


def _row(figure: str, axis: str, x: float, method: str, value: float) -> Row:
    return {"figure": figure, "axis": axis, "x": x, "method": method, "value": value}


def _ratio(
    sides: tuple[people.Records, people.Records],
    names: tuple[str, ...],
    mechanism: Mechanism,
    epsilon: float,
    runs: int,
) -> float:
    histograms = [people.count(side, *names) for side in sides]
    ratios = []
    for seed in range(runs):
        one, other = (seeded(h, mechanism, epsilon, 2 * seed + i) for i, h in enumerate(histograms))
        ratios.append(Blocking.from_releases(one, other, least=float("-inf")).reduction_ratio(*sides))
    return float(np.mean(ratios))


def seeded(histogram: Histogram, mechanism: Mechanism, epsilon: float, seed: int) -> Release:
    """A release with repeatable noise, for measuring only: it refuses to be saved."""
    noise = Noise(Keystream.for_tests(seed))
    return _release(histogram, Fraction(str(epsilon)), mechanism, Unit(), None, noise)
