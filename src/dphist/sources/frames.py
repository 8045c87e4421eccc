"""Data frames as tables that DuckDB reads, each value by itself.

The type of a frame's column is a function of everybody's rows: one missing value makes floats of pandas's integers,
one Decimal makes objects of them. So nothing here, or after, may depend on the type where values are equal: 1, 1.0,
Decimal(1) and, in a column of objects, "1" are one number and one id. Columns that the domain does not name are not
handed over. What is left is refused: floats where they may stand for several whole numbers (see
`dphist.sources.people` and `dphist.sources.keys`), and columns of a type that cannot be an attribute.

What a reader did *before* there was a frame is beyond us: ``read_csv`` turns 01 into 1 unless some other row has a
letter there. Hand over the file instead, or name the types to the reader.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from dphist.errors import SourceError
from dphist.sources.engine import Column
from dphist.sources.people import exact_below, refuse_floats, whole_text

# The digits of a whole number, or the places of another, that are written out: no attribute and no id has more.
_DIGITS = 4_000
_LARGEST = 10**_DIGITS
# Units of time that reach further than microseconds, and how many of these each has.
_COARSE = {"s": 1_000_000, "ms": 1_000}


def arrow_of(source: Any, needed: Sequence[str], person: str | None) -> tuple[Any, set[str]] | None:
    """A data frame's needed columns as an Arrow table, and which of them are texts of undeclared values.

    None if it is no data frame. A module that is not loaded cannot have made the source.
    """
    if (pandas := sys.modules.get("pandas")) is not None and isinstance(source, pandas.DataFrame):
        table, undeclared = _from_pandas(source, needed, person)
        return _within_reach(table), undeclared
    table = _from_polars(source, needed) or _from_arrow(source)
    if table is None:
        return None
    names = list(table.schema.names)
    if len(set(names)) != len(names):
        raise SourceError("the table has two columns of one name")
    if set(needed) <= set(names):
        chosen = [name for name in names if name in needed]
        if hasattr(table, "select"):
            table = _within_reach(table.select(chosen))
        elif any(map(_zoned, (table.schema.field(name) for name in chosen))):
            # A dataset is read into memory where DuckDB would read it otherwise.
            table = _within_reach(table.to_table(columns=chosen))
    # A column of nothing but NULL has no type: to refuse it would tell that every value is missing.
    return table, {field.name for field in table.schema if str(field.type) == "null"}


def _within_reach(table: Any) -> Any:
    """Zoned times as those of microseconds, the ones that they lie in, and NULL beyond what these reach.

    DuckDB makes them so itself, gives the whole table up for one that it cannot, and cuts nanoseconds towards zero.
    """
    import pyarrow
    import pyarrow.compute

    for place, field in enumerate(table.schema):
        if not _zoned(field):
            continue
        moments = table.column(place).cast(pyarrow.int64())
        if field.type.unit == "ns":
            cut = pyarrow.compute.divide(moments, 1_000)
            later = pyarrow.compute.greater(pyarrow.compute.multiply(cut, 1_000), moments)
            fine = pyarrow.compute.subtract(cut, later.cast(pyarrow.int64()))
        else:
            times = _COARSE[field.type.unit]
            most = (2**63 - 1) // times
            # Not by absolute values: the least number has none.
            inside = pyarrow.compute.and_(
                pyarrow.compute.greater_equal(moments, -most), pyarrow.compute.less_equal(moments, most)
            )
            fine = pyarrow.compute.multiply(pyarrow.compute.if_else(inside, moments, None), times)
        table = table.set_column(place, field.name, fine.cast(pyarrow.timestamp("us", field.type.tz)))
    return table


def _zoned(field: Any) -> bool:
    """Whether a column holds times with a zone in another unit than microseconds."""
    import pyarrow

    kind = field.type
    return bool(pyarrow.types.is_timestamp(kind) and kind.tz is not None and kind.unit in (*_COARSE, "ns"))


def _from_polars(source: Any, needed: Sequence[str]) -> Any:
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(source, polars.DataFrame | polars.LazyFrame):
        return None
    names = source.collect_schema().names()
    chosen = source.select([name for name in names if name in needed] or names)
    if isinstance(chosen, polars.LazyFrame):
        try:
            chosen = chosen.collect()
        except polars.exceptions.PolarsError:
            raise SourceError("the polars query failed") from None
    try:
        return chosen.to_arrow()
    except (polars.exceptions.PolarsError, ValueError, TypeError):
        # Arrow's own error is a ValueError: a type of polars' that it has not, such as whole numbers of 128 bits.
        raise SourceError("source: a column has a type that cannot be read; give it another") from None


def _from_arrow(source: Any) -> Any:
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None:
        return None
    if isinstance(source, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([source])
    if isinstance(source, pyarrow.RecordBatchReader):
        return source.read_all()
    if isinstance(source, pyarrow.Table):
        return source
    dataset = sys.modules.get("pyarrow.dataset")
    # A dataset is scanned column by column as DuckDB asks, and has no select of its own.
    return source if dataset is not None and isinstance(source, dataset.Dataset) else None


def _from_pandas(frame: Any, needed: Sequence[str], person: str | None) -> tuple[Any, set[str]]:
    import pyarrow

    names = [str(name) for name in frame.columns]
    chosen = [place for place, name in enumerate(names) if name in needed] or list(range(len(names)))
    chosen_names = [names[place] for place in chosen]
    if len(set(chosen_names)) != len(chosen_names):
        raise SourceError("the table has two columns of one name")
    arrays, undeclared = [], set()
    for place in chosen:
        series = frame.iloc[:, place]
        # One complex number makes complex ones of everybody's, which are theirs still.
        kinds = getattr(series.dtype, "categories", series).dtype
        if str(kinds) == "object" or getattr(kinds, "kind", "") == "c":
            series = series.astype(object)
        if series.dtype == object:
            arrays.append(_texts(series, names[place] if names[place] == person else None))
            undeclared.add(names[place])
            continue
        try:
            array = pyarrow.array(series, from_pandas=True)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            raise SourceError(
                f"the column {names[place]} holds {series.dtype}, which cannot be read"
            ) from None
        arrays.append(array)
        if str(array.type) == "null":
            undeclared.add(names[place])
    return pyarrow.table(arrays, names=chosen_names), undeclared


def _texts(series: Any, person: str | None) -> Any:
    """Objects as texts, one by one; ``person`` is the column's name if it holds ids."""
    import pyarrow

    try:
        # Nothing but texts and missing values: the same, faster.
        return pyarrow.array(series, type=pyarrow.large_string(), from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError):
        convert = _text if person is None else partial(_id, person)
        return pyarrow.array(
            [_alone(convert, value) for value in series.tolist()], type=pyarrow.large_string()
        )


def _alone(convert: Callable[[Any], str | None], value: Any) -> str | None:
    """What is made of one object; None where it cannot be asked: it would end the counting, in words that quote it."""
    if isinstance(value, complex):
        value = value.real if value.imag == 0 else None
    try:
        return convert(value)
    except (SourceError, MemoryError):
        raise
    except Exception:
        # Such as a time of Arrow's that no calendar of Python's reaches.
        return None


def _id(name: str, value: Any) -> str | None:
    """An id as text, as `dphist.sources.people` reads it from a column of one type: of the numbers only whole ones."""
    text = _text(value)
    if text is None:
        return None
    value = value.as_py() if hasattr(value, "as_py") else value
    kind = str(getattr(value, "dtype", "float64"))
    value = value.item() if hasattr(value, "item") else value
    column = Column(name, kind, "real")
    if isinstance(value, float) and math.isfinite(value) and abs(value) >= exact_below(column):
        raise refuse_floats(column)
    if isinstance(value, float | Decimal) and not text.lstrip("-").isdigit():
        return None
    return text


def _text(value: Any) -> str | None:
    """A value as text, by itself; None where it is missing, or of a kind that no attribute has."""
    value = value.as_py() if hasattr(value, "as_py") else value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return None
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        # As Arrow reads a column of nothing but texts and these.
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return None
    if getattr(value, "ndim", 0) or (hasattr(value, "dtype") and bool(getattr(value, "mask", False))):
        # An array is many values, and none of an attribute's; what NumPy masks is missing, and says that it is 0.
        return None
    if isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool":
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal) or hasattr(value, "dtype"):
        return _number(value)
    if isinstance(value, dt.datetime):
        # NaT says that it is a time too; it is the only one that is not equal to itself.
        if value != value:
            return None
        try:
            moment: dt.datetime = value if value.tzinfo is None else value.astimezone(dt.UTC)
        except OverflowError:
            # In UTC it is before the year 1 or after 9999, where no calendar of ours goes.
            return None
        return moment.isoformat(" ")
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, dt.date) else None


def _number(value: Any) -> str | None:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        return whole_text(value) or repr(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        if abs(value.adjusted()) > _DIGITS:
            # Written out, one such number would fill the memory.
            return str(value)
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    # Python refuses to write longer ones out, and would give everybody's rows up for one.
    return str(value) if isinstance(value, int) and abs(value) < _LARGEST else None
