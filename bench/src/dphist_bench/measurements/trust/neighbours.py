"""Neighbours as tables: one person more, of any content, through every source, counted and compared.

For each pair the distance of the two histograms must not exceed the rows that the unit promises. A source may refuse
the larger table (that is told to whoever holds the data, see the threat model); such pairs are listed apart.
One pair in a hundred is compared by itself; the others share tables, many to a count (see `dphist_bench.records.towns`
for why that is sound). ``--postgres`` and ``--spark`` take some of the pairs to those engines, which are slower.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from dphist.errors import DphistError, InputError
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources import open as opening
from dphist_bench.records import sources
from dphist_bench.records.doors import DOORS
from dphist_bench.records.people import DOMAIN, Table, crowd, stranger
from dphist_bench.records.tally import Tally
from dphist_bench.records.towns import compare_towns

UNITS = (
    Unit(rows=1, id="user"),
    Unit(rows=3, id="user"),
    Unit(id="user", cells=2, per_cell=1),
    Unit(id="user", cells=2, per_cell=2),
)


@contextmanager
def one_connection() -> Iterator[None]:
    """Let the sources of a campaign share one DuckDB: to open one takes longer than to count a small table."""
    shared, fresh = opening.connect(), opening.connect
    opening.connect = lambda path=":memory:": shared if path == ":memory:" else fresh(path)
    try:
        yield
    finally:
        opening.connect = fresh
        shared.close()


def campaign(
    put: sources.Put, pairs: int, seed: int, size: int = 20, chain: int = 12, seconds: float = math.inf
) -> Tally:
    """Compare some pairs through one source.

    A crowd is joined by one stranger after the other; each table and the one before it are neighbours. A stranger
    with whom the table is refused stays away from the next.

    Args:
        put: turns a table into a source.
        pairs: how many pairs to compare or see refused.
        seed: where to begin.
        size: how many people the crowd has, of four rows each.
        chain: how many strangers join a crowd.
        seconds: when to stop earlier.

    Returns:
        How many pairs were tried, how many refused, and the largest distance over what was promised.
    """
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    found, begun = Tally(), time.perf_counter()
    while (
        found.pairs < pairs and found.impossible < 20 * pairs + 100 and time.perf_counter() - begun < seconds
    ):
        unit = UNITS[int(draw.integers(0, len(UNITS)))]
        text = bool(draw.random() < 0.4)
        rows = crowd(draw, size, 4, text=text, large=not text and bool(draw.random() < 0.1))
        table = Table(rows, (), rows)
        before = count(put(table), DOMAIN, unit).counts
        if not before.any():
            raise InputError("the crowd is not counted, so nothing would be compared")
        for number in range(min(chain, pairs - found.pairs)):
            larger = table.joined_by(stranger(draw, number, text=text), draw)
            try:
                source = put(larger)
            except (sources.UnrepresentableError, TypeError, ValueError, OverflowError):
                found.impossible += 1
                continue
            found.pairs += 1
            try:
                after = count(source, DOMAIN, unit).counts
            except DphistError:
                found.refused += 1
                continue
            found.worst = max(found.worst, int(np.abs(after - before).sum()) / unit.steps)
            table, before = larger, after
    found.seconds = time.perf_counter() - begun
    return found


def main(argv: list[str]) -> int:
    """Print what came of the pairs, source by source; fail if one was beyond its promise."""
    parser = argparse.ArgumentParser(prog="dphist bench run neighbours", description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000, help="pairs in total")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a source by its name; several times for several")
    parser.add_argument("--postgres", metavar="URL", help="a database to put tables in")
    parser.add_argument("--spark", type=int, default=0, metavar="PAIRS", help="pairs through Spark")
    parser.add_argument("--seconds", type=float, default=math.inf, help="seconds a source at most")
    parser.add_argument("--towns", type=int, default=64, help="towns that share a table")
    parser.add_argument(
        "--door", action="append", choices=[door.name for door in DOORS], help="what is made of the records"
    )
    parser.add_argument("--quick", action="store_true", help="twenty pairs a source")
    options = parser.parse_args(argv)
    failed = False
    sys.stdout.write(
        f"{'source':18}{'pairs':>9}{'compared':>10}{'refused':>9}{'worst / promised':>18}{'s':>8}\n"
    )
    total, passed = 0, dict[str, tuple[int, float]]()
    doors = [door for door in DOORS if not options.door or door.name in options.door]
    with ExitStack() as stack:
        stack.enter_context(one_connection())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        every: dict[str, sources.Put] = {
            "pandas": sources.pandas_frame,
            "pandas concat": sources.pandas_joined,
            "polars": sources.polars_frame,
            "arrow": sources.arrow_table,
            "ibis memtable": sources.memtable,
            "ibis polars": sources.polars_table,
            "ibis expressions": sources.expressions(folder),
            "csv": sources.csv_lines(folder),
            "json": sources.json_lines(folder),
            "parquet": sources.parquet_files(folder),
            "duckdb": sources.duckdb_tables(),
            "sqlite": sources.sqlite_tables(),
        }
        if options.postgres:
            every["postgres"] = stack.enter_context(sources.postgres_tables(options.postgres))
        shares = dict.fromkeys(
            every, 20 if options.quick else -(-max(0, options.pairs - options.spark) // len(every))
        )
        if options.spark:
            from dphist.sources.databases.spark import local_session

            session = local_session("local[2]", spark_sql_shuffle_partitions="2")
            stack.callback(session.stop)
            every["spark"], shares["spark"] = sources.spark_frames(session), options.spark
        for place, (name, put) in enumerate(every.items()):
            if options.only and name not in options.only:
                continue
            seed, alone = options.seed * 1000 + place, -(-shares[name] // 100)
            found = campaign(put, alone, seed, seconds=options.seconds / 10)
            rest = max(0, shares[name] - found.pairs)
            towns = {"towns": options.towns, "seconds": options.seconds, "doors": doors}
            found.add(compare_towns(put, rest, seed, UNITS, **towns))
            total += found.pairs
            failed |= found.worst > 1 or not found.compared
            sys.stdout.write(
                f"{name:18}{found.pairs:9,}{found.compared:10,}{found.refused:9,}{found.worst:18.2f}{found.seconds:8.0f}\n"
            )
            sys.stdout.flush()
            for door, (pairs, worst) in found.doors.items():
                known, largest = passed.get(door, (0, 0.0))
                passed[door] = known + pairs, max(largest, worst)
    for door, (pairs, worst) in passed.items():
        sys.stdout.write(f"through {door:10}{pairs:19,}{worst:27.2f}\n")
    sys.stdout.write(
        f"\n{total:,} pairs; {'SOME BEYOND THEIR PROMISE' if failed else 'none beyond its promise'}\n"
    )
    return 1 if failed else 0
