"""A mechanism that writes down what reaches the sampler behind its gate, wherever that gate was opened."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.private.noise import Noise
from dphist.private.queries import Identity


class Spy(Noise):
    """Draws as usual, and notes the exact scale and the counts that it was handed."""

    def __init__(self, keystream: Any, path: str) -> None:
        super().__init__(keystream)
        self._path = path

    def add_laplace(self, values: Any, scale: Fraction, out: Any = None) -> Any:
        note(self._path, scale, values)
        return super().add_laplace(values, scale, out)


def note(path: str, scale: Fraction, values: Any) -> None:
    """Append a line; one write, so that processes do not mix theirs."""
    line = json.dumps({"scale": str(scale), "values": values.reshape(-1).tolist(), "process": os.getpid()})
    with open(path, "ab", buffering=0) as file:  # noqa: PTH123 -- unbuffered
        file.write(line.encode() + b"\n")


def notes(path: Path) -> list[dict[str, Any]]:
    """Read them back."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Noises every cell, like `laplace`, under observation."""

    path: str

    def estimate(self, data: Any) -> Estimate:
        if data._noise is not None:  # a replay has none
            data._noise = Spy(data._noise.keystream, self.path)
        noisy = data.measure(Identity())
        return Estimate(noisy.values.astype(float), IndependentNoise(noisy.scale))
