"""Gradual release: look first, ask the same again later, and pay for the second answer alone.

`Gradual.look` answers with a share s of a right's budget B, `Gradual.again` the same question with all of it. Two
independent answers would waste most of that: noise of two halves of ε, put together, has twice the variance of noise
for ε. So, under ε, the fine answer y with the noise of B is drawn first and kept behind the gate. What leaves is y + E,
with E independent of y and of the counts, such that its noise is exactly that of sB (`dphist.private.noise.laplace`;
Koufogiannis, Han and Pappas, 2016).

Why this is private. Who looks and then asks something else of the rest has seen an answer at the price sB, and y is
never told. Who asks `again` has seen y, at the price B, and y + E, which is made of y alone. `again` uses up the very
right that the rest of the budget is on, part by part, so nobody has both y and the rest: any verb but `select` and
`again` forgets y, and the parts are those that were looked at. Between the two, other questions may be asked, of other
cells or of other rights on the same ones, and may depend on y + E: the probability of both answers is that of y times
that of E, and a step changes the first by a factor of exp(B) at most, whatever happened in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.model.exact import Number, exact, shares
from dphist.model.law import NoiseLaw
from dphist.private.facts import Facts, Noisy
from dphist.private.noise import Noise
from dphist.private.pricing import UnitBudget, add_noise
from dphist.private.queries.counting import Totals
from dphist.private.questions import IntArray, Layout, Query, describe
from dphist.private.transcript import Book


@dataclass(eq=False)
class Finer:
    """The fine answers behind what was looked at, as secret as the counts; of the parts that the right has.

    Those are the ones that were looked at: a right's labels are the gate's own copy. Whoever could move a cell to
    another part after the look would have its answer go one way and the rest of its budget the other.
    """

    law: NoiseLaw
    values: IntArray | None = None

    def of(self, parts: NDArray[np.bool_]) -> Finer:
        """The answers about some parts."""
        return Finer(self.law, None if self.values is None else self.values[parts])

    def answers(self) -> IntArray:
        """Give the answers."""
        if self.values is None:
            raise MechanismError("a replay draws no noise")
        return self.values.copy()


class Gradual(Facts):
    """The verbs of a right that answer one question twice. Read the module's docstring for the proof."""

    __slots__ = ("_finer",)

    _finer: Finer | None
    _book: Book
    _path: str
    split: Callable[..., tuple[Any, ...]]
    _take: Callable[[], IntArray | None]
    _ask: Callable[..., NDArray[Any]]
    _child: Callable[[IntArray | None, Layout, UnitBudget, str], Any]
    _question: Callable[[Query], Query]
    _noise_source: Callable[[], Noise]

    def look(self, share: Number) -> tuple[Noisy, Self]:
        """Ask for every part's total with a share of the budget, and keep the right to ask `again` with all of it.

        `select` parts of that right and ask them `again`, or ask of it anything else at the price of the rest. Under ρ
        precision adds up anyway: there it is a `split` and a `measure`, and nothing is kept.
        """
        part = exact(share, "share")
        part, rest = shares((part, 1 - part))
        if self._budget.currency != "epsilon":
            now, later = self.split(part, rest)
            return now.measure(Totals()), later
        query, layout = self._question(Totals()), self._layout
        fine, coarse = (
            unit_budget.price(query, layout) for unit_budget in (self._budget, self._budget.share(part))
        )
        fine.check()
        coarse.check()
        counts = self._take()
        later = self._child(counts, layout, self._budget.share(rest), f"{self._path}/s1")
        later._finer = finer = Finer(fine.law)

        def draw(counts: IntArray) -> IntArray:
            source = self._noise_source()
            finer.values = add_noise(query.answer(counts, layout), fine.sizes, fine.noise(source))
            return source.blur(finer.values, Fraction(fine.law.scale), Fraction(coarse.law.scale))

        answer = self._book.ask(
            f"{self._path}/s0",
            "look",
            describe(query),
            self._budget.share(part).amount,
            None if counts is None else lambda: draw(counts),
        )
        return Noisy(answer, coarse.law), later

    @property
    def looked(self) -> bool:
        """Whether the totals of these parts were looked at, and may be asked for `again`."""
        return self._finer is not None

    def again(self) -> Noisy:
        """Ask once more what was looked at: the answer is as fine as if all of the budget had been spent on it at once.

        It takes the place of what `look` gave, which tells nothing more beside it.
        """
        finer = self._finer
        if finer is None:
            raise MechanismError("nothing was looked at: there is no answer to be had again")
        return Noisy(self._ask("again", Totals(), lambda _: finer.answers()), finer.law)
