"""A release for whoever has no Python: a CSV with a description beside it, or a spreadsheet that explains itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist.arguments import explained
from dphist.errors import InputError, OutputError
from dphist.extras import need
from dphist.release import Release
from dphist.release.atomic import atomic
from dphist.release.columns import label_columns, number_names
from dphist.release.file.readable import readable, told_columns

if TYPE_CHECKING:
    import pyarrow

# A sheet of a spreadsheet has so many rows, its head included.
_SHEET = 1 << 20


@explained
def export(
    release: Release, output: str | PathLike[str], *, confidence: float = 0.95, largest: int = _SHEET
) -> list[Path]:
    """Write a release's table: a row per cell with its labels, ``estimate``, ``low`` and ``high``.

    ``.csv`` and ``.tsv`` come with a second file that says what the columns are and what was promised, under the name
    and in the form that "CSV on the Web" gives it. ``.xlsx`` says so on a sheet of its own (needs ``dphist[excel]``).

    Args:
        release: What to write.
        output: Where; how the name ends decides the form.
        confidence: How sure each interval is to hold the true count.
        largest: How many rows a sheet may have, its head included.

    Returns:
        The files that were written.

    Raises:
        InputError: if no form is known by that ending.
        OutputError: if a spreadsheet cannot hold so many rows.

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
        raise InputError(f"{path}: the name must end in {', '.join(_WRITERS)}")
    table = release.to_arrow(confidence=confidence)
    if kind == ".xlsx" and table.num_rows >= largest:
        raise OutputError(
            f"a sheet has at most {largest:,} rows and this release {table.num_rows:,}; export it as .csv, or publish "
            "coarser bins"
        )
    words = {
        key.decode(): text.decode()
        for key, text in readable(release, confidence, number_names(release.domain)).items()
    }
    return _WRITERS[kind](release, table, path, words)


def _delimited(mark: str) -> Callable[[Release, pyarrow.Table, Path, dict[str, str]], list[Path]]:
    def write(release: Release, table: pyarrow.Table, path: Path, words: dict[str, str]) -> list[Path]:
        from pyarrow import csv

        with atomic(path) as temporary:
            csv.write_csv(table, temporary, csv.WriteOptions(delimiter=mark))
        beside = path.with_name(f"{path.name}-metadata.json")
        with atomic(beside) as temporary:
            described = json.dumps(_on_the_web(release, table, path.name, words, mark), ensure_ascii=False)
            temporary.write_text(described, encoding="utf-8")
        return [path, beside]

    return write


def _on_the_web(
    release: Release, table: pyarrow.Table, name: str, words: dict[str, str], mark: str
) -> dict[str, Any]:
    """What "CSV on the Web" (W3C) wants to know of a file."""
    columns = told_columns(release, float(words["confidence"]), number_names(release.domain))
    told = {name: text for names, text in columns.items() for name in names}
    return {
        "@context": "http://www.w3.org/ns/csvw",
        "url": name,
        "dialect": {"delimiter": mark},
        **release.about.describe("dcat", {}),
        "rdfs:comment": [f"Guarantee: {words['guarantee']}.", f"Intervals: {words['intervals']}."],
        "tableSchema": {
            "columns": [
                {
                    "name": field.name,
                    "titles": field.name,
                    "datatype": _web_type(field.type),
                    "dc:description": told.get(field.name, ""),
                }
                for field in table.schema
            ]
        },
    }


def _web_type(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    return "date" if pa.types.is_date(kind) else "boolean" if pa.types.is_boolean(kind) else "string"


def _sheet(release: Release, table: pyarrow.Table, path: Path, words: dict[str, str]) -> list[Path]:
    """A sheet of numbers that filter and sort as numbers, and a sheet of words."""
    xlsxwriter = need("xlsxwriter", "excel")

    known = {column.name for column in label_columns(release.domain)}
    with atomic(path) as temporary:
        book = xlsxwriter.Workbook(
            str(temporary), {"constant_memory": True, "default_date_format": "yyyy-mm-dd"}
        )
        head, day = book.add_format({"bold": True}), book.add_format({"num_format": "yyyy-mm-dd"})
        wrapped, count = book.add_format({"text_wrap": True}), book.add_format({"num_format": "#,##0.0"})
        sheet = book.add_worksheet("counts")
        sheet.freeze_panes(1, 0)
        for place, name in enumerate(table.column_names):
            sheet.set_column(place, place, max(10, min(len(name) + 2, 40)))
            sheet.write_string(0, place, name, head)
        first = 1
        for batch in table.to_batches(max_chunksize=1 << 14):
            columns = [batch.column(place).to_pylist() for place in range(batch.num_columns)]
            for row in range(batch.num_rows):
                for place, name in enumerate(table.column_names):
                    value = columns[place][row]
                    if isinstance(value, str):
                        # As text whatever it looks like: a label that begins with "=" is no formula.
                        sheet.write_string(first + row, place, value)
                    elif isinstance(value, bool):
                        sheet.write_boolean(first + row, place, value)
                    elif isinstance(value, int | float):
                        sheet.write_number(first + row, place, value, None if name in known else count)
                    elif value is not None:
                        sheet.write_datetime(first + row, place, value, day)
            first += batch.num_rows
        sheet.autofilter(0, 0, max(first - 1, 1), len(table.column_names) - 1)
        about = book.add_worksheet("about")
        about.set_column(0, 0, 14, head)
        about.set_column(1, 1, 100, wrapped)
        for row, (key, text) in enumerate(words.items()):
            about.write_string(row, 0, key)
            about.write_string(row, 1, text)
        book.close()
    return [path]


_WRITERS: dict[str, Callable[[Release, pyarrow.Table, Path, dict[str, str]], list[Path]]] = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".xlsx": _sheet,
}
