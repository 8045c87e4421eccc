"""What may be asked of private counts, and the promise every question makes.

One *step* is one cell changing by one: neighbouring data sets are one step apart, and a person who may own
several rows is several steps (the gate multiplies). Questions come in three kinds. A `Query` returns numbers
and promises how far one step can move them. A `Score` ranks candidates and promises how far one step can tilt
the ranking. `Costs` price the buckets of a partition and draw their own noise. The promises are all the gate
relies on, so every question carries its proof and is tested against every step.

Why an author cannot make the gate believe a false promise. A promise is a statement about a class *and* its
parameters. The class: the gate asks exact types marked `proven`, which only modules of `dphist.private` can be;
anything else, a subclass included, is refused before it is paid for (an audit may open a gate that does not ask; a
release cannot). The parameters: the gate asks a copy of the question that it made itself (`own_copy`), from plain
numbers and from arrays that nobody can write to, each of the kind that its annotation names (a fraction is no bar of
whole records), through the constructor, which checks their structure. So whatever
the author changes later, or had hidden in the object (a cached sensitivity, a method put over another), is not in the
copy; and what the transcript describes is what was asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cache, cached_property
from hashlib import blake2b
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import MechanismError
from dphist.kernels.grouping import group_order

if TYPE_CHECKING:
    from dphist.model.domain import Domain
    from dphist.model.workload import Workload

IntArray = NDArray[np.int64]
Question = TypeVar("Question")
# How the cells of one person add up in a question's answers: each has answers of its own; all with weights that are
# not negative; or anyhow.
Moves = Literal["disjoint", "nonnegative", "any"]

# The gate cuts counts at a public ceiling so that sums over any cells stay below this, whatever the data: overflow must
# never depend on a count.
LARGEST_SUM = 2**62

_PROVEN: set[type] = set()


def proven(question: type[Question]) -> type[Question]:
    """Mark a class whose promise is proved in its docstring and tested against every step.

    Only classes of `dphist.private` can be marked: a proof is reviewed with the gate, not with the mechanism.
    """
    if not question.__module__.startswith("dphist.private."):
        raise MechanismError("only questions of dphist.private can be marked as proven")
    _PROVEN.add(question)
    return question


def is_proven(question: object) -> bool:
    """Whether the gate may ask this: its exact type is marked, not a type above it."""
    return type(question) in _PROVEN


def own_array(values: ArrayLike) -> IntArray:
    """Give a copy of whole numbers that cannot be written to, or the array itself if it is such a copy.

    Its memory is a Python ``bytes``, so that the flag which forbids writing cannot be switched back.
    """
    array = np.asarray(values)
    memory: object = array.base
    if array.dtype == np.int64 and type(memory) is bytes and array.flags.c_contiguous:
        return array
    if array.size and array.dtype.kind not in "iub":
        raise MechanismError("a question's arrays must hold whole numbers")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise MechanismError("a question's arrays must hold 64-bit integers")
    # Made with its shape: a reshaped view would have another base.
    return np.ndarray(array.shape, dtype=np.int64, buffer=array.astype(np.int64).tobytes())


def seal(question: object, *arrays: str) -> None:
    """Replace the named fields of a frozen question by arrays of its own."""
    for name in arrays:
        object.__setattr__(question, name, own_array(getattr(question, name)))


def own_copy(question: Question) -> Question:
    """Make the gate's own copy of a question: its type's constructor on plain values and arrays of its own."""
    make: Callable[..., Question] = type(question)
    if not is_dataclass(make):
        raise MechanismError(
            f"{type(question).__name__}: a question must be a dataclass of public parameters"
        )
    owned = {each.name: _own(getattr(question, each.name)) for each in fields(make)}
    for name, kind in _kinds(make).items():
        if name in owned and not _is_of(owned[name], kind):
            raise MechanismError(
                f"{type(question).__name__}: {name} is not of the kind that its proof is about"
            )
    return type(question)(**owned)


@cache
def _kinds(question: type) -> dict[str, Any]:
    return get_type_hints(question)


def _is_of(value: object, kind: Any) -> bool:
    """Whether a copied value is what a parameter's annotation says: a whole number where one is meant, and so on."""
    # By our own name: what stands behind `NDArray[…]` is another thing in every version of NumPy.
    if kind == IntArray:
        return type(value) is np.ndarray
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Literal:
        return isinstance(value, str) and value in inner
    if outer in (Union, UnionType):
        return any(_is_of(value, each) for each in inner)
    if outer is tuple and isinstance(value, tuple):
        each = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return len(value) == len(each) and all(map(_is_of, value, each))
    if kind is Fraction:
        return isinstance(value, Fraction | int) and not isinstance(value, bool)
    return type(value) is (outer or kind)


def _own(value: object) -> Any:
    if isinstance(value, np.ndarray):
        return own_array(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Fraction):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, tuple | list):
        return tuple(_own(item) for item in value)
    raise MechanismError(f"a question cannot hold a {type(value).__name__}")


@dataclass(frozen=True, eq=False)
class Layout:
    """What a question may know before it sees a count: all of it public."""

    shape: tuple[int, ...]
    labels: IntArray | None = None
    parts: int = 1
    domain: Domain | None = None
    workload: Workload | None = None
    cells: IntArray | None = field(default=None, repr=False)

    @cached_property
    def size(self) -> int:
        """How many cells there are: a plain integer, however large."""
        return math.prod(self.shape)

    @property
    def part(self) -> IntArray:
        """The part of every cell."""
        return np.zeros(self.size, dtype=np.int64) if self.labels is None else self.labels

    @cached_property
    def _group(self) -> tuple[IntArray, IntArray]:
        if self.labels is None:
            return np.arange(self.size, dtype=np.int64), np.array([0, self.size], dtype=np.int64)
        return group_order(self.labels, self.parts)

    def group(self) -> tuple[IntArray, IntArray]:
        """Give the cells ordered by part (stable), and where each part starts and ends."""
        return self._group


@dataclass(frozen=True, eq=False)
class Scales:
    """Different noise for different answers: ``values[index[i]]`` is the scale of answer i.

    Every answer must have one: an index that pointed nowhere would leave its answer without noise.
    """

    values: tuple[Fraction, ...]
    index: NDArray[np.intp]

    def __post_init__(self) -> None:
        if not self.values or min(self.values) <= 0:
            raise MechanismError("scales must be above zero")
        if self.index.size and not 0 <= int(self.index.min()) <= int(self.index.max()) < len(self.values):
            raise MechanismError("scales: every answer needs the index of a scale")


class PricedNoise(Protocol):
    """Noise that knows the budget: a question states sizes for ε = 1 and ρ = 1/2 and cannot misstate the price."""

    def add(
        self, values: IntArray, scale: Fraction, variance: Fraction, out: IntArray | None = None
    ) -> IntArray:
        """Add noise in one pass: Laplace of that scale, or Gaussian of that variance, as the budget has it."""
        ...

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> IntArray:
        """Draw exact discrete Laplace noise of ``scale`` ÷ budget."""
        ...

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        """Add such noise to every value in one pass."""
        ...


class Query(Protocol):
    """A question answered by integers.

    The promise: one step moves the answers so that Σ |Δᵢ| ÷ scaleᵢ ≤ 1. Discrete Laplace noise of scaleᵢ ÷ ε on
    answer i then changes no outcome's probability by more than a factor e^ε, since
    Pr[Zᵢ = z] ∝ exp(−ε|z| ÷ scaleᵢ) and the exponents of one outcome differ by at most ε Σ |Δᵢ| ÷ scaleᵢ.

    A query may promise the L2 norm as well, by a method ``variances(layout)`` like `scales`: one step moves the answers
    so that Σ Δᵢ² ÷ varianceᵢ ≤ 1. Discrete Gaussian noise of varianceᵢ ÷ 2ρ then is ρ-zCDP for that step: for integers
    Δ moved under noise of parameter σ² the Rényi divergence of order α is at most αΔ²/2σ², and independent answers add
    up (Canonne, Kamath and Steinke, 2020). What several steps of one person cost depends on how their cells meet in the
    answers, which an attribute ``moves`` says ("any" if it is missing; `dphist.private.pricing` has the proof).

    The promises hold for cells of either sign, which sums are; a query whose proof needs counts, zero or more, has an
    attribute ``of_counts`` that is true, and the gate asks it of nothing else.
    """

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Compute the exact answers; never changes ``counts``."""
        ...

    def scales(self, layout: Layout) -> Fraction | Scales:
        """Give the noise scale of each answer at ε = 1."""
        ...


@runtime_checkable
class FusedQuery(Protocol):
    """A query that noises as it computes, for cubes that must not be held twice."""

    def perturb(self, counts: IntArray, layout: Layout, noise: PricedNoise) -> NDArray[Any]:
        """Return what `answer` plus noise of `scales` would, or a one-to-one function of it."""
        ...


@dataclass(frozen=True, eq=False)
class Candidates:
    """What may be chosen in each part, and how far one step can tilt the choice.

    ``scores[starts[p]:starts[p + 1]]`` are part p's candidates, higher is better, integers on a public lattice.
    The promise: ``ranges`` is at least the largest, over steps, of (largest change − smallest change) over the
    candidates of a part.
    """

    scores: IntArray
    starts: IntArray
    ranges: int | IntArray


class Score(Protocol):
    """A choice among candidates, or a chain of them where each depends on the ones before.

    Choosing i with probability ∝ exp(ε · scoreᵢ ÷ range) is ε-private: moving from one data set to its neighbour
    multiplies weight i by exp(ε · changeᵢ ÷ range) and the normaliser by something between the smallest and the
    largest such factor, so the ratio of probabilities is at most exp(ε · (max − min change) ÷ range) ≤ e^ε.
    """

    def draws(self, layout: Layout) -> int:
        """Say how many choices are made; each pays an equal share."""
        ...

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Yield candidates and receive the index chosen in each part, once per draw."""
        ...


class Costs(Protocol):
    """The price of every bucket of a partition, noised bucket by bucket."""

    def check(self, layout: Layout) -> Fraction:
        """Refuse, by public facts alone, what cannot be segmented; else give the largest noise scale at ε = 1."""
        ...

    def segment(self, counts: IntArray, layout: Layout, noise: PricedNoise) -> IntArray:
        """Return where the buckets of the least noisy cost start; only the partition may leave."""
        ...


def describe(question: object) -> dict[str, Any]:
    """Write a question down for the transcript: its name and public parameters, arrays by their digest."""
    described: dict[str, Any] = {"ask": type(question).__name__}
    if is_dataclass(question):
        for parameter in fields(question):
            described[parameter.name] = _plain(getattr(question, parameter.name))
    return described


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray):
        digest = blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return {"shape": list(value.shape), "dtype": str(value.dtype), "digest": digest}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return describe(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return type(value).__name__
