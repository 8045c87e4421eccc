"""The labels of cells as columns that other tools filter by: numbers as numbers, days as days, a column a level.

An attribute is one column under its own name, and where that is no number or day, columns beside it say what a program
needs: ``income_low`` and ``income_high`` for bins and for spans of days (from the first, up to but not including the
second; the very last bin holds its upper edge), ``place_1``, ``place_2``, … for the levels of a hierarchy, coarsest
first. The cell of everything else (``other=True``) has no number: there the columns are empty, and a text says "other".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.extras import need
from dphist.model.domain import Domain, Nominal
from dphist.model.domain.ordinal import OTHER
from dphist.model.domain.scales import LARGEST, Bins, Dates, Integers
from dphist.model.domain.zones import UTC

if TYPE_CHECKING:
    import pandas
    import pyarrow

IntArray = NDArray[np.signedinteger[Any]]

_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, eq=False)
class Column:
    """One column of labels."""

    name: str
    axis: int
    """Which attribute it says something of."""
    words: str
    """What it says, for people."""
    size: int
    """How many cells the attribute has."""
    make: Callable[[IntArray], pyarrow.Array]
    """The value of some cells of the attribute."""

    def every(self) -> pyarrow.Array:
        """The value of each of the attribute's cells, in order."""
        return self.make(np.arange(self.size, dtype=np.int64))

    def rows(self, places: IntArray) -> pyarrow.Array:
        """The value for every row, given the attribute's cell of each; none where that is negative."""
        return self.placed(*_used(places))

    def placed(self, used: IntArray, index: IntArray, missing: NDArray[np.bool_] | None) -> pyarrow.Array:
        """The value of these cells at every row, given which of them each row has.

        Texts come as a dictionary of those that some row has; an attribute may have far more values than that.
        """
        import pyarrow as pa

        values = self.make(used)
        if pa.types.is_string(values.type):
            numbers: dict[str, int] = {}
            codes = [numbers.setdefault(text, len(numbers)) for text in values.to_pylist()]
            if len(numbers) < len(codes):
                index = np.array(codes, dtype=np.int32)[index]
            return pa.DictionaryArray.from_arrays(as_arrow(index, missing=missing), text_array(list(numbers)))
        if is_plain(values) and used.size:
            return as_arrow(np.from_dlpack(values)[index], missing=missing)
        return values.take(as_arrow(index, missing=missing))


def label_columns(domain: Domain) -> list[Column]:
    """The columns of a domain's labels, attribute by attribute."""
    taken = set(domain.names)
    columns = []
    for axis, attribute in enumerate(domain.attributes):
        for suffix, words, make in _parts(attribute):
            name = attribute.name + suffix
            if suffix:
                name = free(name, taken)
                taken.add(name)
            columns.append(Column(name, axis, words, attribute.size, make))
    return columns


def own_values(domain: Domain, name: str) -> NDArray[Any]:
    """The cells of an attribute as records have them: whole numbers, days, yes or no; else, and for others, labels."""
    axis, labels = domain.axis(name), domain.attribute(name).labels
    typed = next(column for column in label_columns(domain) if column.axis == axis).every().to_pylist()
    values = [label if value is None else value for value, label in zip(typed, labels, strict=True)]
    alike = type(values[0]) in (bool, int) and len({type(value) for value in values}) == 1
    return np.array(values, dtype=type(values[0]) if alike else object)


def _used(places: IntArray) -> tuple[IntArray, IntArray, NDArray[np.bool_] | None]:
    """The different cells of some rows, which of them each row has, and which rows have none (below zero)."""
    low, high = (int(places.min()), int(places.max())) if places.size else (0, -1)
    missing = places < 0 if low < 0 else None
    if high - low > 2 * places.size:
        used, index = np.unique(places, return_inverse=True)
    else:
        come = np.zeros(high - low + 1, dtype=bool)
        come[places - low if low else places] = True
        used, index = np.flatnonzero(come) + low, places
        if used.size < come.size or low:
            index = (np.cumsum(come) - 1)[places - low]
    if missing is not None:
        used, index = used[1:], np.maximum(index - 1, 0)
    return used, index.astype(np.int32, copy=False), missing


def free(name: str, taken: set[str]) -> str:
    """A name that no attribute and no other column has."""
    while name in taken:
        name += "_"
    return name


def number_names(domain: Domain, *more: str) -> dict[str, str]:
    """What the columns of numbers are called, by what they hold: no column of labels has the same name."""
    taken, names = {column.name for column in label_columns(domain)}, {}
    for name in (*more, "estimate", "low", "high"):
        names[name] = free(name, taken)
        taken.add(names[name])
    return names


def label_rows(labels: Sequence[Column], places: Sequence[NDArray[Any]]) -> dict[str, pyarrow.Array]:
    """Every label column for some rows, given each row's cell on every axis."""
    used = [_used(each) for each in places]
    return {column.name: column.placed(*used[column.axis]) for column in labels}


def written_out(columns: Mapping[str, pyarrow.Array]) -> dict[str, pyarrow.Array]:
    """The same, texts of a dictionary written out."""
    return {
        name: column.dictionary_decode() if hasattr(column, "dictionary") else column
        for name, column in columns.items()
    }


def to_frame(columns: Mapping[str, pyarrow.Array]) -> pandas.DataFrame:
    """Arrow columns as a pandas data frame: days as days, and whole numbers whole where some are missing."""
    pd = need("pandas", "frames")
    import pyarrow as pa

    made = {}
    for name, column in columns.items():
        if column.null_count and pa.types.is_integer(column.type):
            made[name] = column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        elif column.null_count and pa.types.is_boolean(column.type):
            made[name] = column.to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
        else:
            made[name] = column.to_pandas(date_as_object=False)
    return pd.DataFrame(made)


Part = tuple[str, str, Callable[[IntArray], Any]]


def _parts(attribute: Any) -> Iterator[Part]:
    """What is said of an attribute's cells: a suffix of its name, words, and the values."""
    if isinstance(attribute, Nominal):
        yield from _nominal(attribute)
        return
    scale, empty = attribute.scale, "; empty: any other value" if attribute.other else ""
    inside = scale.size

    def texts(places: IntArray) -> Any:
        labels = attribute.labels
        return text_array([labels[int(place)] for place in places])

    match scale:
        case Integers(values=values):

            def numbers(places: IntArray) -> Any:
                return as_arrow(values.start + values.step * places, missing=places >= inside)

            yield "", f"a whole number{empty}", numbers
        case Dates(days=1):

            def days(places: IntArray) -> Any:
                first = scale.start.toordinal() - _EPOCH
                return _days(first + places, places >= inside)

            yield "", f"a day{_place(scale)}{empty}", days
        case Bins() | Dates():
            yield "", f"the range of the cell{_place(scale)}", texts
            for suffix, words, step in (("_low", "from", 0), ("_high", "up to", 1)):
                of = _edges(scale, step) if isinstance(scale, Bins) else _begins(scale, step)
                yield suffix, f"{words}{' (not included)' if step else ' (included)'}{empty}", of
        case _:
            yield "", "a category; categories have an order", texts


def _place(scale: Bins | Dates) -> str:
    """Whose days they are, where that is not UTC."""
    return f"; days in {scale.zone}" if isinstance(scale, Dates) and scale.zone != UTC else ""


def _nominal(attribute: Nominal) -> Iterator[Part]:
    categories, inside = attribute.categories, len(attribute.categories)
    empty = "; empty: any other value" if attribute.other else ""
    kind = type(categories[0])

    def typed(places: IntArray) -> Any:
        import pyarrow as pa

        if kind is str or (kind is int and max(map(abs, map(int, categories))) > LARGEST):
            return text_array([OTHER if p == inside else str(categories[int(p)]) for p in places])
        missing = np.asarray(places) == inside
        listed = np.array([kind(0) if p == inside else categories[int(p)] for p in places], dtype=kind)
        if kind is int:
            return as_arrow(listed.astype(np.int64), missing=missing)
        packed = np.packbits(listed, bitorder="little")
        return pa.Array.from_buffers(
            *(pa.bool_(), listed.size),
            [pa.py_buffer(np.packbits(~missing, bitorder="little")), pa.py_buffer(packed)],
        )

    words = {str: "a category", bool: "yes or no", int: "a category, a whole number"}[kind]
    yield "", words + (empty if kind is not str else ""), typed
    tree = attribute.hierarchy
    leaves = tree.leaves
    for level in range(1, tree.levels - 1):
        above = leaves.copy()
        while bool((deep := tree.depth[above] > level).any()):
            above = np.where(deep, tree.parent[above], above)
        # A category that hangs higher up stands for itself further down.
        names = [tree.names[node] for node in above]

        def groups(places: IntArray, names: list[str] = names) -> Any:
            return text_array([names[int(place)] for place in places])

        yield f"_{level}", f"the group at level {level} of {attribute.name}, 1 being the coarsest", groups


def _edges(scale: Bins, step: int) -> Callable[[IntArray], Any]:
    def edges(places: IntArray) -> Any:
        outside = places >= scale.size
        made: NDArray[Any]
        if isinstance(scale.edges, range):
            made = scale.edges.start + scale.edges.step * (places + step)
        else:
            whole = all(isinstance(edge, int) for edge in scale.edges)
            known = np.array(scale.edges, dtype=np.int64 if whole else np.float64)
            made = known[np.minimum(places + step, scale.size)]
        return as_arrow(made, missing=outside)

    return edges


def _begins(scale: Dates, step: int) -> Callable[[IntArray], Any]:
    def begins(places: IntArray) -> Any:
        days = [scale.begin(int(place) + step).toordinal() - _EPOCH for place in places]
        return _days(np.array(days, dtype=np.int64), places >= scale.size)

    return begins


def _days(days: IntArray, missing: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return as_arrow(days.astype(np.int32), kind=pa.date32(), missing=missing)


def text_array(texts: list[str]) -> Any:
    """Texts as Arrow has them: `pa.array` would look whether pandas is there, and load it."""
    import pyarrow as pa

    coded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        return pa.array(texts, pa.string())
    places = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(coded), [None, places, pa.py_buffer(b"".join(coded))])


def as_arrow(values: NDArray[Any], *, kind: Any = None, missing: NDArray[np.bool_] | None = None) -> Any:
    """Hand numbers to Arrow as they lie in memory: no copy, and pandas is not loaded (which `pa.array` would do)."""
    import pyarrow as pa

    whole = np.ascontiguousarray(values)
    known = None
    if missing is not None and bool(missing.any()):
        known = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(
        kind or pa.from_numpy_dtype(whole.dtype), whole.size, [known, pa.py_buffer(whole)]
    )


def is_plain(values: pyarrow.Array) -> bool:
    """Whether a column holds numbers and nothing is missing."""
    import pyarrow as pa

    return not values.null_count and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
