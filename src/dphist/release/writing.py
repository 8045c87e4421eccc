"""The release as one Parquet file: a row per cell with its labels and its interval, and in the metadata what to trust.

DuckDB, pandas or a spreadsheet opens it without dphist. The footer says in words what the file is: keys of its own
metadata, which DuckDB's `parquet_kv_metadata` and pyarrow's `read_schema` show. They follow from the description, so
`Release.verify` refuses a file whose words say something else; that is why the wording belongs to the format. Under the
key ``dphist`` stands JSON: the format's version, domain, guarantee, mechanism, transcript. Answers of the transcript
are not stored twice: one that equals the estimate points to that column, one with a number per cell gets a column of
its own, the rest sit in the footer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.budget import Budget
from dphist.model.phrases import UNPAIRED
from dphist.model.transcript import Entry
from dphist.release.atomic import atomic, check_release_name
from dphist.release.cells import SparseCells, TableCells
from dphist.release.cells.cells import Pair
from dphist.release.columns import as_arrow, label_columns, number_names
from dphist.release.contents import Contents, column_words, sum_columns
from dphist.release.guarantee import Guarantee
from dphist.release.held import FORMAT, KEY, Arrays, pack, stamped, written
from dphist.version import __version__

if TYPE_CHECKING:
    import pyarrow

TABLE = "which table the row is of, by the attributes that it keeps; it sums over all others"
"""What the column says that tells tables apart."""

_ROWS = 1 << 20
HOW: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    # Of more different numbers a list of them takes longer and more room than they do.
    "dictionary_pagesize_limit": 1 << 16,
}
# Of more columns fewer rows are held at a time.
_MANY = 16


def save(release: Contents, path: str | PathLike[str], confidence: float) -> None:
    """Write the release whole or not at all."""
    check_release_name(Path(path))
    with atomic(Path(path)) as temporary:
        write(release, temporary, confidence)


def write(
    release: Contents, path: Path | IO[bytes], confidence: float, said: Mapping[bytes, bytes] | None = None
) -> None:
    """Write the release; ``said``, which a file of it has said, stands in place of what would be said now."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    domain, cells, labels = release.domain, release.cells, label_columns(release.domain)
    description, columns = laid_out(release, confidence, packed=said is None)
    names = description["bounds"]
    words = readable(release, confidence, names | {"estimate": next(iter(columns))})
    told = {KEY: json.dumps(description).encode(), **words, **(said or {})}

    def arrays(begin: int, end: int, bounds: Pair) -> dict[str, pyarrow.Array]:
        rows = np.arange(begin, end)
        found = cells.label_rows(labels, rows)
        if isinstance(cells, SparseCells):
            found[description["columns"]["cell"]] = as_arrow(cells.flat[rows])
        numbers = {name: as_arrow(values[begin:end]) for name, values in columns.items()}
        # The estimate, its bounds, then what else was measured.
        first = next(iter(numbers))
        found[first] = numbers.pop(first)
        for name, ends in zip(names.values(), bounds, strict=True):
            found[name] = as_arrow(ends, missing=np.isnan(ends))
        return found | numbers

    none = arrays(0, 0, (np.zeros(0), np.zeros(0)))
    schema = pa.schema([(name, each.type) for name, each in none.items()], stamped(told))
    size, step = cells.numbers.size, _ROWS if len(schema) <= _MANY else _ROWS // _MANY
    # Readers pass row groups over by the labels that a group has some of; of the other columns each has all kinds.
    telling = [each.name for each in labels if step < min(size, prod(domain.shape[each.axis :]))]
    with pq.ParquetWriter(path, schema, write_statistics=telling, **HOW) as writer:
        for begin in range(0, size, step):
            end = min(begin + step, size)
            made = arrays(begin, end, release._cell_bounds(begin, end, confidence))
            writer.write_table(pa.Table.from_arrays(list(made.values()), schema=schema))


def laid_out(
    release: Contents, confidence: float, *, packed: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a release, and the columns of numbers that go with it; answers left out unless ``packed``."""
    if isinstance(release.cells, SparseCells):
        return _laid_out_sparse(release, release.cells, confidence)
    names = number_names(release.domain, "measured")
    flat = release.cells.numbers
    measured: list[NDArray[Any]] = []
    entries = []
    for entry in release.transcript:
        described = write_entry(entry, release.budget)
        answer = entry.answer.reshape(-1)
        if answer.size == flat.size and np.array_equal(answer, flat):
            described["column"] = names["estimate"]
        elif answer.size == flat.size and answer.size > 4096:
            described["column"] = f"{names['measured']}_{len(measured)}"
            measured.append(answer)
        else:
            described["data"] = pack(answer) if packed else ""
        entries.append(described)
    description = _described(
        release,
        confidence,
        names,
        {},
        {
            "note": release.note,
            "polish": list(release.polish),
            "workload": None if release.workload is None else release.workload.to_json(),
            "receipt": release.receipt,
            "estimate": names["estimate"],
            "transcript": entries,
        },
    )
    if release.sums:
        # What stands in no column stands in the description.
        description["measures"] = _described_sums(release)
    columns = {names["estimate"]: flat}
    more = {f"{names['measured']}_{i}": answer for i, answer in enumerate(measured)}
    description["model"], own = told_model(
        release, columns | more, number_names(release.domain, "model")["model"]
    )
    if isinstance(release.cells, TableCells):
        cells = release.cells
        tables = [list(axes) for axes in cells.order]
        description |= {"form": cells.form, "tables": tables, "table": cells.table_column()}
    return (
        description,
        columns | sum_columns(release, taken_names(release)) | more | own,
    )


def _laid_out_sparse(
    release: Contents, cells: SparseCells, confidence: float
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a sparse release, and its column of numbers."""
    names = number_names(release.domain, "cell")
    (entry,) = release.transcript
    asked = write_entry(entry, release.budget)
    description = _described(
        release,
        confidence,
        names,
        {"form": cells.form},
        {
            "scale": str(cells.scale),
            "threshold": cells.threshold,
            "receipt": release.receipt,
            "columns": names,
            # Its answer are the rows of the file.
            "entry": {key: asked[key] for key in asked if key not in ("dtype", "shape")},
        },
    )
    return description, {names["estimate"]: cells.values}


def _described(
    release: Contents, confidence: float, names: dict[str, str], form: dict[str, str], own: dict[str, Any]
) -> dict[str, Any]:
    """What all descriptions say, in the order of the format, and around it what those of a form do."""
    return {
        "format": FORMAT,
        **form,
        "domain": release.domain.to_json(),
        "shape": list(release.domain.shape),
        "guarantee": write_guarantee(release.guarantee),
        "mechanism": release._described,
        "maker": release.maker.told(),
        **own,
        "about": release.about.given(),
        "confidence": confidence,
        "bounds": {"low": names["low"], "high": names["high"]},
    }


def told_model(
    release: Contents, columns: dict[str, NDArray[Any]], name: str | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The model as the release's own file has it, else as it is; and the columns of its own."""
    if (story := release._story) is not None:
        named = (entry.get("column") for entry in story.model["arrays"])
        return story.model, {each: story.columns[each] for each in named if each and each not in columns}
    rows = next(iter(columns.values())).size if columns else 0
    arrays = Arrays(columns, name, rows)
    told = written(release._estimate, release.domain, bool(release.polish), arrays)
    return {**told, "arrays": arrays.entries}, arrays.own


def taken_names(release: Contents) -> set[str]:
    """The names of all columns but those of sums."""
    labels = label_columns(release.domain)
    return {column.name for column in labels} | set(number_names(release.domain).values())


def _described_sums(release: Contents) -> list[dict[str, Any]]:
    """Write the sums down: what was added up, by whom it was noised, for how much, and every answer."""
    return [
        {
            "measure": sums.measure.to_json(),
            "squared": sums.quantity.squared,
            "clipped": sums.quantity.clipped,
            "centre": sums.quantity.centre,
            "amount": str(sums.release.budget.amount),
            "mechanism": sums.release._described,
            "maker": sums.release.maker.told(),
            "note": sums.release.note,
            "estimate": pack(sums.release.counts),
            "model": told_model(sums.release, {})[0],
            "transcript": [
                write_entry(entry, sums.release.budget) | {"data": pack(entry.answer)}
                for entry in sums.release.transcript
            ],
        }
        for sums in release.sums
    ]


def write_entry(entry: Entry, budget: Budget) -> dict[str, Any]:
    """One question, and what its answer looks like; where the answer stands is for the caller to say."""
    return {
        "path": entry.path,
        "verb": entry.verb,
        "question": entry.question,
        budget.currency: str(entry.cost),
        "dtype": str(entry.answer.dtype),
        "shape": list(entry.answer.shape),
    }


def write_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """What was promised, and for whom."""
    told: dict[str, Any] = guarantee.budget.to_json() | {"unit": guarantee.unit.to_json()}
    if guarantee.delta:
        told["discovered"] = {"delta": str(guarantee.delta), "threshold": guarantee.threshold}
    return told


def readable(release: Contents, confidence: float, columns: Mapping[str, str]) -> dict[bytes, bytes]:
    """The words of a file, by key; ``columns`` names the columns of numbers."""
    low, high, percent = columns["low"], columns["high"], f"{100 * confidence:g}"
    words = release.about.given() | {
        "guarantee": _promise(release.guarantee),
        "confidence": f"{confidence:g}",
        # Whoever reads the file without dphist hears it first, too.
        "intervals": f"{UNPAIRED} " * release.note.startswith(UNPAIRED)
        + (
            f"{low} and {high} are the ends of a {percent} % interval for the true count of each cell by itself; "
            "where its attributes were not measured together the estimate is a guess, and they are bounds that the "
            "measured tables allow; they are empty where nothing is known"
        ),
        "columns": "\n".join(
            f"{', '.join(names)}: {text}"
            for names, text in told_columns(release, confidence, columns).items()
        ),
        "software": f"dphist {__version__}",
    }
    return {name.encode(): text.encode() for name, text in words.items()}


def _promise(guarantee: Guarantee) -> str:
    """The guarantee, in the words that files of this format have."""
    said = Guarantee(guarantee.budget, guarantee.unit).describe()
    if not guarantee.delta:
        return said
    return (
        f"{said}; discovered keys are shown from a noisy count of {guarantee.threshold:,} on, and with a chance of at "
        f"most {float(guarantee.delta):g} one that only they have"
    )


def told_columns(
    release: Contents, confidence: float, columns: Mapping[str, str]
) -> dict[tuple[str, ...], str]:
    """What the columns of a file hold, in their order; both bounds are told of at once."""
    labels, cells = label_columns(release.domain), release.cells
    sums = column_words(release, {*(column.name for column in labels), *columns.values()})
    return {
        **({(cells.table_column(),): TABLE} if isinstance(cells, TableCells) else {}),
        **{(column.name,): column.words for column in labels},
        (columns["estimate"],): "how many records the cell is estimated to hold; noise was added on purpose",
        (columns["low"], columns["high"]): (
            f"the true count lies between them with {100 * confidence:g} % confidence"
        ),
        **{(name,): text for name, text in sums.items()},
    }
