"""A gate for tests and benchmarks, with reproducible noise on request.

Releases made with a seed are marked as tests, and refuse to be saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dphist.arguments import explained
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts, open_gate
from dphist.private.noise import Keystream, Noise

if TYPE_CHECKING:
    from dphist.inference.estimate import Estimate
    from dphist.inference.tables.published import TableEstimate
    from dphist.mechanisms.protocol import Mechanism


def as_histogram(counts: ArrayLike | Histogram) -> Histogram:
    """Give bare counts plain integer axes named x0, x1 and so on."""
    if isinstance(counts, Histogram):
        return counts
    array = np.asarray(counts)
    return Histogram(Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(array.shape)]), array)


@explained
def open_counts(
    counts: ArrayLike | Histogram,
    epsilon: Number | Budget,
    *,
    seed: int | None = None,
    unit: Unit | None = None,
    workload: Workload | None = None,
    noise: Noise | None = None,
    unproven: bool = False,
) -> PrivateCounts:
    """Open a gate on counts; a seed makes its noise reproducible, which only a test may want.

    ``noise`` is used as given, such as a `RecordingNoise`. ``unproven`` also lets questions be asked that carry no
    proof, for tests of wrong ones.

    Args:
        counts: An array, or a histogram.
        epsilon: The right's budget: ε, or a `Budget`.
        seed: Makes the noise the same again; only a test may want that.
        unit: Who is protected.
        workload: What the mechanism may know will be asked.
        noise: A noise of your own.
        unproven: Whether questions without a proof are answered.

    Returns:
        The right (the *query handle* of the literature) on the counts.

    Example:
        >>> from dphist.private.queries.counting import Identity
        >>> open_counts([5, 0, 9], 1, seed=3).measure(Identity()).values.shape
        (3,)
    """
    if seed is not None:
        noise = Noise(Keystream.for_tests(seed))
    return open_gate(
        as_histogram(counts), epsilon, unit or Unit(), workload=workload, noise=noise, unproven=unproven
    )[0]


@explained
def run(
    mechanism: Mechanism,
    counts: ArrayLike | Histogram,
    epsilon: Number | Budget,
    *,
    seed: int | None = None,
    workload: Workload | None = None,
) -> Estimate | TableEstimate:
    """Run a mechanism once and return its estimate.

    Args:
        mechanism: What to run.
        counts: An array, or a histogram.
        epsilon: What it may spend: ε, or a `Budget`.
        seed: Makes the noise the same again.
        workload: What it may know will be asked.

    Returns:
        The estimate.

    Example:
        >>> from dphist.mechanisms import Laplace
        >>> run(Laplace(), [5, 0, 9], 1, seed=3).counts.shape
        (3,)
    """
    return mechanism.estimate(open_counts(counts, epsilon, seed=seed, workload=workload))
