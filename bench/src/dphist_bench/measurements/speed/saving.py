"""What the error bars in a release's file cost: an interval for every cell, saved, read and verified."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.publishing.door import publish
from dphist.release import load
from dphist_bench.measuring import Line

_MECHANISMS = ("laplace", "tree", "privelet", "marginals", "adaptivetree", "posterior", "auto")


def measure(*, quick: bool, cells: int = 1_000_000) -> Iterator[Line]:
    """Give a row a mechanism, on a line and on a plane of so many cells; the first save has compiled the kernels."""
    for axes in (1, 2):
        side = round((2_500 if quick else cells) ** (1 / axes))
        domain = Domain([Ordinal(f"a{axis}", range(side)) for axis in range(axes)])
        counts = (np.arange(domain.size) * 2654435761 % 7).reshape(domain.shape)
        for mechanism in _MECHANISMS[:2] if quick else _MECHANISMS:
            release = publish(Histogram(domain, counts), epsilon=1, mechanism=mechanism, unattended=True)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "out.parquet"
                release.save(path)
                began = time.process_time()
                release.save(path)
                saved = time.process_time()
                release.cells.bounds(release, 0, domain.size, 0.95)
                bounded = time.process_time()
                load(path)
                loaded = time.process_time()
                size = path.stat().st_size
            yield {
                "mechanism": mechanism,
                "cells": domain.size,
                "axes": axes,
                "save, CPU s": saved - began,
                "of it bounds, CPU s": bounded - saved,
                "load, CPU s": loaded - bounded,
                "file, MB": size / 1e6,
            }
