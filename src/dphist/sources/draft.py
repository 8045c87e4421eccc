"""Drafting a schema from a file's column names and types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dphist.errors import SourceError
from dphist.model.domain.toml import quote
from dphist.sources.engine import Column
from dphist.sources.open import open_path
from dphist.tracebacks import closed

_HEAD = """\
# What each attribute means: its bounds, bins or categories.
#
# In each attribute uncomment one of the lines below "choose" and put your own values in it. Only the names and
# types of columns were taken from the file. Bounds and categories must come from what everybody knows (a code book, the
# law, common sense), never from the records: the oldest age or the rarest category would tell about somebody
# before any noise is added.
#
# Rows outside are dropped; add "other = true" to count them together, as "other". Delete the attributes you
# do not need.
"""

_CHOICES = {
    "integer": [
        ("ordinal", "# range = [0, 100]            # the integers 0..99, each counted by itself"),
        ("ordinal", "# edges = [0, 18, 65, 120]    # or bins [0, 18), [18, 65), [65, 120]"),
    ],
    "real": [("ordinal", "# edges = [0, 10, 20, 50]     # bins [0, 10), [10, 20), [20, 50]")],
    "text": [
        (
            "nominal",
            '# categories = ["a", "b"]      # or categories = {north = ["a", "b"], south = ["c"]}',
        )
    ],
    "truth": [("nominal", "categories = [false, true]")],
    "date": [
        (
            "ordinal",
            '# dates = [2024-01-01, 2025-01-01, "1mo"]   # stop excluded; days d, weeks w, months mo, years y',
        )
    ],
}


# Values that many tables hold and few columns are called.
_VALUES = {"true", "false", "yes", "no", "null", "none", "na", "n/a", "f", "m", "male", "female"}


@closed
def draft_schema(source: Any) -> str:
    """Draft a TOML schema with the names and types of a file's columns, and bounds left to fill in.

    No value is used: neither a bound nor a category is ever taken from the records. The types of Parquet
    and DuckDB columns are declared in the file. In CSV and JSON files every field is text, and the draft
    leaves open what it is.

    The names of a text file are what somebody wrote in its first line, or in its objects. A CSV file without a
    header begins with a record, so a first line is refused unread of which any field is a number, a date, an address
    or nothing, or most fields are words such as ``yes`` and ``male``; of JSON fields only those are named
    that at least half of the first thousand objects have. What is left can still be wrong (a record of words only):
    a draft is for the holder of the data, who publishes it after looking at it.
    """
    return "\n".join([_HEAD, *(_block(column) for column in columns_of(source))])


@closed
def columns_of(source: Any) -> tuple[Column, ...]:
    """The names and types of a file's columns, unless its first line looks like a record; see `draft_schema`."""
    if not isinstance(source, str | Path):
        raise SourceError("source: a schema is drafted from a path")
    engine = open_path(str(source))
    names = [column.name for column in engine.columns if column.family == "undeclared"]
    values = [place for place, name in enumerate(names, 1) if _is_value(name)]
    words = [place for place, name in enumerate(names, 1) if _may_be_value(name)]
    if values or (len(words) > 1 and 2 * len(words) > len(names)):
        # The column by its place: what stands there may be somebody's.
        raise SourceError(
            f"{source}: its first line does not look like column names: column {(values or words)[0]} looks like a "
            "value, or like nothing; a draft would show somebody's record. Put a line of names before it"
        )
    return engine.columns


def _is_value(name: str) -> bool:
    """Whether a column's name is a number, a date, an address or nothing."""
    words = name.strip()
    # Our own name for a field without one.
    if (
        re.fullmatch(r"column\d+", words)
        or re.match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", words)
        or "@" in words
    ):
        return True
    try:
        float(words)
    except ValueError:
        return not any(letter.isalpha() for letter in words)
    return True


def _may_be_value(name: str) -> bool:
    """Whether a column's name may be a value: alone it says nothing, most columns of a line do."""
    words = name.strip().lower()
    return words in _VALUES or re.match(r"\d\S*\s", words) is not None


def _block(column: Column) -> str:
    name = f"name = {quote(column.name)}"
    if column.family == "undeclared":
        lines = ["# choose what it is: numbers or dates,", 'kind = "ordinal"']
        lines += [line for family in ("integer", "date") for _, line in _CHOICES[family]]
        lines += ["# or categories, with these two lines in the place of the kind above:"]
        lines += ['# kind = "nominal"', _CHOICES["text"][0][1]]
    else:
        family = {"time": "date", "zoned time": "date"}.get(column.family, column.family)
        choices = _CHOICES.get(family)
        if choices is None:
            return f"# {column.name} holds {column.type}, which cannot be an attribute\n"
        one = "" if family == "truth" else "; choose" if len(choices) == 1 else "; choose one"
        lines = [f"# {column.type}{one}", f'kind = "{choices[0][0]}"', *(line for _, line in choices)]
        if column.family == "zoned time":
            lines.append('# zone = "Europe/Berlin"     # whose days these are; UTC unless said')
    return "\n".join(["[[attribute]]", name, *lines, ""])
