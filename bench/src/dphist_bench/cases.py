"""What a reading is of: how an experiment is run, one point of it, and one number of one trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Setting:
    """How an experiment is run: small (seconds) or as the paper did, and where real files may be."""

    quick: bool = False
    files: Path | None = None


@dataclass(frozen=True, order=True)
class Case:
    """One point of an experiment: a method on a data set at an ε, and one more number if need be."""

    data: str
    method: str
    epsilon: str = ""
    x: float | None = None


@dataclass(frozen=True)
class Reading:
    """One number of one trial; ``x`` is where on the horizontal axis it belongs, if it has such a place."""

    measure: str
    value: float
    x: float | None = None
