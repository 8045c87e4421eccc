"""A release for whoever has no Python: a CSV with a description beside it, or a spreadsheet that explains itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.arguments import explained
from dphist.errors import InputError, OutputError
from dphist.extras import need
from dphist.inference.tables.published import RakedModel
from dphist.inference.tables.residuals import Axes
from dphist.release.atomic import atomic
from dphist.release.cells import TableCells
from dphist.release.cells.cells import TOTAL
from dphist.release.columns import as_arrow, free, label_columns, number_names
from dphist.release.release import Release
from dphist.release.tables import (
    below_each_other,
    each_replicate,
    in_tables,
    largest_tables,
    public_seed,
    table_columns,
    with_totals,
)
from dphist.release.writing import TABLE, readable, told_columns

if TYPE_CHECKING:
    import pyarrow

# Rows that a sheet of a spreadsheet may have, its head included.
_SHEET = 1 << 20
# And letters that its name may have.
_LONGEST_NAME = 31
# Numbers that a group of rows of a Parquet file has, about.
_GROUP = 1 << 24


Sheets = list[tuple[str, list[tuple[int, int, Axes]]]]
"""Sheets by name, each with runs of rows, from here to there, and the attributes that they keep."""


@dataclass(frozen=True, eq=False)
class _Content:
    """What is written, in whichever form."""

    release: Release
    table: pyarrow.Table
    sheets: Sheets
    """Which rows stand on which sheet."""
    columns: dict[str, str]
    """What each column holds."""
    confidence: float
    which: str = ""
    """The column that says which table a row is of, if there is one: a sheet's name says it."""
    measured: str = ""
    """The column that says what was measured, if there is one."""
    replicates: str = ""
    """What is said of replicates, if there are any."""

    @property
    def words(self) -> dict[str, str]:
        """What is said of the release."""
        facts = readable(self.release, self.confidence, number_names(self.release.domain))
        words = {key.decode(): text.decode() for key, text in facts.items()}
        words["columns"] = "\n".join(f"{name}: {text}" for name, text in self.columns.items())
        return words | ({"replicates": self.replicates} if self.replicates else {})


@explained
def export(
    release: Release,
    output: str | PathLike[str],
    *,
    confidence: float = 0.95,
    guesses: bool = False,
    replicates: int | None = None,
) -> list[Path]:
    """Write what was measured: a row per cell with its labels, ``estimate``, ``low`` and ``high``.

    Where tables of some attributes were measured it is these, with their totals: one below the other and told apart by
    the column ``table``, or each on a sheet. ``.csv`` and ``.tsv`` come with a second file that says what the columns
    are and what was promised, under the name and in the form that "CSV on the Web" gives it. ``.parquet`` says so in
    its metadata, ``.xlsx`` on a sheet of its own (needs ``dphist[excel]``).

    Args:
        release: What to write.
        output: Where; how the name ends decides the form.
        confidence: How sure each interval is to hold the true count.
        guesses: Whether to write what was not measured, too: not ``measured``, and empty where there is no guess.
        replicates: How many draws of the whole table to write beside it, as ``r1``, ``r2``, …: the error of whatever is
            worked out of ``estimate`` is its spread over them (`Release.replicates`).

    Returns:
        The files that were written.

    Raises:
        InputError: if no form is known by that ending.
        OutputError: if a sheet cannot hold all rows.

    Example:
        >>> import dphist, numpy as np, pathlib, tempfile
        >>> from dphist.uses import export
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     " ".join(path.name for path in export(release, pathlib.Path(folder) / "sex.csv"))
        'sex.csv sex.csv-metadata.json'
    """
    path = Path(output)
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise InputError(f"{path}: the name must end in {' or '.join(_WRITERS)}")
    if not in_tables(release):
        every, rows = tuple(range(len(release.domain.shape))), int(release.cells.numbers.size)
        cells, sheets = None, [("counts", [(0, rows, every)])]
    else:
        cells, sheets = _laid_out(release, guesses)
    for name, runs in sheets if kind == ".xlsx" else ():
        if (rows := sum(end - begin for begin, end, _ in runs)) >= _SHEET:
            raise OutputError(
                f"a sheet has at most {_SHEET:,} rows and the one of {name} would have {rows:,}; export it as .csv"
                f"{', or without guesses' if guesses else ', or publish coarser bins'}"
            )
    content = _content(release, cells, sheets, confidence)
    return _WRITERS[kind](
        _drawn(content, cells, replicates, path.parent) if replicates is not None else content, path
    )


def _laid_out(release: Release, guesses: bool) -> tuple[TableCells, Sheets]:
    """The tables that are written, and on which sheet: each that lies in no larger one, with its totals."""
    tables, published = largest_tables(release), release.cells
    known = with_totals(tables)
    more = list(published.tables) if isinstance(published, TableCells) else []
    if not more or isinstance(release._estimate.model, RakedModel):
        more.append(tuple(range(len(release.domain.shape))))
    guessed = [axes for axes in more if axes not in known] if guesses else []
    cells = below_each_other(release.domain, [*known, *guessed])
    ends = zip(cells.starts.tolist(), cells.starts[1:].tolist(), cells.order, strict=False)
    runs = {axes: (begin, end, axes) for begin, end, axes in ends}
    sheets = [(cells.name(axes), [runs[inside] for inside in with_totals([axes])]) for axes in tables]
    return cells, [*sheets, *([("guesses", [runs[axes] for axes in guessed])] if guessed else [])]


def _content(release: Release, cells: TableCells | None, sheets: Sheets, confidence: float) -> _Content:
    import pyarrow as pa

    names = number_names(release.domain)
    told = {name: text for each, text in told_columns(release, confidence, names).items() for name in each}
    if cells is None:
        return _Content(release, release.to_arrow(confidence=confidence), sheets, told, confidence)
    columns = table_columns(release, cells, confidence)
    listed = list(columns)
    measured = listed[listed.index(names["high"]) + 1]
    told |= {
        listed[0]: TABLE,
        measured: ("whether these attributes were measured together; if not, the estimate is a guess"),
    }
    said = {name: told[name] for name in listed}
    return _Content(release, pa.table(columns), sheets, said, confidence, listed[0], measured)


def _drawn(content: _Content, cells: TableCells | None, count: int, folder: Path) -> _Content:
    """The same with replicates, which wait in a file without a name: one at a time is in memory."""
    release, table, told = content.release, content.table, dict(content.columns)
    with TemporaryFile(dir=folder) as scratch:
        for draw in each_replicate(release, count, None if cells is None else cells.order):
            scratch.write(draw.tobytes())
        scratch.flush()
        draws = np.memmap(scratch, dtype=np.float64, mode="r", shape=(count, table.num_rows))
    # Of a guess nobody knows how far it is off.
    known = None if cells is None else np.asarray(table.column(content.measured).to_numpy())
    for number, draw in enumerate(draws, start=1):
        name = free(f"r{number}", set(told))
        missing = np.isnan(draw) if known is None else ~known | np.isnan(draw)
        table = table.append_column(name, as_arrow(draw, missing=missing))
        told[name] = f"what the true counts may be: draw {number} of the whole table from the release's model"
    said = (
        f"{count} draws of the whole table, by the public seed {public_seed(release).hex()}, the BLAKE2b hash of all "
        "estimates of the release; the error of whatever is worked out of the estimates is the root of the mean of its "
        "squared distances: from its value for a draw to its value for the estimates"
    )
    return replace(content, table=table, columns=told, replicates=said)


def _delimited(mark: str) -> Callable[[_Content, Path], list[Path]]:
    def write(content: _Content, path: Path) -> list[Path]:
        from pyarrow import csv

        with atomic(path) as temporary:
            csv.write_csv(content.table, temporary, csv.WriteOptions(delimiter=mark))
        beside = path.with_name(f"{path.name}-metadata.json")
        with atomic(beside) as temporary:
            described = json.dumps(_on_the_web(content, path.name, mark), ensure_ascii=False)
            temporary.write_text(described, encoding="utf-8")
        return [path, beside]

    return write


def _parquet(content: _Content, path: Path) -> list[Path]:
    import pyarrow.parquet as pq

    table = content.table
    # Of many columns fewer rows are held at a time.
    rows = max(_GROUP // max(table.num_columns, 1), 1)
    with atomic(path) as temporary:
        pq.write_table(
            table.replace_schema_metadata(content.words), temporary, row_group_size=rows, compression="zstd"
        )
    return [path]


def _on_the_web(content: _Content, name: str, mark: str) -> dict[str, Any]:
    """What "CSV on the Web" (W3C) wants to know of a file."""
    words = content.words
    return {
        "@context": "http://www.w3.org/ns/csvw",
        "url": name,
        "dialect": {"delimiter": mark},
        **content.release.about.describe("dcat", {}),
        "rdfs:comment": [f"Guarantee: {words['guarantee']}.", f"Intervals: {words['intervals']}."],
        "tableSchema": {
            "columns": [
                {
                    "name": field.name,
                    "titles": field.name,
                    "datatype": web_type(field.type),
                    "dc:description": content.columns[field.name],
                }
                for field in content.table.schema
            ]
        },
    }


def web_type(kind: Any) -> str:
    """What "CSV on the Web" calls a type of Arrow's."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    return "date" if pa.types.is_date(kind) else "boolean" if pa.types.is_boolean(kind) else "string"


def _book(content: _Content, path: Path) -> list[Path]:
    """Sheets of numbers that filter and sort as numbers, and a sheet of words."""
    xlsxwriter = need("xlsxwriter", "excel")

    with atomic(path) as temporary:
        book = xlsxwriter.Workbook(
            str(temporary), {"constant_memory": True, "default_date_format": "yyyy-mm-dd"}
        )
        formats = {
            "head": book.add_format({"bold": True}),
            "day": book.add_format({"num_format": "yyyy-mm-dd"}),
            "count": book.add_format({"num_format": "#,##0.0"}),
        }
        taken = {"about"}
        for name, runs in content.sheets:
            _sheet(book.add_worksheet(_sheet_name(name, taken)), content, runs, formats)
        about = book.add_worksheet("about")
        about.set_column(0, 0, 14, formats["head"])
        about.set_column(1, 1, 100, book.add_format({"text_wrap": True}))
        for row, (key, text) in enumerate(content.words.items()):
            about.write_string(row, 0, key)
            about.write_string(row, 1, text)
        book.close()
    return [path]


def _sheet_name(name: str, taken: set[str]) -> str:
    """A name that spreadsheets take, and that no other sheet has."""
    plain = re.sub(r"[\[\]:*?/\\'\x00-\x1f]", "_", name)[:_LONGEST_NAME]
    number = 1
    while plain.lower() in taken:
        number += 1
        plain = f"{plain[: _LONGEST_NAME - 8]} {number}"
    taken.add(plain.lower())
    return plain


def _sheet(sheet: Any, content: _Content, runs: list[tuple[int, int, Axes]], formats: dict[str, Any]) -> None:
    """Write some rows; where they add up over an attribute that others on the sheet keep, it says ``total``."""
    domain, kept = content.release.domain, {axis for _, _, axes in runs for axis in axes}
    labels = {column.name: column.axis for column in label_columns(domain)}
    shown = [
        name
        for name in content.table.column_names
        if labels.get(name) in kept or (name not in labels and name != content.which)
    ]
    sheet.freeze_panes(1, 0)
    for place, name in enumerate(shown):
        sheet.set_column(place, place, max(10, min(len(name) + 2, 40)))
        sheet.write_string(0, place, name, formats["head"])
    row = 1
    for begin, end, axes in runs:
        for batch in content.table.select(shown).slice(begin, end - begin).to_batches(max_chunksize=1 << 14):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for place, (name, value) in enumerate(zip(shown, values, strict=True)):
                    axis = labels.get(name)
                    if axis is not None and axis not in axes:
                        if name == domain.names[axis]:
                            sheet.write_string(row, place, TOTAL)
                    elif isinstance(value, str):
                        # As text whatever it looks like: a label that begins with "=" is no formula.
                        sheet.write_string(row, place, value)
                    elif isinstance(value, bool):
                        sheet.write_boolean(row, place, value)
                    elif isinstance(value, int | float):
                        sheet.write_number(row, place, value, None if axis is not None else formats["count"])
                    elif value is not None:
                        sheet.write_datetime(row, place, value, formats["day"])
                row += 1
    sheet.autofilter(0, 0, max(row - 1, 1), len(shown) - 1)


_WRITERS: dict[str, Callable[[_Content, Path], list[Path]]] = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".parquet": _parquet,
    ".xlsx": _book,
}
