"""A day of page views: keys that nobody declared, found and published, beside the plain GROUP BY of the same rows.

Pages are drawn by Zipf's law, so most keys are rare; readers view a few pages each. Each way goes from the Parquet
file to the result: the keys above the threshold with their noisy counts, or DuckDB's own counts of all keys. The
measure is *plain GROUP BY page*: what would be published if nobody had to be protected. Ways take turns, and each has
the least of its rounds.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dphist_bench.measuring import Line
from dphist_bench.timing import seconds

RHO, DELTA = "0.015", "1e-9"
_PAIRS = 30_000_000


def write_views(path: Path, rows: int, seed: int) -> None:
    """Write a file of page views: a text key and a reader."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(seed)  # noqa: TID251 -- data only
    block = 2_000_000
    schema = pa.schema([("page", pa.string()), ("reader", pa.int64())])
    with pq.ParquetWriter(path, schema) as file:
        for begin in range(0, rows, block):
            size = min(block, rows - begin)
            # Zipf's law over fifty million pages: the chance of the k-th is about 1/k, so log k is uniform.
            ranks = np.exp(random.random(size) * np.log(5e7)).astype(np.int64)
            pages = pa.array(ranks).cast(pa.string())
            readers = random.integers(0, max(1, rows // 8), size)
            file.write_table(pa.table([pages, pa.array(readers)], schema=schema))


def plain(path: str, by: str) -> int:
    """DuckDB's own GROUP BY, as an Arrow table."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        sql = f"SELECT {by}, count(*) AS n FROM '{path}' WHERE page IS NOT NULL GROUP BY {by}"  # noqa: S608 -- ours
        return len(connection.sql(sql).to_arrow_table())


def discovered(path: str, unit: str) -> int:
    """Publish the keys."""
    from dphist import Domain, Nominal, publish

    release = publish(
        path, Domain([Nominal("page", discover=True)]), rho=RHO, delta=DELTA, unit=unit, allow_dropped=1
    )
    return release.domain.size


def measure(
    *,
    quick: bool,
    rows: Annotated[int, "how many page views"] = 10_000_000,
    repeats: Annotated[int, "rounds after a first one; 0 takes the first"] = 3,
    seed: int = 1,
) -> Iterator[Line]:
    """Time each way."""
    if quick:
        rows, repeats = 100_000, 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "views.parquet"
        write_views(path, rows, seed)
        ways: list[tuple[str, Callable[..., int], tuple[str, ...]]] = [
            ("plain GROUP BY page", plain, (str(path), "page")),
            ("discovered, one view", discovered, (str(path), "row")),
            ("plain GROUP BY reader", plain, (str(path), "reader")),
            ("plain GROUP BY reader, page", plain, (str(path), "reader, page")),
            ("discovered, 10 pages a reader", discovered, (str(path), "cells=10, per_cell=1, id=reader")),
        ]
        if rows > _PAIRS:
            # As many groups as rows: the table that comes back would fill the memory.
            del ways[3]
        keys, spent = [0] * len(ways), [math.inf] * len(ways)
        for turn in range(repeats + 1):
            for place, (_, way, given) in enumerate(ways):

                def run(place: int = place, way: Callable[..., int] = way, given: Any = given) -> None:
                    keys[place] = way(*given)

                took = seconds(run)
                # The first round also loads and compiles what the others use.
                spent[place] = min(spent[place], took) if turn or not repeats else spent[place]
        for place, (name, _, _) in enumerate(ways):
            yield {
                "": name,
                "rows": rows,
                "keys or groups": keys[place],
                "CPU s": spent[place],
                "times GROUP BY page": spent[place] / spent[0],
                "times GROUP BY reader": spent[place] / spent[2],
            }
