"""A gate on an empty data set: what a mechanism would measure, and with which noise, before anybody pays.

Nothing private can come out: there are no counts behind it, and its noise is drawn from a public seed.
"""

from __future__ import annotations

import numpy as np

from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts, open_gate
from dphist.private.noise import Keystream, Noise


def open_empty(domain: Domain, budget: Budget, unit: Unit, workload: Workload | None) -> PrivateCounts:
    """Open a gate on a domain without records."""
    empty = Histogram(domain, np.zeros(domain.shape, dtype=np.int64))
    return open_gate(empty, budget, unit, workload=workload, noise=Noise(Keystream.for_tests(0)))[0]
