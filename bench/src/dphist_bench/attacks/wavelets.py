"""What cells that were rebuilt from noisy wavelet coefficients tell: what the coefficients do, which can be had.

`WaveletCells` never holds the data's coefficients, so its answer has no noise of its own that could be held against a
law. But it is a function of noisy coefficients (`dphist.private.queries.wavelet` has the proof), which are known to
whoever wrote down the draws: what the coefficients tell of a neighbour, the cells cannot exceed, and draws that are
smaller than the coefficients' law has it are smaller in the cells.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dphist.kernels.wavelets import standard
from dphist.private.facts import Noisy
from dphist.private.pricing import UnitBudget
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import IntArray, Layout


class Recording:
    """Stands before a source of noise and writes down what it adds; whatever else is wanted, the source gives."""

    def __init__(self, source: Any, draws: list[IntArray]) -> None:
        self._source, self._draws = source, draws

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        """Let the source add its noise, and keep that."""
        before = values.copy()
        return self._kept(before, self._source.add_laplace(values, scale, out))

    def add_gaussian(self, values: IntArray, variance: Fraction, out: IntArray | None = None) -> IntArray:
        """The same for Gaussian noise."""
        before = values.copy()
        return self._kept(before, self._source.add_gaussian(values, variance, out))

    def _kept(self, before: IntArray, noisy: IntArray) -> IntArray:
        self._draws.append((noisy - before).reshape(-1))
        return noisy


class _Drawn:
    """The draws that were written down, handed out once more in their order."""

    def __init__(self, draws: list[IntArray]) -> None:
        self._left = np.concatenate([*draws, np.empty(0, dtype=np.int64)])

    def add(
        self, values: IntArray, scale: Fraction, variance: Fraction, out: IntArray | None = None
    ) -> IntArray:
        """Add the next draws, whatever size is asked for: which that should be is for the law to say."""
        drawn, self._left = self._left[: values.size], self._left[values.size :]
        noisy: IntArray = np.add(values, drawn.reshape(values.shape), out=out)
        return noisy

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> IntArray:
        """Hand out the next draws."""
        return self.add(np.zeros(shape, dtype=np.int64), scale, scale)

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        """Add the next draws."""
        return self.add(values, scale, scale, out)


def coefficients(
    query: WaveletCells,
    cells: Noisy,
    draws: list[IntArray],
    counts: IntArray,
    layout: Layout,
    unit_budget: UnitBudget,
) -> tuple[Wavelet, Noisy] | None:
    """The noisy coefficients that cells were rebuilt from; None if these draws do not make these cells."""
    whole = Wavelet(query.plain, query.calibration)
    axes = whole.axes(layout)
    if sum(each.size for each in draws) != np.prod(standard.slots(axes), dtype=np.int64):
        return None
    noisy = whole.perturb(counts, layout, _Drawn(draws))
    rebuilt = standard.inverse(noisy.astype(np.float64), axes) / float(standard.denominator(axes))
    if not np.allclose(rebuilt, cells.values, rtol=1e-9, atol=1e-6):
        return None
    return whole, Noisy(noisy, unit_budget.price(whole, layout, cells.law.kind).law)
