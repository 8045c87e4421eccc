"""How errors of pieces are put together, worked out by hand from pieces of which everything is known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist import Domain, Ordinal, Workload
from dphist.inference.estimate import CALIBRATED, IndependentNoise, Interval, Words
from dphist.inference.intervals import normal_quantile
from dphist.inference.pieces import PartErrors
from dphist.model.law import NoiseLaw
from dphist.model.pieces import ByValues

FloatArray = NDArray[np.float64]

Z = normal_quantile(0.95)


@dataclass
class Known:
    """A piece whose intervals reach so far to either side, never below zero, and whose law stands so far off."""

    below: float
    above: float
    lean: float = 0.0
    guessed: bool = False
    words: Words = CALIBRATED
    asked: list[tuple[bool, float]] = field(default_factory=list)

    def variance(self, workload: Workload) -> FloatArray:
        return np.ones(len(workload))

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        return published, np.full(len(workload), self.lean)

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        return summed

    def interval(
        self,
        workload: Workload,
        published: FloatArray,
        confidence: float,
        *,
        estimated: FloatArray | None = None,
        guaranteed: bool = False,
        simultaneous: bool = False,
    ) -> Interval:
        self.asked.append((guaranteed, confidence))
        guessed = np.full(len(workload), True) if self.guessed else None
        return Interval(np.maximum(published - self.below, 0.0), published + self.above, guessed)


def together(*pieces: Known, counts: tuple[float, ...], guaranteed: bool = False) -> Interval:
    """What is said of the sum over all pieces, of one cell each."""
    domain = Domain([Ordinal("part", range(len(pieces))), Ordinal("x", range(2))])
    cells = tuple(np.array([count, 0.0]) for count in counts)
    errors = PartErrors(ByValues(domain, ("part",)), pieces, cells)
    whole = Workload(domain, [[0, 0]], [[len(pieces), 1]])
    return errors.interval(whole, np.array([sum(counts)]), 0.95, guaranteed=guaranteed)


@pytest.mark.parametrize(
    ("first", "second"), [(300.0, 400.0), (-300.0, -400.0), (300.0, -400.0), (500.0, 0.0)]
)
def test_pieces_that_lean_to_one_side_lean_together_and_others_do_not(first: float, second: float) -> None:
    found = together(Known(30, 40, first), Known(40, 30, second), counts=(5000.0, 6000.0))
    # The square of a sum, less the squares that the pieces' own intervals hold.
    more = max(2 * first * second, 0.0)
    reach = np.sqrt(50.0**2 + Z**2 * more)
    assert found.low[0] == pytest.approx(11_000 - reach, abs=0.5)
    assert found.high[0] == pytest.approx(11_000 + reach, abs=0.5)


def test_a_piece_that_is_cut_at_zero_may_be_as_much_too_high_as_too_low() -> None:
    found = together(Known(800, 800), Known(800, 700), Known(60, 20), counts=(300.0, 200.0, 5000.0))
    # The first two reach down to zero: their sum is lower by up to what they may be too low by, as others are.
    assert found.low[0] == pytest.approx(5500 - np.sqrt(800**2 + 700**2 + 60**2), abs=0.5)
    assert found.high[0] == pytest.approx(5500 + np.sqrt(800**2 + 700**2 + 20**2), abs=0.5)
    # Where zero is further than that, it is no less far.
    found = together(Known(800, 100), Known(60, 20), counts=(300.0, 5000.0))
    assert found.low[0] == pytest.approx(5300 - np.sqrt(300**2 + 60**2), abs=0.5)


def test_bounds_of_what_one_piece_guesses_are_added_and_not_squared() -> None:
    pieces = Known(30, 40), Known(400, 500, guessed=True)
    found = together(*pieces, counts=(5000.0, 6000.0))
    assert (found.low[0], found.high[0]) == (11_000 - 430, 11_000 + 540)
    assert found.guessed is not None
    assert found.guessed.tolist() == [True]
    # Nothing is guessed of what the other holds alone.
    domain = Domain([Ordinal("part", range(2)), Ordinal("x", range(2))])
    cells = np.array([5000.0, 0.0]), np.array([6000.0, 0.0])
    errors = PartErrors(ByValues(domain, ("part",)), pieces, cells)
    alone = Workload(domain, [[0, 0], [0, 0]], [[1, 1], [2, 1]])
    found = errors.interval(alone, np.array([5000.0, 11_000.0]), 0.95)
    assert (found.low[0], found.high[0]) == (5000 - 30, 5000 + 40)
    assert found.guessed is not None
    assert found.guessed.tolist() == [False, True]


@pytest.mark.parametrize("many", [1, 2, 5])
@pytest.mark.parametrize("guaranteed", [False, True])
def test_ends_that_are_added_up_each_miss_with_their_part_of_the_error(many: int, guaranteed: bool) -> None:
    pieces = [Known(10, 20, guessed=not guaranteed) for _ in range(many)]
    found = together(*pieces, counts=(1000.0,) * many, guaranteed=guaranteed)
    assert (found.low[0], found.high[0]) == (990 * many, 1020 * many)
    for piece in pieces:
        which, sure = piece.asked[-1]
        assert which is guaranteed
        assert sure == pytest.approx(1 - 0.05 / many)


def test_a_sum_over_pieces_stands_on_all_of_them_and_is_as_sure_as_the_least_sure() -> None:
    domain = Domain([Ordinal("part", range(2)), Ordinal("x", range(2))])
    noise = IndependentNoise(NoiseLaw("laplace", 1), exact=True)
    pieces = Known(3, 3, 2.0, words=noise.words), Known(3, 3)
    errors = PartErrors(ByValues(domain, ("part",)), pieces, (np.array([50.0, 0.0]), np.array([7.0, 0.0])))
    stand, lean = errors.stand(Workload(domain, [[0, 0]], [[2, 1]]), np.array([60.0]))
    assert (stand[0], lean[0]) == (60, 50 + 2 + 7 - 60)
    assert errors.words.short == CALIBRATED.short != noise.words.short


@dataclass
class Noisy(Known):
    """A piece of two noisy cells, each of variance one."""

    values: tuple[int, int] = (0, 0)

    def noisy_sums(self, workload: Workload) -> tuple[FloatArray, FloatArray]:
        return workload.answer(np.array(self.values, dtype=float)), workload.cells_in_each.astype(float)


def test_noisy_cells_of_all_pieces_add_up_where_every_piece_that_is_met_has_them() -> None:
    domain = Domain([Ordinal("part", range(3)), Ordinal("x", range(2))])
    pieces = (Noisy(1, 1, values=(3, 4)), Noisy(1, 1, values=(10, 20)), Known(1, 1))
    errors = PartErrors(ByValues(domain, ("part",)), pieces, (np.zeros(2), np.zeros(2), np.zeros(2)))
    found = errors.noisy_sums(Workload(domain, [[0, 0], [0, 1], [1, 0]], [[2, 2], [2, 2], [2, 1]]))
    assert found is not None
    assert found[0].tolist() == [37.0, 24.0, 10.0]
    assert found[1].tolist() == [4.0, 2.0, 1.0]
    assert errors.noisy_sums(Workload(domain, [[0, 0]], [[3, 1]])) is None
