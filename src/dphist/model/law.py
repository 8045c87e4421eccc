"""The law of a noise: all that a mechanism may know of what its budget buys. It decides accuracy, never privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

Kind = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class NoiseLaw:
    """Discrete Laplace or discrete Gaussian noise of a known size.

    Args:
        kind: ``"laplace"`` or ``"gaussian"``.
        size: The scale b of Laplace noise, Pr[k] ∝ exp(−|k|/b), or the parameter σ² of Gaussian noise,
            Pr[k] ∝ exp(−k²/2σ²): an exact `Fraction`, or an array of floats where answers have different ones.
    """

    kind: Kind
    size: Any

    @property
    def variance(self) -> Any:
        """The variance of the noise, at most: a float, or one for each answer.

        The discrete Laplace law is the continuous one less an independent fraction, so 2b² bounds it (by less than 1/6
        of a lattice step squared). The discrete Gaussian's variance is at most σ² (Canonne, Kamath, Steinke, 2020).
        """
        size = float(self.size) if isinstance(self.size, Fraction) else self.size
        return size if self.gaussian else 2.0 * size * size

    @property
    def drawn_variance(self) -> float:
        """The variance of the whole numbers that are drawn, of one law: `variance` is the continuous one's.

        Laplace: 2p/(1 − p)² with p = exp(−1/b), which is 1/(2·sinh²(1/2b)): at b = 1 it is 1.84 and not 2.
        """
        size = float(self.size)
        if not self.gaussian:
            half = 0.5 / size
            # Beyond this the noise is 0 but for chances that no float tells from none.
            return 0.0 if half > 350.0 else 0.5 / math.sinh(half) ** 2
        if size > 4.0:
            return size
        weights = [math.exp(-k * k / (2.0 * size)) for k in range(1, 40)]
        whole = 1.0 + 2.0 * sum(weights)
        return 2.0 * sum((k + 1) ** 2 * weight for k, weight in enumerate(weights)) / whole

    @property
    def deviation(self) -> Any:
        """The standard deviation, at most."""
        return np.sqrt(self.variance) if isinstance(self.size, np.ndarray) else math.sqrt(self.variance)

    @property
    def scale(self) -> Any:
        """The scale of Laplace noise with this variance: the exact one where it is Laplace noise."""
        return self.deviation / math.sqrt(2.0) if self.gaussian else self.size

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.kind == "gaussian"

    @property
    def kurtosis(self) -> float:
        """The excess kurtosis: 3 for Laplace noise, 0 for Gaussian."""
        return 0.0 if self.gaussian else 3.0

    @property
    def exponent(self) -> int:
        """How precision (one over the variance) grows with the share of the budget: its square, or the share itself."""
        return 1 if self.gaussian else 2

    def of_share(self, share: Fraction | float) -> NoiseLaw:
        """The law that a share of the budget would buy."""
        return NoiseLaw(self.kind, self.size / share)

    def deviation_of(self, share: float) -> float:
        """The standard deviation of what a share of the budget would buy, at most; quicker than the law itself."""
        return float(float(self.deviation) * share ** (-0.5 * self.exponent))

    def quantile(self, confidence: float) -> float:
        """How far one draw reaches to either side with this confidence, in the continuum."""
        beta = 1.0 - float(confidence)
        if self.gaussian:
            return _normal(beta) * float(self.deviation)
        return -math.log(beta) * float(self.size)


@lru_cache(maxsize=64)
def _normal(beta: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(1.0 - beta / 2.0)
