"""The gate over records: the same right, for domains whose cells nobody can write out.

A table of forty columns spans more cells than any memory has, but each of its records is forty small numbers.
`PrivateRecords` fuses such records with a budget. It is the cell gate's right (`dphist.private.gate`) over the very
same cells, most of which are never visited: one *step* is one cell changing by one, that is, one record more or less.
So the proof of that gate is the proof of this one: `split` composes sequentially; `measure` and `choose` lose at most
the budget by the promises of their questions; a person of several rows is several steps; noise is priced where it
is for cells (`dphist.private.pricing`), in both currencies. Nothing is calibrated here.

What differs is what a right can do. The verbs that regroup cells (`partition`, `arrange` and so on) would
have to visit them, so there are none: a question about anything but tables of few attributes finds no array behind
this gate and is refused (`Held`). The refusal reads the question's type alone, but it comes after payment; so use the
questions that are made for records: `TableTotals`, `RangedTables` and the score `TableErrors`.

Nothing above the gate sees a code: mechanisms import neither sources nor `dphist.model.coded`'s columns.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from dphist.errors import MechanismError, RightUsed
from dphist.model.budget import Budget
from dphist.model.coded import Countable
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.law import Kind, NoiseLaw
from dphist.model.phrases import counted
from dphist.model.transcript import Transcript
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import Noisy, PrivateCounts, open_held, open_replay
from dphist.private.held import Held
from dphist.private.noise import Noise
from dphist.private.queries.dependence import TopDependence
from dphist.private.queries.tables import RangedTables, TableTotals
from dphist.private.questions import IntArray, Moves
from dphist.private.scores.tables import TableErrors
from dphist.private.transcript import Replay

_ASKED = (TableTotals, RangedTables, TopDependence)
_CHOSEN = (TableErrors,)


class PrivateRecords:
    """The right to ask one question about tables of some records at one price. The module's docstring has the proof."""

    __slots__ = ("__weakref__", "_right")

    def __init__(self, right: PrivateCounts) -> None:
        if right.parts != 1 or right.labels is not None or right.domain is None:
            raise MechanismError("tables are asked of a whole domain, before its cells are regrouped")
        self._right = right

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return self._right.shape

    @property
    def domain(self) -> Domain:
        """What the attributes mean."""
        domain = self._right.domain
        assert domain is not None  # noqa: S101 -- the constructor insists
        return domain

    @property
    def workload(self) -> Workload | None:
        """What the user intends to ask, if they said so."""
        return self._right.workload

    def law(self, share: Fraction | int = 1, moves: Moves = "nonnegative") -> NoiseLaw:
        """The noise that a query of sensitivity one would get for a share of this right."""
        return self._right.law(share, moves)

    def split(self, *parts: Number) -> tuple[PrivateRecords, ...]:
        """Share the budget among several questions about the same records; shares must sum to exactly 1."""
        return tuple(PrivateRecords(right) for right in self._right.split(*parts))

    def measure(self, query: TableTotals | RangedTables | TopDependence, noise: Kind | None = None) -> Noisy:
        """Count tables or residuals, all in one pass, with exact noise."""
        if not isinstance(query, _ASKED):
            raise MechanismError("of records only tables can be measured: ask TableTotals or RangedTables")
        return self._right.measure(query, noise)

    def choose(self, score: TableErrors) -> IntArray:
        """Choose tables by the exponential mechanism."""
        if not isinstance(score, _CHOSEN):
            raise MechanismError("of records only tables can be chosen: ask TableErrors")
        return self._right.choose(score)

    def _refuse(self, *_: object) -> NoReturn:
        raise RightUsed("a right to private records cannot be copied or pickled")

    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse

    def __repr__(self) -> str:
        state = "unused" if self._right._right else "used"
        return f"<PrivateRecords of {counted(len(self.shape), 'attribute')}, {state}>"


def open_records_gate(
    records: Countable,
    budget: Number | Budget,
    unit: Unit,
    *,
    workload: Workload | None = None,
    noise: Noise | None = None,
    pay: Callable[[], None] | None = None,
) -> tuple[PrivateRecords, Transcript]:
    """Fuse records of a domain of any size with a budget; returns the one right, and the transcript that fills up.

    ``pay`` is called once, before the first noise is drawn; see `dphist.private.gate.open_gate`.
    """
    right, transcript = open_held(Held(records), records.domain, budget, unit, workload, noise, pay)
    return PrivateRecords(right), transcript


def open_records_replay(
    domain: Domain,
    budget: Number | Budget,
    unit: Unit,
    transcript: Transcript,
    *,
    workload: Workload | None = None,
) -> tuple[PrivateRecords, Replay]:
    """Open a gate with a transcript behind it and no records at all."""
    right, replay = open_replay(domain, budget, unit, transcript, workload=workload)
    return PrivateRecords(right), replay
