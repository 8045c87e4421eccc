"""How a release is asked: one range or many, whatever holds its cells."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

from dphist.errors import QueryError
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.release.answers import Answer, Answers

if TYPE_CHECKING:
    from dphist.release.release import Guarantee


class Asked:
    """The face that releases share; each kind answers a workload in its own way."""

    domain: Domain
    guarantee: Guarantee

    @property
    def epsilon(self) -> Fraction:
        """The privacy loss that was paid for."""
        return self.guarantee.epsilon

    @overload
    def answer(self, workload: Workload, *, confidence: float = 0.95) -> Answers: ...

    @overload
    def answer(self, *, where: Mapping[str, Any] | None = None, confidence: float = 0.95) -> Answer: ...

    def answer(
        self,
        workload: Workload | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
    ) -> Answer | Answers:
        """Count the records in one range (``where``) or in many (a workload), each with an interval.

        ``where`` maps attributes to a value, an inclusive pair of bounds, a list of values or the name of a group,
        all in the attribute's own values; attributes left out are summed over.
        """
        if workload is not None and where is not None:
            raise QueryError("give a workload or where=, not both")
        if workload is not None and not isinstance(workload, Workload):
            raise QueryError(f"workload must be a dphist.Workload, not a {type(workload).__name__}")
        if where is not None and not isinstance(where, Mapping):
            raise QueryError("where must map attributes to what is asked of them")
        asked = workload if workload is not None else Workload.where(self.domain, where or {})
        if asked.domain != self.domain:
            raise QueryError("workload is over another domain than the release; build it from release.domain")
        answers = self._answers(asked, confidence)
        return answers if workload is not None else answers[0]

    def _answers(self, workload: Workload, confidence: float) -> Answers:
        raise NotImplementedError
