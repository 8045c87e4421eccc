"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, nonnegative
from dphist.inference.guaranteed import NoisySums
from dphist.inference.neighbours.reading import NEXT_TO_EXACT, in_words
from dphist.inference.predictive import Engine, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.mechanisms.order import ordered_line
from dphist.private.gate import Noisy, PrivateCounts
from dphist.private.queries import Identity, Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dphist.kernels.levels.fit import Denoised

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]
    Reading = tuple[FloatArray, Denoised | None]

# Below 6√n noise scales of records cells hardly tell their own total. A first look for 1/(3√n) tells that from several
# times as many, where it costs next to nothing: a half percent of 4,096 cells.
_FEW, _LOOK = 6.0, 3
# What a second total costs, where there are few; below so many noise scales a lone peak would hardly be believed; and
# so far below it, in its own noise scales, cells' sum may stay.
_TOTAL, _NEXT_TO_NOTHING, _NEAR = Fraction(1, 16), 16.0, 2.0
# A cell that is published with so many noise scales was seen by itself, and knows its own count better than a total.
_SEEN = 3.0
# On fewer cells the first look costs more, and there is less to gain.
_FEWEST = 1024


@checked
@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Noise every cell, then publish each count's posterior mean.

    The noisy counts are read as a sequence of hidden levels that hold on, drift or jump; counts scatter about their
    level, and Laplace noise lies on top. The model is fitted to the noisy counts themselves (empirical
    Bayes, by expectation–maximisation) and each count is replaced by what the model expects of it given all of
    them. Runs of near-equal counts are averaged, empty stretches go to zero, and lone peaks stay if they stand far
    out of the noise. An ordered line is read a second time, as a trend with a profile that repeats
    (`dphist.inference.neighbours.structural`), and both readings weigh as their errors look. In several dimensions the
    cells are read along a Hilbert curve, and the result is averaged with a dyadic classification tree of the same noisy
    counts; on a plane with several, as their errors look.

    Private because one step moves one cell by one and each cell carries discrete Laplace noise of scale 1/ε;
    all that follows reads noisy counts only. Sums over long ranges are better served by `AdaptiveTree`; here an
    answer about many cells is the engine's mean where bias could add up (see `dphist.inference.predictive`), so it need
    not be the sum of the published cells. Intervals allow for what noise hides in cells that are published as next to
    nothing (`dphist.inference.predictive.hidden`), and those of single cells of a line gain where a trend was heard
    (`dphist.inference.predictive.weighed`).

    Args:
        counted: On a line of 1,024 cells or more, count the records first. Of few records cells do not tell even their
            sum: then a better total is measured and cells are moved to it together, and where there is next to nothing
            a tree of blocks is measured instead of cells. Every decision reads totals that were paid for.
        elsewhere: Where few tall cells are known to hold nearly all records, how many noise scales of records may lie
            elsewhere; what is published, answers and intervals then rely on that. 0 where nothing of the kind is known.

    Example:
        >>> from dphist.mechanisms import Posterior
        >>> from dphist.testing import run
        >>> run(Posterior(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    reuses_counts: ClassVar[bool] = True
    """What it publishes is what it made of its right (`PrivateCounts.published`), and nothing else."""

    counted: bool = False
    elsewhere: float = 0.0

    def __post_init__(self) -> None:
        if self.elsewhere < 0.0:
            raise MechanismError("posterior: elsewhere must not be negative")

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer; perhaps for the total before."""
        if not self.counted or len(data.shape) > 1 or data.size < _FEWEST:
            return self._cells(data, None)
        whole, unit = data, float(data.law().scale)
        look = Fraction(1, math.isqrt(_LOOK * _LOOK * data.size))
        first, data = data.split(look, 1 - look)
        if float(first.measure(Totals()).values.sum()) >= _FEW * math.sqrt(data.size) * unit:
            return self._cells(data.standing_for(whole), None, " with what a count of the records left")
        second, data = data.split(_TOTAL, 1 - _TOTAL)
        noisy = second.measure(Totals())
        total = float(noisy.values.sum())
        data = data.standing_for(whole)
        if total >= _NEXT_TO_NOTHING * unit:
            return self._cells(data, noisy)
        # Loaded here: hardly anybody needs it.
        from dphist.mechanisms.adaptivetree import AdaptiveTree

        found = AdaptiveTree(estimator="averaged").estimate(data)
        return replace(found, note=f"records are next to nothing beside the noise of cells, so {found.note}")

    def _cells(self, data: PrivateCounts, total: Noisy | None, spent: str = "") -> Estimate:
        """Ask for every cell, and infer; a noisy total tells more where there are few records."""
        noisy = data.measure(Identity())
        values, ordered = noisy.values.reshape(data.shape), ordered_line(data)
        # Of the whole numbers that are drawn: at a large ε most are 0, and sums of noisy cells are next to exact.
        known = None if total is None else (float(total.values.sum()), float(total.variance))
        law = partial(Engine.of_cells, values, max(noisy.law.drawn_variance, NEXT_TO_EXACT), known)
        proof = partial(NoisySums, values, noisy.law)
        if data.published is not None:
            told = data.published
            errors = PredictiveErrors(law, proof, told.counts, told=told.learned)
            read = partial(_read, noisy, values, ordered=ordered)
            return Estimate(told.counts, self._errors(errors, noisy, known, read if ordered else None))
        counts, model = _read(noisy, values, ordered=ordered)
        reading = counts, model
        if self.elsewhere > 0.0:
            from dphist.inference.predictive.few import lowered

            counts = lowered(counts, float(noisy.scale), self.elsewhere)
        note = f"every cell was noised{spent}, then "
        if total is not None:
            counts = _to_total(counts, noisy, total)
            note = "records are few, so their total was noised, then every cell with the rest, and "
        note += in_words(model)
        errors = PredictiveErrors(law, proof, counts)
        return Estimate(
            counts, self._errors(errors, noisy, known, (lambda: reading) if ordered else None), note
        )

    def _errors(
        self,
        errors: PredictiveErrors,
        noisy: Noisy,
        total: tuple[float, float] | None,
        read: Callable[[], Reading] | None,
    ) -> PredictiveErrors:
        """Errors that know of tall cells, or of what noise hides; reading again tells whether a trend was heard."""
        if errors.counts is None:
            return errors
        parts = errors.make, errors.prove, errors.counts, errors.pruned, errors.told
        if self.elsewhere > 0.0:
            from dphist.inference.predictive.few import FewErrors

            law = noisy.law
            return FewErrors(
                *parts,
                scale=float(law.scale),
                noise=float(law.variance),
                elsewhere=self.elsewhere,
                noisy=noisy.values.reshape(errors.counts.shape),
            )
        from dphist.inference.predictive.hidden import HiddenErrors

        values, noise = noisy.values.reshape(errors.counts.shape), noisy.law.drawn_variance
        # Counts that were moved to a total are no longer what was read.
        if read is not None and total is None and noise > NEXT_TO_EXACT:
            from dphist.inference.predictive.weighed import WeighedErrors

            return WeighedErrors(*parts, noisy=values, noise=noise, freedom=partial(_freedom, read))
        unordered = read is None and values.ndim == 1
        return HiddenErrors(*parts, noisy=values, noise=noise, total=total, unordered=unordered)


def _read(noisy: Noisy, values: IntArray, *, ordered: bool) -> Reading:
    """Infer the counts, and say by which model."""
    # Loaded here: who only asks needs none of it.
    from dphist.inference.neighbours.fields import denoise_field

    return denoise_field(
        values, float(noisy.scale), gaussian=noisy.law.gaussian, fine=values.ndim == 1, structural=ordered
    )


def _to_total(counts: FloatArray, noisy: Noisy, total: Noisy) -> FloatArray:
    """Move counts towards a noisy total, which is nearer to the truth than their sum: function of noisy answers alone.

    Cells in which nothing was seen by itself stand on a level that m of them share, whose sum is known to within the
    noise of m cells. So that sum is lowered to the mean of it and of what the total leaves for it, weighed by their
    precisions; lone peaks do not pay for the total's noise. Then all counts are raised together, since counts with the
    true total are nearer to the truth whatever they were; but to less than the noisy one, because what it has beyond
    their sum is mostly its own noise.
    """
    quiet = counts < _SEEN * float(noisy.scale)
    sum_of, known = float(counts[quiet].sum()), float(total.values.sum())
    left = max(known - float(counts[~quiet].sum()), 0.0)
    if sum_of > left:
        # As many even cells as have this sum and this sum of squares.
        noise = float(noisy.variance) * sum_of**2 / float((counts[quiet] ** 2).sum())
        weight = noise / (noise + float(total.variance))
        counts = np.where(quiet, counts * (1.0 - weight * (1.0 - left / sum_of)), counts)
    return nonnegative(counts, max(float(counts.sum()), known - _NEAR * float(total.scale)))


def _freedom(read: Callable[[], Reading]) -> float:
    """The degrees of freedom of a reading in which a trend was heard; 0 if none was."""
    model = read()[1]
    return 0.0 if model is None else model.freedom
