"""What a release promises, and to whom; which payment stands behind it, and who made it.

Who made it stands in its file in words and as options, so that a reader needs no mechanism to be told. A mechanism is
made again when it is needed; one that cannot be made here can still be named.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from inspect import getdoc
from typing import TYPE_CHECKING, Any, NamedTuple

from dphist.errors import MechanismError, ReleaseError
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.unit import Unit

if TYPE_CHECKING:
    from dphist.inference.estimate import Estimate
    from dphist.mechanisms.protocol import Mechanism
    from dphist.private.gate import PrivateCounts

# What a description that was tampered with can raise.
_MISFITS = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)


class Receipt(NamedTuple):
    """Which payment of which ledger a release was made from.

    Numbers repeat from ledger to ledger, and so do names of budgets. The hash of a ledger's line covers all lines
    before it, of which the first holds a number drawn at random: no other ledger has it.

    Args:
        dataset: The budget's name.
        payment: The reservation's number.
        hash: Of the line that reserved it.
    """

    dataset: str
    payment: int
    hash: str


@dataclass(frozen=True, init=False)
class Guarantee:
    """What was promised: a budget of privacy loss for one unit, and against whom a mistake would count.

    Args:
        budget: The privacy loss; a bare number is pure ε.
        unit: Who is protected.
        delta: The chance, beyond the budget, that discovered keys show one that only one unit brought.
        threshold: From which noisy count on discovered keys are shown.

    Example:
        >>> import dphist
        >>> Guarantee(Fraction(1, 2), dphist.Unit()).describe()
        '0.5-differential privacy for one row, which may be added or removed'
    """

    budget: Budget
    unit: Unit
    delta: Fraction
    threshold: int

    def __init__(
        self, budget: Budget | Number, unit: Unit, delta: Fraction = Fraction(0), threshold: int = 0
    ) -> None:
        object.__setattr__(self, "budget", Budget.of(budget))
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "threshold", threshold)

    @property
    def epsilon(self) -> Fraction | None:
        """The pure ε that was promised; None where the promise is one of ρ."""
        return self.budget.amount if self.budget.pure else None

    def describe(self) -> str:
        """Say it in words.

        Returns:
            A phrase such as ``1-differential privacy for one row, which may be added or removed``.
        """
        said = f"{self.budget.describe()} for {self.unit.describe()}"
        if not self.delta:
            return said
        return (
            f"{said}; names are shown if their noisy count is {self.threshold:,} or more, and the chance of showing a "
            f"name that only one of them has is at most one in {float(1 / self.delta):,.0f}"
        )


@dataclass(frozen=True)
class Maker:
    """A mechanism in words.

    Args:
        name: As a command line has it, with the options that were given.
        chosen: The same with all that it chose; empty where it chose nothing.
        words: What it does, in plain words.
        reference: Who thought of it.
    """

    name: str
    chosen: str
    words: str
    reference: str

    @staticmethod
    def of(mechanism: Mechanism) -> Maker:
        """Say who a mechanism is."""
        # Loaded here: who reads a file is told by the file.
        from dphist.mechanisms.options import show
        from dphist.mechanisms.registry import reference_of

        name, filled = show(mechanism), show(mechanism, filled=True)
        first = " ".join((getdoc(type(mechanism)) or "").split("\n\n")[:2])
        words = " ".join(first.split()).replace("`", "")
        return Maker(name, "" if filled == name else filled, words, reference_of(mechanism))

    @staticmethod
    def read(told: Any) -> Maker:
        """Read what `told` wrote; that it is so is for `Release.verify`."""
        if not isinstance(told, dict) or any(type(told.get(name)) is not str for name in _NAMES):
            raise ReleaseError("who made it cannot be read")
        return Maker(**{name: told[name] for name in _NAMES})

    def told(self) -> dict[str, str]:
        """As the description holds it."""
        return asdict(self)


_NAMES = tuple(Maker.__dataclass_fields__)


@dataclass(frozen=True)
class Deferred:
    """A mechanism as a file describes it, which is made when somebody asks for it: to verify, or to run it again."""

    described: dict[str, Any]

    @cached_property
    def made(self) -> Mechanism:
        """The mechanism, or what stands for one that cannot be made here."""
        # Loaded here: who reads a file needs no mechanism.
        from dphist.mechanisms.options import from_json

        try:
            return from_json(self.described)
        except MechanismError as refused:
            return ForeignMechanism(self.described, str(refused))
        except _MISFITS:
            raise ReleaseError("its mechanism cannot be read") from None


class WhenAsked:
    """A field that may hold a `Deferred`, and never shows it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, holder: Any, kind: type) -> Any:
        """Make what was deferred, once."""
        if holder is None:
            raise AttributeError(self.name)
        value = holder.__dict__[self.name]
        return value.made if isinstance(value, Deferred) else value

    def __set__(self, holder: Any, value: Any) -> None:
        """Hold it as it is."""
        holder.__dict__[self.name] = value


def write_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism by name and options."""
    if isinstance(mechanism, ForeignMechanism):
        return mechanism.described
    from dphist.mechanisms.options import to_json

    return to_json(mechanism)


class ForeignMechanism:
    """Stands for a mechanism that cannot be made here: the release can be read, not replayed.

    It, or what it holds, is not in the list of mechanisms, or was told options that are not there; ``refusal`` says
    which.
    """

    def __init__(self, described: dict[str, Any], refusal: str) -> None:
        self.described = described
        self.refusal = refusal

    @property
    def words(self) -> str:
        """What is wrong with it."""
        return f"by {self.described['name']!r}, which cannot be made here: {self.refusal}"

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Refuse, and say what is missing."""
        raise self.refused

    @property
    def refused(self) -> MechanismError:
        """Why it cannot be replayed."""
        return MechanismError(
            f"this release was made {self.words}; it can be read and asked, but verification needs the mechanism "
            "as it was"
        )
