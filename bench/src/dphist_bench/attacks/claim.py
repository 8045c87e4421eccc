"""Attack a claim in whichever currency it is made: ε, ρ, or (ε, δ)."""

from __future__ import annotations

from collections.abc import Callable

from dphist.arguments import explained
from dphist.audit.attack import Judged
from dphist.audit.neighbours import worst_pairs
from dphist.errors import InputError
from dphist.mechanisms.options import parse
from dphist.mechanisms.protocol import Mechanism
from dphist.model.exact import Number
from dphist_bench.attacks.approximate import audit_delta
from dphist_bench.attacks.attack import audit
from dphist_bench.attacks.concentrated import audit_rho


@explained
def audit_claim(
    mechanism: str | Mechanism,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    runs: int = 20_000,
    confidence: float = 0.999,
    progress: Callable[[str], None] | None = None,
) -> Judged:
    """Search for evidence that a mechanism loses more than it claims, in the currency of the claim.

    A claim of ε is attacked with Laplace noise (`audit`); one of ρ with Gaussian noise, by second moments of the
    likelihood ratio (`concentrated`); one of (ε, δ) with the noise of the ρ that it buys, by events that
    are likelier than e^ε times their chance on the other side and δ (`approximate`). A sound mechanism is
    refuted with probability at most 1 − confidence.

    Args:
        mechanism: What to attack, or its name.
        epsilon: The claim; 1 unless told, or ``rho`` is.
        rho: Or the claim in ρ.
        delta: With ``epsilon``: the δ of the claim. What happens once in a billion runs is not seen: try a hundredth.
        runs: How often to run it on each side, at most.
        confidence: How sure a refutation must be.
        progress: Told what is being done; under pure ε alone.

    Returns:
        The report of that attack.

    Raises:
        InputError: both ``rho`` and another claim were given.

    Example:
        >>> audit_claim("gaussian", rho="1/2", runs=60).passed
        True
    """
    attacked = parse(mechanism) if isinstance(mechanism, str) else mechanism
    # What measures tables of few attributes out of many has little to decide on a line.
    pairs = worst_pairs((2, 2, 2)) if hasattr(attacked, "estimate_tables") else None
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InputError("rho: attack one claim at a time: ρ, or ε with or without δ")
        return audit_rho(attacked, rho=rho, runs=runs, pairs=pairs, confidence=confidence)
    claim: Number = 1 if epsilon is None else epsilon
    if delta is not None:
        return audit_delta(
            attacked, epsilon=claim, delta=delta, runs=runs, pairs=pairs, confidence=confidence
        )
    return audit(attacked, epsilon=claim, runs=runs, pairs=pairs, confidence=confidence, progress=progress)
