"""Who asks a release from a file gets what its publisher would; counts are not worked out again for that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import dphist
from dphist.errors import VerificationError
from dphist.inference.estimate import Estimate
from dphist.mechanisms import AdaptiveTree
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.private.gate import PrivateCounts
from dphist.release import DenseCells, Release

DOMAINS = {
    "line": Domain([Ordinal("x", range(1000))]),
    "plane": Domain([Ordinal("x", range(30)), Ordinal("y", range(20))]),
}


def _published(name: str, mechanism: str = "auto") -> Release:
    domain = DOMAINS[name]
    place = np.arange(domain.size) / domain.size
    counts = np.floor(40 * np.exp(-((place - 0.4) ** 2) * 30)).astype(np.int64)
    return dphist.publish(
        Histogram(domain, counts.reshape(domain.shape)), epsilon=1, mechanism=mechanism, unattended=True
    )


@pytest.mark.parametrize("name", list(DOMAINS))
def test_verify_believes_no_counts(name: str) -> None:
    """Also after an answer that took the counts as they are."""
    forged = _forged(_published(name, "posterior"))
    forged.answer("x between 5 and 9")
    with pytest.raises(VerificationError):
        forged.verify()


def _forged(release: Release) -> Release:
    changed = release.counts.copy()
    changed.flat[7] += 1.0
    return Release(
        *(release.domain, DenseCells(changed), release.guarantee, release.mechanism, release.transcript),
        note=release.note,
    )


@dataclass(frozen=True, kw_only=True)
class Doubled:
    """Somebody else's mechanism, which changes what ours made of its right."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Twice as many."""
        found = AdaptiveTree().estimate(data)
        return replace(found, counts=2.0 * found.counts)


def test_whoever_changes_what_another_made_is_asked_from_the_beginning(tmp_path: Path) -> None:
    domain = DOMAINS["plane"]
    counts = np.arange(domain.size).reshape(domain.shape) % 7
    release = dphist.publish(Histogram(domain, counts), epsilon=1, mechanism=Doubled(), unattended=True)
    assert np.array_equal(release._estimate.counts, release._replay().counts)
