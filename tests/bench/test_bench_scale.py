"""Growth of cost: the fitted exponent, where a mechanism stops, what the table and the claim say."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.mechanisms import MECHANISMS
from dphist_bench import scale
from dphist_bench.cases import Case, Reading
from dphist_bench.results import Results, Row


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_is_the_slope_of_the_upper_half(power):
    sizes = [2**k for k in range(10, 20)]
    # Half a second of start-up hides the slope of the lower half, which is not fitted.
    costs = [0.5 if size < 2**15 else (size / 2**15) ** power for size in sizes]
    assert scale.exponent(sizes, costs) == pytest.approx(power)


def test_a_mechanism_is_measured_until_it_is_too_slow_or_far_enough():
    found = scale.measure("uniform", square=False, limit=1e9, last=1 << 12)
    assert [size for size, _, _ in found["readings"]] == [1024, 2048, 4096]
    assert "as far as we went" in found["stopped"]
    found = scale.measure("uniform", square=True, limit=0.0, last=1 << 12)
    assert [size for size, _, _ in found["readings"]] == [1024]
    assert "takes more than" in found["stopped"]
    found = scale.measure("spa", square=False, limit=1.0, last=1 << 12)
    assert found["stopped"] == "refused at 1,024 cells (NotPrivate)"


def test_counts_are_public_and_of_the_shape_asked_for():
    assert scale.counts(2048, square=True).shape == (64, 32)
    np.testing.assert_array_equal(scale.counts(1024, square=False), scale.counts(1024, square=False))
    assert 10 < scale.counts(4096, square=False).mean() < 30


def test_every_mechanism_has_a_case_and_every_family_names_mechanisms_that_exist():
    cases = scale.Growth().cases(scale.Setting())  # type: ignore[attr-defined]
    assert sorted(case.method for case in cases) == sorted(MECHANISMS)
    assert {name for names in scale._FAMILIES.values() for name in names} <= set(MECHANISMS)


def _results(slopes):
    rows = []
    for name, slope in slopes.items():
        case = Case("trees", name, "1")
        rows += [Row(case, 0, Reading("CPU s", 0.5, 4096.0)), Row(case, 0, Reading("MB", 90.0, 4096.0))]
        rows += [Row(case, 0, Reading("stops: enough", 4096.0)), Row(case, 0, Reading("exponent", slope))]
    return Results(rows, {})


def test_the_claim_names_what_grows_faster(tmp_path):
    (claim,) = scale.EXPERIMENTS[0].claims
    assert claim.check(_results({"h": 1.0, "s1": 2.0})).holds
    refuted = claim.check(_results({"h": 1.6, "s1": 2.0}))
    assert not refuted.holds
    assert "h 1.60" in refuted.figures
    table = scale.EXPERIMENTS[0].views[1].markdown(_results({"h": 1.0}), tmp_path, "t")
    assert "| `h` | 1.00 | 0.5 |  |  | 4,096 | 0.5 | 90 | enough |" in table
