"""Who asks a release from a file gets what its publisher would; counts are not worked out again for that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dphist
from dphist.errors import VerificationError
from dphist.inference.estimate import Estimate
from dphist.inference.predictive.law import Law
from dphist.kernels.predictive.inside import shared_alone, shared_inside
from dphist.mechanisms import AdaptiveTree, adaptivetree
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
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


@pytest.mark.parametrize(
    ("name", "mechanism"), [("line", "auto"), ("line", "adaptivetree"), ("plane", "adaptivetree")]
)
def test_same_answers(name: str, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and intervals are those of a full replay, for single cells and for ranges, polished or not."""
    release = _published(name, mechanism)
    release.save(tmp_path / "a.parquet")
    asked = Workload.random(release.domain, 40, seed=1)
    for given in (release, release.polished(nonnegative=True)):
        given.save(tmp_path / "a.parquet")
        read = dphist.load(tmp_path / "a.parquet")
        whole = dphist.load(tmp_path / "a.parquet")
        whole.verify()
        for questions in (asked, Workload.cells(release.domain)):
            one, two = read.answer(questions), whole.answer(questions)
            assert np.array_equal(one.value, two.value)
            assert np.array_equal(one.low, two.low)
            assert np.array_equal(one.high, two.high)
        assert read._estimate.note == whole._estimate.note


def test_counts_are_not_worked_out_to_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line's tree makes of its totals stands in the file; `verify` works it out."""
    _published("line").save(tmp_path / "a.parquet")
    read = dphist.load(tmp_path / "a.parquet")
    worked: list[int] = []
    averaged = adaptivetree.averaged

    def noted(counts: NDArray[np.float64], law: Law) -> NDArray[np.float64]:
        worked.append(1)
        return averaged(counts, law)

    monkeypatch.setattr(adaptivetree, "averaged", noted)
    read.answer("x between 5 and 9")
    assert not worked
    read.verify()
    assert worked


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


def test_one_cell_stands_for_a_leaf() -> None:
    """Leaves whose sides are powers of two hold what `shared_inside` says alike for all their cells, bit for bit."""
    low = np.array([[0, 0], [0, 8], [4, 0], [4, 8], [10, 0]], dtype=np.int32)
    high = np.array([[4, 8], [4, 12], [10, 8], [5, 9], [26, 1]], dtype=np.int32)
    mean, variance = np.array([9.0, 3.3, 7.7, 2.0, 31.0]), np.array([2.0, 1.7, 0.3, 1.0, 5.0])
    leaf, cells = [], []
    for number in (2, 0, 4, 1, 3):
        sides = [np.arange(a, b) for a, b in zip(low[number], high[number], strict=True)]
        here = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
        cells.append(here)
        leaf.append(np.full(len(here), number))
    at, place = np.concatenate(leaf), np.concatenate(cells).astype(np.int64)
    uneven = np.linspace(0.1, 0.9, 12)
    box = place, place + 1
    every = shared_inside(at, low, high, *box, *box, mean, variance, uneven)
    alone = shared_alone(at, low, high, *box, mean, variance, uneven)
    assert np.array_equal(alone.view(np.int64), every.view(np.int64))


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
