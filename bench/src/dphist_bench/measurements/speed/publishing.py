"""What `auto` takes on a warm process: lines, hills, planes, and ten million cells from counts to a verified file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.publishing.door import publish
from dphist.release import load
from dphist_bench.data import IntArray, sample
from dphist_bench.data.planes import smooth_hills
from dphist_bench.measuring import Line
from dphist_bench.timing import least, seconds


def measure(*, quick: bool, repeats: int = 4, large: bool = True) -> Iterator[Line]:
    """Give the least CPU seconds of a few releases, kernels compiled and public tables made before."""
    sides = (64, 16) if quick else (4096, 65536)
    for cells in sides:
        uneven = np.random.default_rng(cells).dirichlet(np.full(cells, 0.3))  # noqa: TID251 -- data only
        for records in (10**3, 10**5, 10**7):
            counts = sample(uneven, records, 1)
            for told in (True, False):
                what = f"a line of {cells:,} cells, {'announced' if told else 'nothing announced'}"
                yield {"what": what, "records": records, "CPU s": _taken(counts, repeats, told=told)}
    for side, numbers in ((16, 1),) if quick else ((64, 5), (256, 2)):
        for records in (10**2, 10**3, 10**4, 10**6):
            each = [
                _taken(sample(smooth_hills((side, side), number), records, 1), repeats)
                for number in range(numbers)
            ]
            what = f"{side} × {side} cells of hills, nothing announced"
            yield {"what": what, "records": records, "CPU s": float(np.median(each)), "at most": max(each)}
    if large:
        yield from _large((8, 8, 8) if quick else (200, 250, 200))


def _histogram(counts: IntArray) -> Histogram:
    return Histogram(Domain([Ordinal(f"a{axis}", range(n)) for axis, n in enumerate(counts.shape)]), counts)


def _taken(counts: IntArray, repeats: int, *, told: bool = False) -> float:
    histogram = _histogram(counts)
    workload = Workload.cells(histogram.domain) if told else None
    return least(
        lambda: publish(histogram, epsilon=1, workload=workload, unattended=True).counts, 1 + repeats
    )


def _large(shape: tuple[int, ...]) -> Iterator[Line]:
    """A cube with records about the middle: published, saved, loaded and verified."""
    draw, records = np.random.default_rng(0), 10**6  # noqa: TID251 -- data only
    places = [np.clip((draw.normal(0.5, 0.15, records) * side).astype(int), 0, side - 1) for side in shape]
    counts = np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape))).reshape(shape)
    histogram = _histogram(counts)
    title = " × ".join(map(str, shape))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.parquet"
        for turn in range(2):
            publishing = seconds(lambda: publish(histogram, epsilon=1, unattended=True).counts)
            release = publish(histogram, epsilon=1, unattended=True)
            saving = seconds(partial(release.save, path))
            verifying = seconds(lambda: load(path).verify())
            if turn:
                yield {"what": f"{title} cells, published", "records": records, "CPU s": publishing}
                yield {"what": f"{title} cells, saved", "records": records, "CPU s": saving}
                yield {"what": f"{title} cells, loaded and verified", "records": records, "CPU s": verifying}
