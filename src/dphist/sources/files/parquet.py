"""Parquet files that do not agree on a type, read each by its own."""

# ruff: noqa: S608 -- SQL is what this file writes; names go through quote() and paths through literal()

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from dphist.errors import SourceError
from dphist.sources.sql.words import literal, microseconds, quote

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FLOATS = ("FLOAT", "DOUBLE")
# What a decimal of DuckDB's can have.
_DIGITS = 38
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")


def parquet_files(connection: Any, source: str, needed: Sequence[str] | None) -> tuple[str, set[str]]:
    """How to read Parquet files: a needed column's type is that of its own file, not that of the first.

    And which columns stand in the names of folders (``year=2024/``). Those are texts, each read by itself as the
    domain says: DuckDB would find a type that fits all folders, so that one more folder made texts of all numbers.

    DuckDB casts every file to the types of the first one, so whose file comes first would decide how others' values
    are rounded. Where files differ in whole and broken numbers, all are read as 64-bit floats, through their digits
    if they are decimals; a whole number below 2⁵³ stays the same. Other differences are refused: they are between
    files, which their schemas declare, and no value was looked at.
    """
    import duckdb

    path = literal(source)
    # Drafts show whoever holds the data what DuckDB makes of it.
    how = "" if needed is None else ", hive_types_autocast = false"
    whole = f"read_parquet({path}{how})"
    try:
        described = connection.execute(
            "SELECT file_name, name, duckdb_type, num_children, coalesce(precision, 0), coalesce(logical_type, '') "
            f"FROM parquet_schema({path})"
        ).fetchall()
        there = {name for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {whole}").fetchall()}
    except duckdb.Error:
        # Whatever is wrong with the files, reading them will say it.
        return whole, set()
    kinds, columns = _declared([each[:4] for each in described], needed or ())
    lower = {file: [name.lower() for name in names] for file, names in columns.items()}
    if any(len(set(names)) < len(names) for names in lower.values()):
        # DuckDB calls the second x of a file x_1, and a column that has that name already something else.
        raise SourceError(
            f"{source} has two columns whose names differ in capitals alone, or not at all; rename one"
        )
    if needed is None:
        return whole, set()
    for file, names in lower.items():
        folders = {part.partition("=")[0].lower() for part in PurePath(file).parts[:-1] if "=" in part}
        for name in needed:
            if name.lower() in folders and name.lower() in names:
                # DuckDB reads the folder's value, and skips rows by the least and the largest value of the file's.
                raise SourceError(
                    f"folders and files both have a column {name}; rename one, or move the files"
                )
    in_folders = there.difference(*columns.values())
    for _, name, _, _, digits, logical in described:
        if name in needed and digits > _DIGITS:
            # DuckDB reads the first bytes of such a number as if they were all of it.
            raise SourceError(
                f"the column {name} holds decimals of {digits} digits; make it one of 38 or fewer"
            )
        zoned = name in needed and "isAdjustedToUTC=1" in logical and "NANOS=NanoSeconds" in logical
        if zoned and not _after_1970(connection, path, name):
            # DuckDB cuts such times towards zero: the last moments of a day before 1970 would lie in the next.
            raise SourceError(
                f"the column {name} holds times of nanoseconds with a zone, and {source} does not say that all are "
                "later than the start of 1970, before which they cannot be read; write it in microseconds, or hand "
                "over an Arrow table"
            )
    distinct = {tuple(sorted(found.items())) for found in kinds.values()}
    if len(distinct) <= 1:
        return whole, in_folders
    # A column that no file has may be in their folders' names.
    names = [name for name in dict.fromkeys(needed) if name in there]
    common = {name: _common(name, {dict(found).get(name, "") for found in distinct}) for name in names}
    selects = []
    for found in sorted(distinct):
        files = ", ".join(
            literal(file) for file in sorted(kinds) if tuple(sorted(kinds[file].items())) == found
        )
        casts = ", ".join(_cast(name, dict(found).get(name, ""), common[name]) for name in names)
        selects.append(f"SELECT {casts} FROM read_parquet([{files}]{how})")
    return f"({' UNION ALL '.join(selects)}) AS records", in_folders


def _declared(
    described: Sequence[tuple[str, str, str, int | None]], needed: Sequence[str]
) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """The types of the needed columns of each file, and the names of all of them.

    The schema of a file is a tree, listed from its root down.
    """
    kinds: dict[str, dict[str, str]] = {}
    columns: dict[str, list[str]] = {}
    open_nodes: list[int] = []
    for file, name, kind, children in described:
        if file not in kinds:
            kinds[file], columns[file], open_nodes = {}, [], [children or 0]
            continue
        if len(open_nodes) == 1:
            columns[file].append(name)
            if name in needed:
                kinds[file][name] = str(kind or "nested")
        open_nodes[-1] -= 1
        open_nodes.append(children or 0)
        while open_nodes and open_nodes[-1] == 0:
            open_nodes.pop()
    return kinds, columns


def _after_1970(connection: Any, path: str, name: str) -> bool:
    """Whether files state, of every block of a column, that nothing in it is before 1970 or at its very start."""
    ((open_questions,),) = connection.execute(
        f"SELECT count(*) FROM parquet_metadata({path}) WHERE path_in_schema = {literal(name)} "
        "AND coalesce(stats_null_count < num_values, true) AND num_values > 0 AND NOT coalesce("
        "TRY_CAST(coalesce(stats_min_value, stats_min) AS TIMESTAMPTZ) > TIMESTAMPTZ '1970-01-01 00:00:00+00', false)"
    ).fetchall()
    return not open_questions


def _common(name: str, kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if "" in kinds:
        raise SourceError(f"some of the files have no column {name}; write them with one schema")
    if kinds <= {*_INTEGERS}:
        return "HUGEINT"
    if all(kind in (*_INTEGERS, *_FLOATS) or kind.startswith("DECIMAL") for kind in kinds):
        return "DOUBLE"
    if kinds <= {*_TIMES}:
        return "TIMESTAMP"
    raise SourceError(f"the files disagree on the type of the column {name}; write them with one schema")


def _cast(name: str, kind: str, common: str) -> str:
    value = quote(name)
    if kind == common:
        return value
    if kind.startswith("DECIMAL"):
        value = f"CAST({value} AS VARCHAR)"
    if kind == "TIMESTAMP_NS":
        value = microseconds(value)
    return f"CAST({value} AS {common}) AS {quote(name)}"
