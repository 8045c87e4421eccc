"""What a file says of itself in words, beside what dphist reads: for whoever opens it with any other tool.

Each fact is a key of the Parquet file's own metadata, which DuckDB's `parquet_kv_metadata` and pyarrow's `read_schema`
show. They follow from the description, so `Release.verify` refuses a file whose words say something else. That is why
the wording belongs to the format: change it only together with the format's number.
"""

from __future__ import annotations

from collections.abc import Mapping

from dphist.model.phrases import UNPAIRED
from dphist.release.cells import TableCells
from dphist.release.columns import label_columns
from dphist.release.contents import Contents
from dphist.release.guarantee import Guarantee
from dphist.release.sums import column_words
from dphist.version import __version__

TABLE = "which table the row is of, by the attributes that it keeps; it sums over all others"
"""What the column says that tells tables apart."""


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
