"""Keys that nobody declared, counted where the rows are: every key that some record holds, and how many rows it has.

What a row means is a function of that row: its key as text, its cell among the known attributes, its person. Which of
a person's rows count is decided as everywhere (`dphist.sources.people`), a cell being a key and a known cell
together. What is found here is as private as the records; `dphist.private.discovery` says which keys may leave.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.sources.count import ID, column_of, needed_columns, numbers_of, tell
from dphist.sources.engine import Bound
from dphist.sources.keys import place
from dphist.sources.open import open_source
from dphist.tracebacks import closed

IntArray = npt.NDArray[np.int64]


@closed
def keys_of(source: Any, domain: Domain, unit: Unit) -> tuple[Any, IntArray]:
    """Every key of a domain's undeclared attribute, and how many rows it has in each known cell.

    Args:
        source: The records.
        domain: Which attributes there are, one of them to be discovered.
        unit: Who is protected.

    Returns:
        The keys in any order, each once, and a row of counts for each; ``take`` gives the texts of some of the keys.
    """
    unknown = domain.undeclared
    if unknown is None:
        raise SourceError("names are discovered of an attribute that says so: Nominal(…, discover=True)")
    known = [each for each in domain.attributes if each is not unknown]
    engine = open_source(source, needed_columns(domain, unit), unit)
    column = column_of(engine, unknown.name)
    if column.family not in ("text", "undeclared", "integer"):
        raise SourceError(
            f"{unknown.name}: names that are discovered must be text or whole numbers; make it text"
        )
    sizes = [each.size for each in known]
    cells = [place(each, column_of(engine, each.name), engine) for each in known]
    flat = engine.flat(cells, sizes) if known else "0"
    bound = None if unit.id is None else Bound.of(column_of(engine, unit.id, ID), unit)
    size = math.prod(sizes)
    statement = engine.keys_statement(engine.distinct_text(column), flat, bound)
    (found,) = engine.asked([statement], None if bound is None else bound.id)
    names, counts = _matrix(found, size)
    tell(source, engine, known, numbers_of(known, np.arange(size)), counts.sum(axis=0))
    return names, counts


def _matrix(found: Any, cells: int) -> tuple[Any, IntArray]:
    """Keys, each once, and a row of counts for each."""
    encoded = found.column("key").combine_chunks().dictionary_encode()
    cell, rows = (found.column(name).to_numpy().astype(np.int64) for name in ("cell", "n"))
    names = encoded.dictionary
    # Keys times known cells that are held at once.
    if len(names) * cells > 2**28:
        raise SourceError(
            "the known attributes have too many combinations to be held for every name; leave some out"
        )
    counts = np.zeros((len(names), cells), dtype=np.int64)
    np.add.at(counts, (encoded.indices.to_numpy(), cell), rows)
    return names, counts
