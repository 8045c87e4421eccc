"""A mechanism run on disjoint pieces: one for every value of a public attribute, or one value and the others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np

from dphist.errors import InputError, MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.pieces import part_errors
from dphist.inference.tables.published import TableEstimate, in_cells
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.options import Large, checked, to_json
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Domain
from dphist.model.pieces import ByValues, OneApart, Pieces
from dphist.model.workload import Workload
from dphist.private.facts import part_workload
from dphist.private.gate import PrivateCounts

Kind = tuple[Mechanism, Domain, Workload | None]


class InPieces:
    """Runs a mechanism on every piece of a domain; pieces are disjoint, so each gets the whole budget."""

    inner: Mechanism
    each: tuple[Mechanism, ...]

    @abstractmethod
    def kinds(self, domain: Domain, workload: Workload | None) -> list[Kind]:
        """What is run on which domain, with what will be asked there: once for all pieces that are alike."""

    def put_together(self, pieces: Pieces, rights: Sequence[PrivateCounts]) -> Estimate:
        """Run the pieces in order and put them together."""
        runs = self.runs(len(rights))
        estimates = [in_cells(run.estimate(right)) for run, right in zip(runs, rights, strict=True)]
        counts = pieces.joined([estimate.counts for estimate in estimates])
        made_by = self.named([each.made_by for each in estimates])
        return Estimate(counts, part_errors(pieces, estimates), made_by=made_by)

    def runs(self, parts: int) -> tuple[Mechanism, ...]:
        """Who runs on every part."""
        each = self.each or (self.inner,)
        if len(each) not in (1, parts):
            raise MechanismError("each must name one mechanism for all parts, or one for every part")
        return each * parts if len(each) == 1 else each

    def named(self, chosen: Sequence[object]) -> Self | None:
        """The same with who ran on every part, where the parts chose: once, if all chose alike."""
        filled = [one for one in chosen if isinstance(one, Mechanism)]
        if not filled or len(filled) != len(chosen):
            return None
        alike = all(to_json(one) == to_json(filled[0]) for one in filled[1:])
        recipe: Any = self
        return cast("Self", replace(recipe, each=(filled[0],) if alike else tuple(filled)))


@checked
@dataclass(frozen=True, kw_only=True)
class ByPart(InPieces):
    """Cut the cube along public attributes and run a mechanism on every piece by itself.

    Pieces are disjoint in cells, so each gets the whole budget (parallel composition): one step changes one cell, and
    so the answers about one piece. People may have rows in several pieces; the gate counts all of their rows as
    steps, wherever they lie. Every value gets a run, also one that no record has.

    Args:
        by: Public attributes, by name.
        inner: What runs on every part.
        each: Filled in by the release where parts chose by themselves: who ran on every part, or one for all.

    Example:
        >>> from dphist.mechanisms import ByPart, Laplace
        >>> from dphist.testing import run
        >>> run(ByPart(by=("x0",), inner=Laplace()), [[9, 9], [0, 1]], epsilon=1, seed=1).counts.shape
        (2, 2)
    """

    by: tuple[str, ...] = ()
    inner: Mechanism = field(default_factory=Laplace)
    each: tuple[Mechanism, ...] = field(default=(), compare=False)

    def kinds(self, domain: Domain, workload: Workload | None) -> list[Kind]:
        """One for every mechanism that is named: parts differ in nothing else."""
        axes = [domain.axis(name) for name in self.by]
        kept = [axis for axis in range(len(domain.shape)) if axis not in axes]
        if not kept or len(set(axes)) != len(axes):
            raise InputError(
                "partition_by: name distinct attributes, and leave at least one to count in every part"
            )
        inner = domain.project([domain.names[axis] for axis in kept])
        asked = part_workload(workload, inner, kept)
        return [(run, inner, asked) for run in self.each or (self.inner,)]

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Run the pieces in order and put them together."""
        rights = data.separate(self.by)
        domain = data.domain
        assert domain is not None  # noqa: S101 -- separate insists on it
        return self.put_together(ByValues(domain, self.by), rights)


@checked
@dataclass(frozen=True, kw_only=True)
class Heap(InPieces):
    """Set one value of an attribute apart, and run a mechanism there and on the others.

    Most people have no capital gains, and work 40 hours a week. Of such a plane one row has most of the records, and
    blocks that cut it from its neighbours must be as narrow as it is, all along it. By itself it is a line, and what is
    left is a plane without a wall in it.

    The pieces are disjoint, so each gets the whole budget (parallel composition). Which value is set apart is an
    option: whoever chooses it by the data pays for that, as `Auto` does.

    Args:
        of: The attribute, by name. Where it is the only one, or "", everything is one piece: on a line a tall cell is
            no wall.
        value: Which of its values, by its place.
        inner: What runs on both pieces.
        each: Filled in by the release where pieces chose by themselves: who ran on either, or one for both.

    Example:
        >>> from dphist.mechanisms import Heap, Laplace
        >>> from dphist.testing import run
        >>> run(Heap(of="x1", inner=Laplace()), [[900, 9], [800, 1]], epsilon=1, seed=1).counts.shape
        (2, 2)
    """

    of: str = ""
    value: Large = 0
    inner: Mechanism = field(default_factory=Laplace)
    each: tuple[Mechanism, ...] = field(default=(), compare=False)

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Run both pieces and put them together."""
        domain = data.domain
        if domain is None or data.labels is not None:
            raise MechanismError("heap: only a whole domain has a value to set apart")
        pieces = self._pieces(domain)
        if pieces is None:
            whole = self.runs(1)[0].estimate(data)
            # What chose by itself says why but once: whoever is named here replays its choice without the reason.
            return replace(whole, note="", made_by=self.named([whole.made_by]))
        asked = pieces.asked(data.workload)
        rights = data.partition(pieces.labels, 2).select(np.array([True, False]))
        return self.put_together(
            pieces,
            [right.of(each, told) for right, each, told in zip(rights, pieces.domains, asked, strict=True)],
        )

    def kinds(self, domain: Domain, workload: Workload | None) -> list[Kind]:
        """Both pieces, or the whole where it is one."""
        pieces = self._pieces(domain)
        if pieces is None:
            return [(self.runs(1)[0], domain, workload)]
        return list(zip(self.runs(2), pieces.domains, pieces.asked(workload), strict=True))

    def _pieces(self, domain: Domain) -> OneApart | None:
        """What the domain is cut into; None where it is one piece."""
        axis = domain.axis(self.of) if self.of else 0
        # Of a line too, which may be the piece of a plane that is asked first, and pays for the others.
        if self.of and (not 0 <= self.value < domain.shape[axis] or domain.shape[axis] < 2):
            raise MechanismError(
                "heap: value must be the place of one of two or more values of the attribute"
            )
        return None if not self.of or len(domain.shape) == 1 else OneApart(domain, axis, self.value)
