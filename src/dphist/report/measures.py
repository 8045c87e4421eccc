"""What a page says of a release's measures: sum and mean of each, in words."""

from __future__ import annotations

from typing import Any

from dphist.model.workload import Workload
from dphist.release import Release
from dphist.release.cube.measures import means, sums


def measure_lines(release: Release, asked: Workload, confidence: float) -> list[dict[str, Any]]:
    """One line for each measure: what it is, and its sum and mean over the records of one question.

    Args:
        release: What is looked at.
        asked: One question.
        confidence: How sure each interval is.

    Returns:
        Plain values: ``name``, ``measure`` in words, ``sum`` and ``mean`` as people read them.
    """
    plain = [each.measure for each in release.sums if each.quantity.plain]
    return [
        {
            "name": measure.name,
            "measure": measure.describe(),
            "sum": str(sums(release, measure.name, asked, confidence)[0]),
            "mean": str(means(release, measure.name, asked, confidence)[0]),
        }
        for measure in plain
    ]
