"""The conformance suite holds mechanisms of others to what their intervals say."""

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphist
from dphist.errors import QueryError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.selected import SelectedNoise
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.private.queries import Identity, Totals
from dphist.testing import check_mechanism, run

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "add-a-mechanism.md"


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """Cells are moved to a noisier total, and their own noise is said to be all of the error, or not to be."""

    claim: bool = True

    def estimate(self, data):
        cells, total = data.split(Fraction(9, 10), Fraction(1, 10))
        noisy, sum_ = cells.measure(Identity()), total.measure(Totals())
        shift = (sum_.values[0] - noisy.values.sum()) / data.size
        return Estimate(noisy.values + shift, IndependentNoise(noisy.law, exact=self.claim))


def test_intervals_that_are_called_exact_and_do_not_hold_are_found():
    with pytest.raises(AssertionError, match="said to be exact at 95 %, and one missed in"):
        check_mechanism(Shifted())
    check_mechanism(Shifted(claim=False))


def test_noise_is_all_of_the_error_only_where_its_author_says_so():
    domain = dphist.Domain([dphist.Ordinal("x", range(4))])
    histogram = dphist.Histogram(domain, np.array([5, 0, 9, 3]))
    release = dphist.publish(histogram, epsilon=1, mechanism=Shifted(claim=False))
    assert release.answer().method.startswith("noise only")
    with pytest.raises(QueryError, match="no theorem"):
        release.answer(interval="guaranteed")
    law = NoiseLaw("laplace", 1)
    assert not IndependentNoise(law).theorem
    assert IndependentNoise(law).words.short.startswith("noise only")
    assert IndependentNoise(law, exact=True).words.short.startswith("exact: ")
    selected = SelectedNoise(law, threshold=3, counts=np.array([5.0, 0.0, 9.0, 3.0]))
    with pytest.raises(QueryError, match="no theorem"):
        selected.interval(Workload(domain, [[0]], [[1]]), np.array([5.0]), 0.95, guaranteed=True)


def test_the_intervals_of_the_how_to_hold():
    code = re.search(r"```python\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    made: dict[str, Any] = {"__name__": "howto"}
    exec(compile(code[1].replace("check_mechanism(Anchored())", ""), str(HOWTO), "exec"), made)  # noqa: S102
    domain = dphist.Domain([dphist.Ordinal("x", range(5))])
    truth = np.array([50, 60, 70, 80, 90])
    asked = Workload(domain, [[0], [0], [1], [2]], [[5], [1], [3], [5]])
    held, proven = np.zeros(4), np.zeros(4)
    for seed in range(200):
        estimate = run(made["Anchored"](), truth, epsilon=1, seed=seed)
        answers = np.asarray(asked.answer(estimate.counts))
        for count, guaranteed in ((held, False), (proven, True)):
            found = estimate.errors.interval(asked, answers, 0.95, guaranteed=guaranteed)
            count += (found.low <= asked.answer(truth)) & (asked.answer(truth) <= found.high)
    # Fewer than 176 of 200 would hold by chance in one of 10,000 counts.
    assert held.min() >= 176
    assert proven.min() >= 190
