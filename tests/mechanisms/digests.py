"""What seeded releases of every mechanism look like: their answers to the letter, their counts by a few sums.

``python tests/mechanisms/digests.py --write`` makes the file anew; do so only with a reason that stands in the change.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import dphist
from dphist.errors import DphistError
from dphist.mechanisms import MECHANISMS
from dphist.mechanisms.options import parse
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise

FILE = Path(__file__).with_name("digests.json")


def histograms() -> Iterator[tuple[str, dphist.Histogram]]:
    """Small cubes of several shapes, full and sparse, with and without a hierarchy."""

    def line(counts: Any) -> dphist.Histogram:
        array = np.asarray(counts, dtype=np.int64)
        axes = [dphist.Ordinal(f"x{i}", range(n)) for i, n in enumerate(array.shape)]
        return dphist.Histogram(dphist.Domain(axes), array)

    place = np.arange(256)
    yield "line of 256, a hump", line(np.rint(900 * np.exp(-(((place - 90) / 25.0) ** 2))))
    yield "line of 100, sparse", line((np.arange(100) % 17 == 3) * (np.arange(100) * 7 % 41))
    yield "line of 1", line([12])
    rows, columns = np.indices((24, 20))
    yield "plane of 24 × 20", line((rows * 31 + columns * 17) % 97 * (rows < 9))
    yield "cube of 6 × 5 × 4", line(np.arange(120).reshape(6, 5, 4) * 37 % 53)
    tree = {"north": ["a", "b", "c"], "south": {"coast": ["d", "e"], "hills": ["f"]}}
    domain = dphist.Domain([dphist.Nominal("place", tree)])
    yield "a hierarchy", dphist.Histogram(domain, np.array([40, 2, 0, 75, 31, 8]))


def digest(name: str, histogram: dphist.Histogram) -> dict[str, Any]:
    """Release once with a fixed seed and write down what came out."""
    noise = Noise(Keystream.for_tests(20))
    right, transcript = open_gate(histogram, "1/2", dphist.Unit(), noise=noise)
    try:
        counts = np.asarray(parse(name).estimate(right).counts, dtype=np.float64).reshape(-1)
    except DphistError as refusal:
        return {"refused": type(refusal).__name__}
    letters = blake2b(digest_size=12)
    for entry in transcript:
        letters.update(f"{entry.verb} {entry.epsilon} {entry.answer.shape}".encode())
        letters.update(np.ascontiguousarray(entry.answer, dtype=np.float64).tobytes())
    place = np.arange(1, counts.size + 1)
    sums = [float((counts * np.cos(place * wave)).sum()) for wave in (0.0, 0.37, 1.9)]
    return {"answers": letters.hexdigest(), "sums": [*sums, float((counts**2).sum())]}


def digests() -> dict[str, dict[str, Any]]:
    """All of them, by mechanism and shape."""
    shapes = dict(histograms())
    return {
        name: {shape: digest(name, histogram) for shape, histogram in shapes.items()}
        for name in sorted(MECHANISMS)
    }


def differs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two releases differ by more than rounding."""
    if one.get("answers") != other.get("answers") or one.get("refused") != other.get("refused"):
        return True
    pairs = zip(one.get("sums", ()), other.get("sums", ()), strict=True)
    return not all(math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-6) for a, b in pairs)


if __name__ == "__main__":
    made = digests()
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        kept = json.loads(FILE.read_text(encoding="utf-8"))
        for mechanism, found in made.items():
            for shape, release in found.items():
                if differs(release, kept.get(mechanism, {}).get(shape, {})):
                    sys.stdout.write(f"{mechanism}: {shape}\n")
