"""A noise source that writes down what is asked of it: the exact scale, rate and size of every draw.

The gate computes a scale from a budget, a share, a unit and a query; what matters is the one that reaches the
sampler. Behind a gate, a `RecordingNoise` shows it, as exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from dphist.private.noise import Keystream, Noise

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """One call of a sampler.

    ``amounts`` is the scale of Laplace noise and of the coins of a sparse release, both scales of noise that is made
    coarser, the variance of Gaussian noise, or the rate of every part's choice (one number if all have the same);
    ``size`` how many numbers were drawn, coins tossed or parts chosen from.

    Args:
        sampler: Which sampler was asked.
        amounts: Its scales, thresholds or rates.
        size: How many numbers.

    Example:
        >>> Draw("laplace", (Fraction(8),), 2).size
        2
    """

    sampler: str
    amounts: tuple[Fraction, ...]
    size: int


class RecordingNoise(Noise):
    """Draws as `Noise` does, and keeps every `Draw`, with what it gave, in ``drawn`` and ``given``.

    Args:
        seed: Makes the noise the same again; without one it is as good as any.

    Example:
        >>> from dphist.private.queries import Identity
        >>> from dphist.testing import RecordingNoise, open_counts
        >>> noise = RecordingNoise(seed=1)
        >>> first, rest = open_counts([3, 4], "1/2", noise=noise).split("1/4", "3/4")
        >>> values = first.measure(Identity()).values
        >>> noise.drawn
        [Draw(sampler='laplace', amounts=(Fraction(8, 1),), size=2)]
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(Keystream() if seed is None else Keystream.for_tests(seed))
        self.drawn: list[Draw] = []
        self.given: list[IntArray] = []

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        """Note the scale, then add noise of it."""
        before = np.array(values)
        noisy = super().add_laplace(values, scale, out)
        self._keep(Draw("laplace", (scale,), prod(before.shape)), (noisy - before).reshape(-1), before)
        return noisy

    def blur(self, values: IntArray, fine: Fraction, coarse: Fraction) -> IntArray:
        """Note both scales, then make noise of the one noise of the other."""
        blurred = Noise(self.keystream).blur(values, fine, coarse)
        self._keep(Draw("blur", (fine, coarse), values.size), (blurred - values).reshape(-1))
        return blurred

    def add_gaussian(self, values: IntArray, variance: Fraction, out: IntArray | None = None) -> IntArray:
        """Note the variance, then add noise of it."""
        before = np.array(values)
        noisy = super().add_gaussian(values, variance, out)
        self._keep(Draw("gaussian", (variance,), prod(before.shape)), (noisy - before).reshape(-1), before)
        return noisy

    def hits(self, cells: int, scale: Fraction, threshold: int) -> IntArray:
        """Note the scale and the number of cells, then toss their coins."""
        found = super().hits(cells, scale, threshold)
        self._keep(Draw("hits", (scale, Fraction(threshold)), cells), found)
        return found

    def select(
        self,
        scores: IntArray,
        starts: IntArray,
        rate: Fraction,
        divisors: IntArray | None = None,
    ) -> IntArray:
        """Note the rate of every part, then choose."""
        chosen = super().select(scores, starts, rate, divisors)
        each = [rate] if divisors is None else [rate / int(by) for by in divisors]
        self._keep(Draw("select", tuple(each), len(starts) - 1), chosen)
        return chosen

    def _keep(self, draw: Draw, given: IntArray, added_to: IntArray | None = None) -> None:
        self.drawn.append(draw)
        self.given.append(given.copy())
