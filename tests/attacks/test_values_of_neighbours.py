"""No value that one neighbour can produce and the other cannot, in any mechanism; and a search that finds such values.

The long form, 10⁶ numbers a mechanism, is ``dphist bench run precision``.
"""

import numpy as np
import pytest

from dphist.audit.neighbours import worst_pairs
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.mechanisms.options import parse
from dphist.private.queries import Identity
from dphist_bench.audit.campaign import claims
from dphist_bench.measurements.trust.precision import look

# Seeds are fixed, so nothing here can flicker; with fresh ones a false alarm had a probability below 10⁻⁶ an event.
FREQUENT = 40


@pytest.mark.slow
@pytest.mark.parametrize("text", claims())
def test_what_one_neighbour_shows_often_the_other_shows_too(text):
    # What is measured is the same however long the model is fitted.
    quick = {"mixture": "mixture(classes=4, steps=10)"}.get(text, text)
    found = look(parse(quick), worst_pairs()[1], 250, frequent=FREQUENT, seed=8)
    assert found.telling == []
    # It did look at something: numbers and their remainders, in every question.
    assert found.compared > 30


class _Leaky:
    """A mechanism that reads what no mechanism can, and forgets to round it away."""

    def __init__(self, spoil):
        self.spoil = spoil

    def estimate(self, data):
        secret = data._right[0]
        noisy = data.measure(Identity())
        noise = noisy.values - secret
        return Estimate(self.spoil(secret, noise), IndependentNoise(noisy.scale))


LEAKS = {
    "noise that is always even": lambda x, noise: (x + 2 * noise).astype(float),
    "a grid that hangs on the count": lambda x, noise: noise / 3 + x * 0.1,
    "never the truth": lambda x, noise: (x + noise + (noise >= 0)).astype(float),
    "a tail that ends": lambda x, noise: (x + np.clip(noise, -1, 1)).astype(float),
    "a product instead of a sum": lambda x, noise: (x * (noise + 7)).astype(float),
    "lowest bits left in": lambda x, noise: noise + x * 2.0**-40,
}


@pytest.mark.parametrize("name", LEAKS)
def test_the_search_finds_values_that_tell(name):
    found = look(_Leaky(LEAKS[name]), worst_pairs()[1], 250, frequent=FREQUENT, seed=8)
    assert found.telling
