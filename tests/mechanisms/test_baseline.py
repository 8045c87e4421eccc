import numpy as np
import pytest

from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.testing import check_mechanism, run


@pytest.mark.parametrize(("mechanism", "bias"), [(Laplace(), ""), (Uniform(), "one number for all cells")])
def test_conformance(mechanism, bias):
    check_mechanism(mechanism, bias=bias)


def test_uniform_spreads_the_total_evenly_and_is_never_negative():
    estimate = run(Uniform(), [[10, 0], [0, 30]], 10**6, seed=1)
    assert estimate.counts.tolist() == [[10.0, 10.0], [10.0, 10.0]]
    assert (run(Uniform(), np.zeros(9, dtype=np.int64), "1/1000", seed=2).counts >= 0).all()
