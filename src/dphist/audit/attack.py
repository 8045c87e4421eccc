"""Attack one mechanism's claim from outside, by what it publishes.

Whatever the event A, a claim of (ε, δ) says P(A) ≤ e^ε · P′(A) + δ for the chances on two neighbours. Half of the runs
are learned from: what numbers look like on either side, and then which event is likeliest on one of them. The other
half is counted, and Chernoff's bound in its form of relative entropy holds for any event that was fixed before: so
ln((P(A) − δ) ÷ P′(A)) is above what is reported as often as the confidence says, however badly was learned.

The attack knows neither the program nor its laws, and sees no leak that shows in no single number, such as noise that
was drawn twice. dphist-bench has attacks that know both neighbours and every law that is claimed, and reach further.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.errors import InputError
from dphist.mechanisms.options import parse, show
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.exact import Number, exact, positive
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import open_gate

FloatArray = NDArray[np.float64]
# Which questions were asked, and how many numbers came back; and the numbers.
Run = tuple[tuple[tuple[str, int], ...], FloatArray]

# Of fewer runs there is no half to learn from.
_LEAST = 4
_BINS = 32
_THRESHOLDS = 96


class Judged(ABC):
    """What every report says, whatever the currency of its claim."""

    mechanism: str
    confidence: float
    runs: int
    pair: str
    attacked: bool

    @property
    @abstractmethod
    def figures(self) -> tuple[str, float, float]:
        """The symbol of the currency, the claim, and what is lost at least."""

    @property
    def passed(self) -> bool:
        """Whether the claim stands: no evidence that the loss is larger than claimed."""
        _, claim, lower = self.figures
        return lower <= claim

    def to_json(self) -> dict[str, Any]:
        """Give plain values.

        Returns:
            A mapping of plain values.
        """
        return {**self.__dict__, "passed": self.passed}

    def __str__(self) -> str:
        symbol, claim, lower = self.figures
        verdict = "claim stands" if self.passed else "CLAIM REFUTED"
        if not self.attacked:
            verdict = "NOT ATTACKED: too few runs to refute anything"
        return (
            f"{self.mechanism}: {verdict}. Claimed {symbol} = {claim:g}; the attack shows {symbol} ≥ {lower:.3f} with "
            f"{self.confidence:.2%} confidence ({self.runs:,} runs a side, strongest on: {self.pair})"
        )


@dataclass(frozen=True)
class Report(Judged):
    """What the attack found: with the stated confidence, the true ε (at this δ) is at least ``epsilon_lower``.

    Args:
        mechanism: What was attacked.
        epsilon: What it claims.
        epsilon_lower: What it loses at least.
        confidence: How sure that is.
        runs: Runs a side.
        pair: The neighbours on which it showed most.
        delta: The δ of the claim; 0 for pure ε.
        attacked: Whether this number of runs could have refuted the claim at all.

    Example:
        >>> Report("mine", 1.0, 1.7, 0.999, 500, "one record more").passed
        False
    """

    mechanism: str
    epsilon: float
    epsilon_lower: float
    confidence: float
    runs: int
    pair: str
    delta: float = 0.0
    attacked: bool = True

    @property
    def figures(self) -> tuple[str, float, float]:
        """ε, the claim, and what is lost at least."""
        return f"ε at δ = {self.delta:g}" if self.delta else "ε", self.epsilon, self.epsilon_lower


def alpha_per_attack(confidence: float, attacks: int) -> float:
    """The error probability that each of several attacks may have (Bonferroni).

    Without doubt nothing is ever refuted, and an attack that is not made refutes nothing: both would look like a pass.
    """
    if not 0 < confidence < 1:
        raise InputError(
            "confidence must lie between 0 and 1, such as 0.999: of what is certain nobody is convinced"
        )
    if not attacks:
        raise InputError("pairs must hold at least one pair of neighbours")
    return (1 - confidence) / attacks


@explained
def audit(
    mechanism: str | Mechanism,
    *,
    epsilon: Number = 1,
    delta: Number = 0,
    runs: int = 20_000,
    pairs: Sequence[Pair] | None = None,
    confidence: float = 0.999,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Search for evidence that a mechanism loses more than it claims.

    Everything that is published is looked at: the questions asked, their answers, and the estimated counts. A sound
    mechanism is refuted with probability at most 1 − confidence.

    Args:
        mechanism: What to attack, or its name.
        epsilon: The claim.
        delta: With it, a claim of (ε, δ), with the noise of the ρ that it buys. What happens once in a billion runs is
            not seen: try a hundredth.
        runs: How often to run it on each side; half of them are learned from.
        pairs: Neighbours; the worst we know by default.
        confidence: How sure a refutation must be.
        progress: Is told what is being done.

    Returns:
        The largest lower bound on ε that was found, and whether the claim stands.

    Example:
        >>> audit("laplace", epsilon=1, runs=60).passed
        True
    """
    attacked = parse(mechanism) if isinstance(mechanism, str) else mechanism
    claim, hidden = positive(epsilon, "epsilon"), exact(delta, "delta")
    budget = Budget.of(claim, delta=hidden) if hidden else Budget.of(claim)
    # What measures tables of few attributes out of many has little to decide on a line.
    shape = (2, 2, 2) if hasattr(attacked, "estimate_tables") else (8,)
    chosen = list(worst_pairs(shape) if pairs is None else pairs)
    alpha = alpha_per_attack(confidence, len(chosen))
    best, where = -np.inf, ""
    for each in chosen:
        if progress is not None:
            progress(f"{show(attacked)}: {each.name}")
        one, other = (_runs(attacked, counts, budget, runs) for counts in (each.one, each.other))
        bound = _bound(one, other, float(hidden), alpha)
        if bound > best:
            best, where = bound, each.name
    counted = runs - runs // 2
    most = _log_ratio(counted, 0, counted, float(hidden), alpha) if runs >= _LEAST else -np.inf
    return Report(
        show(attacked), float(claim), best, confidence, runs, where, float(hidden), most > float(claim)
    )


def _runs(mechanism: Mechanism, counts: Histogram, budget: Budget, runs: int) -> list[Run]:
    """Everything that many runs on one side would publish."""
    found = []
    for _ in range(runs):
        # What may be wrong is what an audit is for: here questions need no proof.
        right, transcript = open_gate(counts, budget, Unit(), unproven=True)
        estimate = mechanism.estimate(right)
        answers = [np.asarray(entry.answer, dtype=np.float64).reshape(-1) for entry in transcript]
        asked = tuple((entry.verb, each.size) for entry, each in zip(transcript, answers, strict=True))
        found.append((asked, np.concatenate([*answers, estimate.counts.reshape(-1)])))
    return found


def _bound(one: list[Run], other: list[Run], delta: float, alpha: float) -> float:
    """Bound ε from below, wrongly with probability at most ``alpha``: learn, fix an event, count it on fresh runs."""
    if len(one) < _LEAST:
        return 0.0
    quarter, half = len(one) // 4, len(one) // 2
    score = _learn(one[:quarter], other[:quarter])
    parts = slice(quarter, half), slice(half, None)
    past, now = ([score(side[part]) for side in (one, other)] for part in parts)
    best, event = -np.inf, (0, 0.0)
    for side, sign in enumerate((1.0, -1.0)):
        likely, rare = sign * past[side], sign * past[1 - side]
        for threshold in np.unique(np.quantile(np.append(likely, rare), np.linspace(0, 1, _THRESHOLDS)))[1:]:
            seen = int((likely >= threshold).sum()), int((rare >= threshold).sum())
            bound = _log_ratio(*seen, likely.size, delta, alpha)
            if bound > best:
                best, event = bound, (side, threshold)
    side, threshold = event
    sign = 1.0 - 2.0 * side
    often, seldom = (int((sign * each >= threshold).sum()) for each in (now[side], now[1 - side]))
    return max(0.0, _log_ratio(often, seldom, now[0].size, delta, alpha))


def _log_ratio(often: int, seldom: int, runs: int, delta: float, alpha: float) -> float:
    """A lower bound of ln((P − δ) ÷ P′), from how often an event came on either side."""
    least, most = _chernoff(often, runs, alpha / 2, -1), _chernoff(seldom, runs, alpha / 2, 1)
    return float(np.log((least - delta) / most)) if least > delta else -np.inf


def _chernoff(seen: int, runs: int, alpha: float, sign: int) -> float:
    """The chance that is as far from what was seen as its relative entropy allows: n · KL(seen, chance) = −ln α."""
    share = seen / runs if runs else 0.0
    near, far = share, (0.0, 1.0)[sign > 0]

    def entropy(probability: float) -> float:
        terms = ((share, probability), (1 - share, 1 - probability))
        return sum(p * float(np.log(p / q)) if q else np.inf for p, q in terms if p)

    for _ in range(60):
        middle = (near + far) / 2
        near, far = (near, middle) if runs * entropy(middle) > -np.log(alpha) else (middle, far)
    return far


def _learn(one: list[Run], other: list[Run]) -> Callable[[list[Run]], FloatArray]:
    """Learn a score that grows with how much likelier a run is on the first side.

    Independent noise makes the log-likelihood ratio a sum over the published numbers; each term is read off two
    histograms, and numbers that tell nothing are left out, so that their sampling error does not drown the rest.
    """
    past: dict[Any, tuple[list[FloatArray], list[FloatArray]]] = defaultdict(lambda: ([], []))
    for side, runs in enumerate((one, other)):
        for asked, numbers in runs:
            past[asked, numbers.size][side].append(numbers)
    models = {}
    for key, (first, second) in past.items():
        terms = []
        if min(len(first), len(second)) >= _BINS:
            columns = zip(np.array(first).T, np.array(second).T, strict=True)
            terms = [(i, *found) for i, (a, b) in enumerate(columns) if (found := term(a, b)) is not None]
        models[key] = float(np.log((len(first) + 1) / (len(second) + 1))), terms

    def statistic(run: Run) -> float:
        asked, numbers = run
        # Questions that were never asked in training tell nothing.
        prior, terms = models.get((asked, numbers.size), (0.0, []))
        return prior + sum(
            float(ratio[np.searchsorted(edges, numbers[i], side="right")]) for i, edges, ratio in terms
        )

    # Equal scores must stay equal, whatever the order of their sums.
    return lambda runs: np.round(np.array([statistic(run) for run in runs]), 9)


def term(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """How telling a number is, by bins of it: their edges and log-ratios; None where chance explains them."""
    values = np.concatenate([first, second])
    distinct = np.unique(values)
    edges = (distinct[1:] + distinct[:-1]) / 2
    if distinct.size > _BINS:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1], method="nearest"))
    a, b = (
        np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
        for side in (first, second)
    )
    kept = a + b > 0
    expected = (a + b)[kept] * (a.sum() / (a + b).sum())
    chi = float(((a[kept] - expected) ** 2 / (expected * (1 - a.sum() / (a + b).sum()))).sum())
    freedom = max(1, int(kept.sum()) - 1)
    if chi <= freedom + 3 * np.sqrt(2 * freedom):
        return None
    return edges, np.log((a + 1) / (b + 1) * ((b.sum() + 1) / (a.sum() + 1)))
