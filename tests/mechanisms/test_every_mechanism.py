"""What holds for every name that ``--mechanism`` accepts."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import NotPrivate
from dphist.mechanisms import INGREDIENTS, list_mechanisms
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import from_json, parse, show, to_json
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import open_gate, open_replay
from dphist.testing.conformance import cases, check_run, check_value

PROMISED = {
    "laplace", "uniform", "sparselaplace", "noisefirst", "structurefirst", "dpcube", "kdhybrid",
    "hierarchicalkd", "quadtree", "uniformgrid", "adaptivegrid", "s1", "s-approx", "s2", "o+s1",
    "o+s-approx", "o+s2", "s1+mm", "s-approx+mm", "s2+mm", "s1+pmm", "s-approx+pmm", "s2+pmm", "h",
    "s1+h", "s2+h", "tree", "boost", "hb", "greedyh", "dawa", "ahp", "fpa", "spa", "efpa", "phpartition",
    "isotonic", "mwem", "privelet", "posterior", "adaptivetree", "auto", "gaussian",
}  # fmt: skip
REFUSED = {"spa"}
# What Gaussian noise cannot be bought with.
NOT_PURE = {"gaussian"}
DOMAIN = Domain([Ordinal("age", range(7)), Nominal("sex", ["F", "M"], other=True)])
HISTOGRAM = Histogram(DOMAIN, (np.arange(21) * 13 % 17).reshape(7, 3))


def test_every_promised_name_is_there():
    assert set(list_mechanisms()) >= PROMISED


@pytest.mark.parametrize("name", sorted(list_mechanisms()))
def test_a_name_gives_a_frozen_value_that_reads_back(name):
    mechanism = parse(name)
    assert isinstance(mechanism, Mechanism)
    check_value(mechanism)
    assert from_json(to_json(mechanism)) == parse(show(mechanism)) == mechanism
    assert (list_mechanisms()[name].build.__doc__ or "").strip()
    assert name not in INGREDIENTS


@pytest.mark.parametrize("name", sorted(set(list_mechanisms()) - REFUSED))
@pytest.mark.parametrize(
    "unit", [Unit(), Unit(rows=3, replace=True)], ids=["one row", "three rows, replaced"]
)
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_it_spends_exactly_its_budget_for_the_unit_and_replays_without_data(name, unit, currency):
    if currency == "epsilon" and name in NOT_PURE:
        return
    mechanism, budget = parse(name), Budget(Fraction(3, 7), currency)
    right, transcript = open_gate(HISTOGRAM, budget, unit)
    estimate = mechanism.estimate(right)
    assert transcript.spent() == budget.amount
    again, replay = open_replay(DOMAIN, budget, unit, transcript)
    assert np.array_equal(mechanism.estimate(again).counts, estimate.counts)
    replay.finish()


@pytest.mark.parametrize("name", sorted(REFUSED | NOT_PURE))
def test_what_has_no_exact_sampler_or_is_not_pure_is_refused(name):
    right, transcript = open_gate(HISTOGRAM, 1, Unit())
    with pytest.raises(NotPrivate):
        parse(name).estimate(right)
    assert len(transcript) == 0


@pytest.mark.parametrize("name", sorted(set(list_mechanisms()) - REFUSED))
def test_it_conforms_under_rho(name):
    wanted = {"line of 37, not a power of two", "plane 8 × 8", "one cell"}
    for case in cases():
        if case.name in wanted:
            check_run(parse(name), case, Budget.of(rho="1/2"))
