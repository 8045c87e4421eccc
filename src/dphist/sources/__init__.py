"""Records into a histogram: one GROUP BY, run by the engine that holds them.

`count` reads files, data frames and tables of SQLite's with DuckDB. What a row
means for an attribute is written once (``keys``), in a dozen words that every engine understands
(``sql``); so the same rows give the same counts everywhere, in any order, whatever the number of
threads. Rows that fall in no cell (beyond the bounds, between the integers, unlisted, NULL, NaN, infinite)
are dropped, or counted in the attribute's other cell.

    open        finds out what a source is         files/      CSV, JSON, Parquet
    keys        which cell a row has               frames      pandas, polars, Arrow
    people      which rows of a person are kept    duck/       counts both, on this machine
    count       rows into cells, or by keys        databases/  PostgreSQL, Spark, SQLite, and tables of Ibis's
    coded       rows into codes, for many columns  sql         what engines are told
    unmatched   rows without a cell, for a rehearsal
    draft       column names and types into a schema

Nothing here is private yet. Errors therefore speak of columns and types, never of values, and the words of
an engine's own errors, which may quote a record, are not passed on.
"""

from __future__ import annotations

from dphist.sources.count import count
from dphist.sources.draft import draft_schema

__all__ = ["count", "draft_schema"]
