"""What a mechanism is: a frozen value that turns a right into an estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from dphist.inference.estimate import Estimate
from dphist.inference.published import TableEstimate
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.records import PrivateRecords


@runtime_checkable
class Mechanism(Protocol):
    """A public recipe. It sees counts only through the gate, so it spends exactly what it was given."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Use up the right and return estimated counts with their errors."""
        ...


@runtime_checkable
class TableMechanism(Mechanism, Protocol):
    """A mechanism that publishes tables of few attributes, and so can do without the cells of the whole product."""

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether it publishes tables rather than cells over this domain: public facts decide."""
        ...

    def estimate_tables(self, data: PrivateRecords) -> TableEstimate:
        """Use up the right and return tables with their errors."""
        ...


_Chosen = TypeVar("_Chosen", bound=Mechanism)


def with_reason(mechanism: _Chosen, note: str) -> _Chosen:
    """Let a mechanism that chooses by itself carry its reason into the release; others stay as they are."""
    if getattr(mechanism, "why", None) != "":
        return mechanism
    value: Any = mechanism
    explained: _Chosen = replace(value, why=note)
    return explained
