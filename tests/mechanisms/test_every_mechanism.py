"""What holds for every name that ``--mechanism`` accepts."""

import numpy as np
import pytest

from dphist.errors import NotPrivate
from dphist.mechanisms import INGREDIENTS, list_mechanisms
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import from_json, parse, show, to_json
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import open_gate, open_replay
from dphist.testing.conformance import check_value

PROMISED = {
    "laplace", "uniform", "sparselaplace", "noisefirst", "structurefirst", "dpcube", "kdhybrid",
    "hierarchicalkd", "quadtree", "uniformgrid", "adaptivegrid", "s1", "s-approx", "s2", "o+s1",
    "o+s-approx", "o+s2", "s1+mm", "s-approx+mm", "s2+mm", "s1+pmm", "s-approx+pmm", "s2+pmm", "h",
    "s1+h", "s2+h", "tree", "boost", "hb", "greedyh", "dawa", "ahp", "fpa", "spa", "efpa", "phpartition",
    "isotonic", "mwem", "privelet", "posterior", "adaptivetree", "auto",
}  # fmt: skip
REFUSED = {"spa"}
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
def test_it_spends_exactly_epsilon_for_the_unit_and_replays_without_data(name, unit):
    mechanism = parse(name)
    right, transcript = open_gate(HISTOGRAM, "3/7", unit)
    estimate = mechanism.estimate(right)
    assert str(transcript.spent()) == "3/7"
    again, replay = open_replay(DOMAIN, "3/7", unit, transcript)
    assert np.array_equal(mechanism.estimate(again).counts, estimate.counts)
    replay.finish()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_exact_sampler_is_refused(name):
    right, transcript = open_gate(HISTOGRAM, 1, Unit())
    with pytest.raises(NotPrivate):
        parse(name).estimate(right)
    assert len(transcript) == 0
