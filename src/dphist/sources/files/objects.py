"""JSON files: one object a line, or one array of objects."""

from __future__ import annotations

import json
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import IO, Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.duck.allowance import unreadable
from dphist.sources.duck.duck import table_of
from dphist.sources.files.lines import (
    LONGEST,
    Refused,
    Rows,
    Text,
    files,
    is_text,
    pieces,
    refusal,
    side_by_side,
    whole_lines,
)
from dphist.sources.sql import literal

_SPACE = b" \t\r\n"


def open_json(connection: Any, source: str, needed: Sequence[str], person: str | None = None) -> Text:
    """Open JSON files: of every object the ``needed`` fields, as text; what else it holds is not looked at.

    A field that an object lacks is missing there, and an object that is no good JSON makes no row. So which fields
    there are and what they hold in one object says nothing about another. ``person`` is the field of ids, if there are.
    """
    _refuse_unknown(connection, source, needed)
    # Weakly: DuckDB keeps the rows as long as the connection lives.
    link = weakref.proxy(connection)
    shape = json.dumps({name: "JSON" if name == person else "VARCHAR" for name in needed})
    value = "NULL" if person is None else f"struct_extract(made, {literal(person)})"
    # TRY, because to ask first whether it is good JSON would read it twice; row by row, like any function.
    made = f"SELECT TRY(json_transform(object, {literal(shape)})) AS made FROM pieces"  # noqa: S608
    asked = f"SELECT made, {_person(value)} AS person, {_several(value)} AS several FROM ({made})"  # noqa: S608

    def parsed(objects: Any) -> Any:
        """The wanted fields of some objects; what is no JSON makes no row."""
        import pyarrow

        with link.cursor() as cursor:
            cursor.register("pieces", pyarrow.table([objects], names=["object"]))
            # Once for an object, here: in the statement that counts, DuckDB would take it apart for every field.
            table = table_of(cursor, asked if person is not None else made)
        fields = table.column(0).combine_chunks()
        good = fields.is_valid()
        fields = fields.filter(good)
        columns = {name: fields.field(place) for place, name in enumerate(needed)}
        if person is not None:
            if table.column("several").to_pylist().count(True):
                raise Refused("floats")
            columns[person] = table.column("person").combine_chunks().filter(good)
        return pyarrow.record_batch(columns), 0, len(objects) - len(fields)

    def batches() -> Iterator[tuple[Any, int, int]]:
        for file in files(link, source):
            yield from _batches(file, parsed)

    def warm() -> None:
        parsed(_line_by_line(b"{}"))

    return Text(connection, "records", Rows(needed, batches), source, warm=warm)


def _person(value: str) -> str:
    """An id as `dphist.sources.people` has it: 1 and 1.0 are one, "1.0" is another, lists and fractions are nobody."""
    text, number = f"CAST({value} AS VARCHAR)", f"TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE)"
    return (
        f"CASE WHEN json_type({value}) = 'VARCHAR' THEN {value} ->> '$' "
        f"WHEN json_type({value}) IN ('ARRAY', 'OBJECT') THEN NULL "
        f"WHEN json_type({value}) <> 'DOUBLE' OR regexp_full_match({text}, '-?[0-9]+') THEN {text} "
        f"WHEN floor({number}) = {number} AND abs({number}) < 2 ** 53 "
        f"THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) END"
    )


def _several(value: str) -> str:
    """Whether an id is a float that may stand for several whole numbers."""
    text, number = f"CAST({value} AS VARCHAR)", f"TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE)"
    return (
        f"json_type({value}) = 'DOUBLE' AND NOT regexp_full_match({text}, '-?[0-9]+') "
        f"AND isfinite({number}) AND abs({number}) >= 2 ** 53"
    )


def field_names(connection: Any, source: str) -> list[str]:
    """The names of the fields that at least half of the first thousand objects have, for a custodian's draft."""
    seen: Counter[str] = Counter()
    looked = 0
    reason = None
    try:
        texts = (
            text
            for file in files(connection, source)
            for objects in _batches(file, lambda found: found)
            for text in objects
        )
        # What a few objects have, and not half of the first, may be a record of its own.
        for text in islice(texts, 1000):
            looked += 1
            try:
                seen.update(dict.fromkeys(json.loads(text.as_py()), 1))
            except ValueError:
                continue
    except Refused as refused:
        reason = refused.args[0]
    except Exception:
        reason = "unreadable"
    if reason is not None:
        raise unreadable(source) if reason == "unreadable" else refusal(source, reason)
    return [name for name, times in seen.items() if 2 * times >= looked]


def _refuse_unknown(connection: Any, source: str, needed: Sequence[str]) -> None:
    """Refuse a field whose name stands nowhere in the files: a slip of the pen, which would count nobody.

    It is a refusal on account of the records, like those of `lines`; one record that has it ends it.
    """
    left = {
        name: (json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode()) for name in needed
    }
    overlap = max((len(form) for forms in left.values() for form in forms), default=0)
    try:
        for file in files(connection, source):
            tail = b""
            while left and (piece := file.read(1 << 22)):
                piece = tail + piece
                left = {
                    name: forms for name, forms in left.items() if not any(form in piece for form in forms)
                }
                tail = piece[-overlap:]
            if not left:
                break
    except Exception:
        raise unreadable(source) from None
    if left:
        raise SourceError(f"there is no column {next(iter(left))} in {source}: no object has such a field")


def _batches(file: IO[bytes], parsed: Callable[[Any], Any]) -> Iterator[Any]:
    taken = pieces(file)
    for first in taken:
        start = first.lstrip(_SPACE)
        if start:
            break
    else:
        return
    if start.startswith(b"["):
        yield from map(parsed, _array(start[1:], taken))
    else:
        yield from side_by_side(
            lambda piece: parsed(_line_by_line(piece)), whole_lines(chain([start], taken))
        )


def _line_by_line(piece: bytes) -> Any:
    from dphist.kernels.objects import FIRST

    return _split(piece if piece.endswith(b"\n") else piece + b"\n", False, FIRST)[0]


def _array(piece: bytes, taken: Iterator[bytes]) -> Iterator[Any]:
    from dphist.kernels.objects import FIRST, OVER

    stand, left = FIRST, piece
    while True:
        objects, left, stand = _split(left, True, stand)
        if len(objects):
            yield objects
        more = next(taken, None)
        if more is None:
            break
        left += more
    if stand != OVER or left.strip(_SPACE):
        raise Refused("object")


def _split(piece: bytes, array: bool, stand: int) -> tuple[Any, bytes, int]:
    """The objects of a piece as texts, what is left of it, and where the reader stands."""
    import pyarrow

    from dphist.kernels.objects import DEEP, FINE, LONG, split_objects

    text = np.frombuffer(piece, dtype=np.uint8).copy()
    starts = np.empty(int(np.count_nonzero(text == 123)) + 1, dtype=np.int32)
    found, rest, stand, verdict = split_objects(text, array, stand, LONGEST, starts)
    if verdict != FINE:
        raise Refused({LONG: "long", DEEP: "deep"}.get(verdict, "object"))
    starts[found] = rest
    begin = int(starts[0])
    if is_text(text[begin:rest].tobytes()):
        objects = pyarrow.StringArray.from_buffers(
            found, pyarrow.py_buffer(starts[: found + 1]), pyarrow.py_buffer(text), None, 0
        )
    else:
        each = (text[one:other].tobytes() for one, other in pairwise(starts[: found + 1].tolist()))
        objects = pyarrow.array([one.decode() for one in each if is_text(one)], pyarrow.string())
    return objects, piece[rest:], stand
