"""diffprivlib by its own histograms: `tools.histogram` for one attribute, `tools.histogramdd` for several."""

from __future__ import annotations

from typing import Any

tools: Any = None


def load() -> str:
    """Import diffprivlib and what reads the records."""
    global tools
    import diffprivlib
    import diffprivlib.tools
    import numpy
    import polars

    tools = diffprivlib.tools
    return f"diffprivlib {diffprivlib.__version__}, polars {polars.__version__}, numpy {numpy.__version__}"


def publish(records: str, sizes: list[int], epsilon: str, out: str) -> None:
    """Let the histogram count and add noise in one call; bins and ranges are public, as it asks."""
    import numpy as np
    import polars as pl

    frame = pl.read_parquet(records)
    columns = [frame[f"a{axis}"].to_numpy() for axis in range(len(sizes))]
    ranges = [(0, size) for size in sizes]
    if len(sizes) == 1:
        counts, _ = tools.histogram(columns[0], epsilon=float(epsilon), bins=sizes[0], range=ranges[0])
    else:
        counts, _ = tools.histogramdd(np.stack(columns, 1), epsilon=float(epsilon), bins=sizes, range=ranges)
    np.save(out, np.asarray(counts).reshape(-1))
