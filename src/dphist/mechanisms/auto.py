"""The right mechanism by itself: chosen from public facts, explained in words.

Candidates are imported when they are chosen: a release is asked and verified in less time than all of them take.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.tables.published import TableEstimate
from dphist.mechanisms.choosing import rule
from dphist.mechanisms.choosing.pilot import PilotAnswer, PilotQuery
from dphist.mechanisms.choosing.request import LARGEST_TABULAR, Request, in_detail
from dphist.mechanisms.options import checked
from dphist.mechanisms.protocol import Mechanism, TableMechanism, made_by
from dphist.model.domain import Domain
from dphist.model.phrases import UNPAIRED
from dphist.model.workload import Kind, Workload
from dphist.private.facts import Facts
from dphist.private.gate import PrivateCounts

# Cubes above this are not written out whatever will be asked.
_LARGEST_DENSE = 1 << 29
# Nobody asks for boxes in all of 5 attributes or more.
_MANY = 5
# What a release may say of its choice; ours are a third as long.
_LONGEST_REASON = 1000


@checked
@dataclass(frozen=True, kw_only=True)
class Auto:
    """Choose what to measure from what will be asked, and what to infer from what was measured.

    It reads what is public: the attributes, the budget, and what will be asked, if somebody said so. Where that does
    not decide, a few percent of the budget first buy a noisy look at the data. The release says what was chosen, and
    why.

    Single cells are noised one by one and inferred from their neighbours (`Posterior`). Prefixes, ranges and questions
    nobody announced about one attribute get a tree measured where it is full (`AdaptiveTree`). Of several attributes
    tables, the cube among them (`Marginals`), or a tree of boxes are measured, whichever is expected to be off by less
    on what will be asked, or on a mixture of cells, tables, ranges and boxes if nobody said (see
    `dphist.mechanisms.choosing`). Of a domain with more cells than anybody can write out, tables of few attributes are
    published with a model fitted to them (`Mixture`). What depends on the data inside of these is decided by noisy
    answers, too, or among models by their evidence in values that are already released.

    Where (ε, δ) is allowed it is also chosen which promise to keep, that of the ρ it buys or that of pure ε
    (`dphist.mechanisms.choosing.currency`).

    Private because a part of the right buys what is looked at, and the rest goes to one mechanism, chosen by nothing
    but public facts and that.

    ``workload`` names what will be asked if it is not handed over as a workload: "cells", "prefixes", "all_ranges",
    "marginals" or "ranges". With ``guaranteed`` only mechanisms are chosen whose guaranteed intervals are narrow,
    because what is measured does not depend on the data and its noise is known exactly: single cells by `Laplace`
    (or `Gaussian`), ranges by a `Tree` of fixed blocks, published as least squares has it, tables by `Marginals`.
    Answers are then less accurate on data that the others adapt to.

    A release fills in ``why``, the choice in words, ``look``, what was bought before it, and ``chosen``. With these the
    same look is bought and the chosen mechanism gets the rest: nothing is chosen, so a release can be replayed when the
    rules of choosing have long changed.

    Args:
        workload: What will be asked, where it is not handed over as a workload.
        guaranteed: Choose for narrow guaranteed intervals.
        why: Filled in by the release.
        look: Filled in by the release.
        chosen: Filled in by the release.

    Example:
        >>> from dphist.mechanisms import Auto
        >>> from dphist.testing import run
        >>> run(Auto(workload="cells"), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    workload: Kind | None = None
    guaranteed: bool = False
    why: str = field(default="", compare=False)
    look: PilotQuery | None = field(default=None, compare=False)
    chosen: Mechanism | None = field(default=None, compare=False)

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Choose, then let the chosen mechanism use the right, or what a first look has left of it."""
        seen = PilotAnswer()
        look = rule.first_look(self._request(data)) if self.chosen is None else self.look
        if look is not None:
            seen, data = look.at(data)
        mechanism, reason = self.chosen, None
        if mechanism is None:
            if look is not None:
                look, seen, data = rule.look_on(self._request(data), data, look, seen)
            mechanism, reason = self.choose(data, seen)
        estimate = mechanism.estimate(data)
        named = replace(self, look=look, chosen=made_by(mechanism, estimate))
        return replace(estimate, note=self._said(reason, estimate.note), made_by=named)

    def _said(self, reason: str | None, note: str) -> str:
        """The choice in words, and what was made of it: a release is believed the first, in few plain words."""
        rest = note.removeprefix(f"{UNPAIRED} ")
        if unpaired := rest != note:
            rest = rest[0].lower() + rest[1:]
        if reason is not None:
            said = reason + in_detail(rest)
            return f"{UNPAIRED} {said[0].upper()}{said[1:]}" if unpaired else said
        end = in_detail(rest)
        plain = self.why.endswith(end) and self.why.isprintable()
        plain = plain and len(self.why) - len(end) <= _LONGEST_REASON
        return self.why if plain else note

    def choose(self, data: Facts, seen: PilotAnswer | None = None) -> tuple[Mechanism, str]:
        """Say which mechanism fits, and why, from public facts and, where that was paid for, a first look."""
        return rule.choose(self._request(data), seen or PilotAnswer())

    def _request(self, data: Facts) -> Request:
        return Request(data, self.workload, self.guaranteed, again=Auto(workload=self.workload))

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables of few attributes are published rather than every cell: public facts decide."""
        if domain.size > _LARGEST_DENSE:
            return True
        if self.workload is None and workload is not None and workload.parts:
            # Tables answer for tables alone: whoever asks for cells as well needs the cells, as long as they fit.
            asked = {part.kind for _, part in workload.parts}
            return asked == {"marginals"} and domain.size > LARGEST_TABULAR
        kind = self.workload or (None if workload is None else workload.kind)
        tabular = kind == "marginals" or (kind is None and len(domain.shape) >= _MANY)
        return tabular and domain.size > LARGEST_TABULAR

    def estimate_tables(self, data: PrivateCounts) -> TableEstimate:
        """Publish tables of few attributes out of very many."""
        if self.chosen is not None:
            if not isinstance(self.chosen, TableMechanism):
                raise MechanismError(
                    "auto: beyond memory only a mechanism that publishes tables can be chosen"
                )
            found = self.chosen.estimate_tables(data)
            named = replace(self, chosen=made_by(self.chosen, found))
            return replace(found, note=self._said(None, found.note), made_by=named)
        parts = [] if data.workload is None else [part for _, part in data.workload.parts] or [data.workload]
        size, asked = data.whole.size, any(part.kind == "marginals" for part in parts)
        cells = "more combinations than anybody can write out"
        if size <= _LARGEST_DENSE:
            cells = f"{size:,} combinations, which could all be written out, but tables measured by themselves are "
            cells += "as good or better"
        reason = (
            f"the domain has {len(data.shape)} attributes and {cells}, so "
            f"{'the tables that will be asked for' if asked else 'all tables of two attributes'} are published"
        )
        if self.guaranteed:
            from dphist.mechanisms.residuals import Residuals

            chosen: TableMechanism = Residuals()
            said = "by themselves (residuals), which keeps guaranteed intervals narrow"
            found = chosen.estimate_tables(data)
        else:
            from dphist.mechanisms.mixture import publish_tables

            said, chosen, found = publish_tables(data)
        named = replace(self, chosen=made_by(chosen, found))
        return replace(found, note=self._said(f"{reason} {said}", found.note), made_by=named)
