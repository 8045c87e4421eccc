from fractions import Fraction

import numpy as np
import pytest

from dphist.audit.neighbours import Pair, pair, worst_pairs
from dphist.errors import InputError, RightUsed
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.mechanisms.fourier import EFPA, FPA
from dphist.mechanisms.structurefirst import StructureFirst
from dphist.private.queries import Identity, Totals
from dphist.testing.gates import as_histogram
from dphist_bench.attacks.attack import audit, collect
from dphist_bench.attacks.claim import audit_claim
from dphist_bench.attacks.evidence import Run, weigh
from dphist_bench.attacks.twin import Stage, Tally
from dphist_bench.zoo import leaky_mechanisms, runs_needed
from dphist_bench.zoo.lossy import same_imaginary_part, same_phase, turning_pair

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("mechanism", [Laplace(), Uniform()])
def test_sound_mechanisms_pass(mechanism):
    # A sound mechanism is refuted with probability at most 1e-6.
    report = audit(mechanism, epsilon=1, runs=1_500, confidence=1 - 1e-6)
    assert report.passed
    # The attack is not idle: it finds most of what there is to find.
    assert report.epsilon_lower > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(leaky_mechanisms()))
def test_every_animal_of_the_zoo_is_rejected(name):
    assert runs_needed(leaky_mechanisms()[name]) is not None


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [FPA(), EFPA(), EFPA(basis="cosine")])
def test_our_frequencies_pass_where_the_printed_ones_fail(mechanism):
    # A sound mechanism is refuted with probability at most 1e-6, whichever of both is looked at.
    def both(estimate):
        return np.append(same_phase(estimate), same_imaginary_part(estimate))

    pairs = [turning_pair()]
    assert audit(mechanism, epsilon=1, runs=900, pairs=pairs, observe=both, confidence=1 - 1e-6).passed


def test_the_bound_stays_below_the_truth():
    rng = np.random.default_rng(5)
    shape = (("measure", (1,)),)

    def runs(p):
        numbers = list((rng.random((10_000, 1)) < p).astype(np.float64))
        return [Run(shape, each) for each in numbers]

    truth = np.log(0.6 / 0.3)
    bound = weigh(runs(0.6), runs(0.3), 1.0).bound(1e-6)
    assert 0.75 * truth < bound < truth


def test_losses_are_the_log_ratios_of_the_claimed_laws():
    few = pair("few", [3, 1, 4], 1)
    tally = Tally()
    right = Stage(few.one, few.other, 1).open(tally)
    half, rest = right.split("1/4", "3/4")
    total = half.measure(Totals()).values[0]
    cells = rest.arrange([1, 2]).measure(Identity()).values
    expected = (abs(total - 9) - abs(total - 8)) / 4 + (abs(cells[0] - 2) - abs(cells[0] - 1)) * 3 / 4
    assert tally.loss == pytest.approx(expected)
    assert abs(tally.loss) <= 1
    with pytest.raises(RightUsed):
        half.measure(Totals())


def test_choices_lose_what_their_weights_say():
    # Probabilities add up to one on both sides, so e^−loss averages to one.
    few = pair("few", [0, 9, 1, 2, 7], 2)
    mechanism = StructureFirst(bins=2, split=Fraction(1, 2))
    runs = collect(mechanism, few, 1, 1_500, 0, stop_early=True)
    assert all("choose" in dict(run.shape) for run in runs)
    weights = np.exp([-run.loss for run in runs])
    # Six standard errors; the weights lie between 1/e and e.
    assert abs(weights.mean() - 1) < 6 * weights.std() / np.sqrt(weights.size)
    assert weights.std() > 0.01


def test_neighbours_must_be_one_record_apart():
    with pytest.raises(InputError, match="one record"):
        Pair("far", as_histogram([0, 0]), as_histogram([1, 1]))
    for shape in ((1,), (8,), (3, 4)):
        assert all(pair.one.domain.shape == shape for pair in worst_pairs(shape))


CLAIMS = [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1/20"}]


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("confidence", [1, 99.9, 0, -1, float("nan")])
def test_an_audit_that_could_never_refute_is_none(claim, confidence):
    """At a confidence of 1, or of 99.9, no capital was enough: everything passed."""
    with pytest.raises(InputError, match="confidence"):
        audit_claim(Laplace(), **claim, runs=300, confidence=confidence)


@pytest.mark.parametrize("claim", CLAIMS)
def test_an_audit_of_nothing_says_so(claim):
    with pytest.raises(InputError, match="pairs"):
        audit(Laplace(), pairs=[])
    for runs in (0, 60):
        assert "NOT ATTACKED" in str(
            audit_claim("gaussian" if "rho" in claim else "laplace", **claim, runs=runs)
        )
    assert "claim stands" in str(audit(Laplace(), runs=300))
