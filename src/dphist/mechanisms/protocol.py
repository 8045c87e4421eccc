"""What a mechanism is: a frozen value that turns a right into an estimate."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from dphist.inference.estimate import Estimate
    from dphist.inference.tables.published import TableEstimate
    from dphist.model.domain import Domain
    from dphist.model.workload import Workload
    from dphist.private.gate import PrivateCounts


@runtime_checkable
class Mechanism(Protocol):
    """A public recipe. It sees counts only through the gate, so it spends exactly what it was given."""

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Use up the right and return estimated counts with their errors; tables where no cube was measured."""
        ...


@runtime_checkable
class TableMechanism(Mechanism, Protocol):
    """A mechanism that publishes tables of few attributes, and so can do without the cells of the whole product."""

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether it publishes tables rather than cells over this domain: public facts decide."""
        ...

    def estimate_tables(self, data: PrivateCounts) -> TableEstimate:
        """Use up the right and return tables with their errors."""
        ...


def goes_wide(
    mechanism: Mechanism, domain: Domain | None, workload: Workload | None
) -> TypeGuard[TableMechanism]:
    """Whether a mechanism publishes tables over a domain."""
    if domain is None or not isinstance(mechanism, TableMechanism):
        return False
    return mechanism.goes_wide(domain, workload)


_Mechanism = TypeVar("_Mechanism", bound=Mechanism)


def with_reason(mechanism: _Mechanism, note: str) -> _Mechanism:
    """Let a mechanism that chooses by itself carry its reason into the release; others stay as they are."""
    if getattr(mechanism, "why", None) != "":
        return mechanism
    value: Any = mechanism
    explained: _Mechanism = replace(value, why=note)
    return explained


def made_by(mechanism: _Mechanism, estimate: Estimate | TableEstimate) -> _Mechanism:
    """The mechanism that a release names: with all that it chose filled in, so that a replay chooses nothing again.

    Rules of choosing change from one version to the next; what an old release asked of the records does not.
    """
    filled: Any = estimate.made_by
    return mechanism if filled is None else filled


def bare(mechanism: _Mechanism) -> _Mechanism:
    """The mechanism without anything that releases fill in, which are the fields that equal ones may differ in."""
    value: Any = mechanism
    emptied = {}
    for option in fields(value) if is_dataclass(value) else ():
        held = getattr(value, option.name)
        if not option.compare and option.init and option.default is not MISSING:
            empty = option.default
        else:
            empty = bare(held) if isinstance(held, Mechanism) and not isinstance(held, type) else held
        if empty is not held:
            emptied[option.name] = empty
    left: _Mechanism = replace(value, **emptied) if emptied else value
    return left
