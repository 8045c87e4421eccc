"""A value on which records heap up is published by itself, and the others beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.tables.published import TableEstimate
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.bypart import InPieces, Kind
from dphist.mechanisms.options import Large, checked
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Domain
from dphist.model.pieces import OneApart
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts


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
