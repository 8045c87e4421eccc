import numpy as np
import pytest

from dphist.audit import audit
from dphist.audit.evidence import Runs, lower_bound
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.audit.zoo import animals
from dphist.errors import InputError
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.testing.gates import as_histogram

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("mechanism", [Laplace(), Uniform()])
def test_sound_mechanisms_pass(mechanism):
    # A sound mechanism is refuted with probability at most 1e-6.
    report = audit(mechanism, epsilon=1, runs=6_000, confidence=1 - 1e-6)
    assert report.passed
    # The attack is not idle: it finds most of what there is to find.
    assert report.epsilon_lower > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(animals()))
def test_every_animal_of_the_zoo_is_rejected(name):
    animal = animals()[name]
    report = audit(
        animal.mechanism,
        epsilon=1,
        runs=animal.runs,
        pairs=animal.pairs,
        observe=animal.observe,
        confidence=0.999,
    )
    assert not report.passed, str(report)


def test_the_bound_stays_below_the_truth():
    rng = np.random.default_rng(5)
    shape = (("measure", (1,)),)

    def runs(p):
        return Runs([shape] * 30_000, list((rng.random((30_000, 1)) < p).astype(np.float64)))

    truth = np.log(0.6 / 0.3)
    bound = lower_bound(runs(0.6), runs(0.3), 1e-6)
    assert 0.8 * truth < bound < truth


def test_neighbours_must_be_one_record_apart():
    with pytest.raises(InputError, match="one record"):
        Pair("far", as_histogram([0, 0]), as_histogram([1, 1]))
    for shape in ((1,), (8,), (3, 4)):
        assert all(pair.one.domain.shape == shape for pair in worst_pairs(shape))
