"""A sparse release as a Parquet file: a row per published cell."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dphist.release.cells import SparseCells
from dphist.release.columns import number_names
from dphist.release.contents import Contents
from dphist.release.file.description import FORMAT, write_guarantee


def laid_out(
    release: Contents, cells: SparseCells, confidence: float
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a sparse release, and its column of numbers."""
    names = number_names(release.domain, "cell")
    (entry,) = release.transcript
    description = {
        "format": FORMAT,
        "form": "sparse",
        "domain": release.domain.to_json(),
        "shape": list(release.domain.shape),
        "guarantee": write_guarantee(release.guarantee),
        "mechanism": release._described,
        "maker": release.maker.told(),
        "scale": str(cells.scale),
        "threshold": cells.threshold,
        "receipt": release.receipt,
        "columns": names,
        "entry": {
            "path": entry.path,
            "verb": entry.verb,
            "question": entry.question,
            release.budget.currency: str(entry.cost),
        },
        "about": release.about.given(),
        "confidence": confidence,
        "bounds": {"low": names["low"], "high": names["high"]},
    }
    return description, {names["estimate"]: cells.values}
