"""Values for arguments: what an annotation asks for, junk of every kind, and the one inside of the other.

An annotation is read as it is written (``Sequence[str] | None``), so that names which exist for type checkers only are
understood too. Words and numbers are drawn near those that mean something here: attributes, mechanisms, conditions.
"""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import typing
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dphist_bench.fuzz import pool

Values = st.SearchStrategy[Any]

_WORDS = [
    "age", "sex", "day", "x", "people", "F", "M", "laplace", "auto", "privelet", "blocks(smooth)", "marginals",
    "ranges", "cells", "prefixes", "marginals:2", "marginals:age,sex", "age = 3", "age between 1 and 2",
    "sex in (F, M)", "age >= 2 and sex = F", "select count(*) from cells", "select * from cells where age > 1",
    "release.parquet",
    "missing.parquet", "rows.csv", "schema.toml", "budget.db", "2024-01-02", "1/2", "0.1", "1e999", "nan", "-inf", "",
    " ", "\x00", "\ud800", "9" * 5000, "1/0", "é", "a,b", '"', "'; drop table cells; --", "((((", "laplace(", "%s{}",
]  # fmt: skip
_NAMES = ["age", "sex", "day", "x"]
_NUMBERS = [0, 1, -1, 2, 3, 10, 64, 255, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64, 2**70, 10**400]


@cache
def text() -> Values:
    """Words that mean something, and any others; none of them names a file outside of the folder."""
    odd = st.text(st.characters(exclude_characters="/\\"), max_size=6)
    return st.one_of(st.sampled_from(_WORDS), odd)


@cache
def whole() -> Values:
    """Whole numbers, most of them small."""
    return st.one_of(st.integers(0, 12), st.sampled_from(_NUMBERS), st.integers(-(2**66), 2**66))


@cache
def real() -> Values:
    """Numbers of every kind that Python and NumPy have."""
    return st.one_of(
        st.floats(0, 1),
        st.floats(),
        whole(),
        st.fractions(),
        st.sampled_from([Fraction(1, 2), Fraction(10**400, 3), Fraction(1, 10**400), Decimal("0.1"), Decimal("NaN")]),
        st.sampled_from([np.int64(3), np.float32(0.1), np.float64("nan"), np.uint8(1), np.bool_(True)]),
    )  # fmt: skip


@cache
def array() -> Values:
    """Small arrays of every type and shape, empty ones and ones without an axis among them."""
    kinds = st.sampled_from(["i8", "f8", "u1", "?", "f4", "U2", "M8[D]", "c16", "O"])
    shape = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)

    def filled(kind: str) -> Values:
        if kind == "O":
            return arrays.arrays("O", shape, elements=leaf())
        return arrays.arrays(kind, shape)

    fitting = st.sampled_from([(8,), (8, 2), (4, 2), (3,)]).flatmap(
        lambda sides: arrays.arrays("i8", sides, elements=st.integers(-3, 1000))
    )
    return st.one_of(fitting, kinds.flatmap(filled))


@cache
def leaf() -> Values:
    """One thing of any kind."""
    return st.one_of(
        st.none(), st.booleans(), real(), text(), st.binary(max_size=3), st.complex_numbers(),
        st.dates(), st.datetimes(), st.times(), st.timedeltas(),
        st.sampled_from([..., object(), len, int, Path("x"), Path(), range(3), range(0), NotImplemented, dt, print]),
        st.sampled_from(pool.values()),
    )  # fmt: skip


@cache
def junk() -> Values:
    """Things of any kind, inside of each other in any way."""
    keys = st.one_of(text(), st.integers(), st.none(), st.tuples(st.integers()))

    def around(inner: Values) -> Values:
        few = st.lists(inner, max_size=3)
        return st.one_of(
            few,
            few.map(tuple),
            few.map(iter),
            st.dictionaries(keys, inner, max_size=3),
            st.frozensets(st.one_of(st.integers(), st.text(max_size=2)), max_size=3),
        )

    return st.one_of(leaf(), array(), st.recursive(leaf(), around, max_leaves=5))


def argument(parameter: inspect.Parameter, function: Any, *, odd: bool) -> Values:
    """What ought to work for a parameter; if odd, what its annotation asks for, or junk, or the one in the other."""
    if odd:
        return _mostly(_asked(parameter, function))
    note = parameter.annotation
    if isinstance(note, str) and note.split(" |")[0] in _CALM:
        return _CALM.get(parameter.name, _CALM[note.split(" |")[0]])()
    return _CALM[parameter.name]() if parameter.name in _CALM else _asked(parameter, function)


@st.composite
def _mostly(draw: st.DrawFn, asked: Values) -> Any:
    # Not by `one_of`, which would give every kind of junk the weight of what is asked for.
    return draw(asked if draw(st.integers(0, 5)) else junk())


def _asked(parameter: inspect.Parameter, function: Any) -> Values:
    by_name = _NAMED.get(parameter.name)
    if by_name is not None:
        return by_name()
    note = parameter.annotation
    if note is inspect.Parameter.empty:
        return junk()
    written = note if isinstance(note, str) else getattr(note, "__name__", "Any")
    scope = getattr(inspect.unwrap(getattr(function, "__init__", function)), "__globals__", {})
    scope = scope | getattr(inspect.unwrap(function), "__globals__", {})
    return _meant(ast.parse(written, mode="eval").body, scope)


def _meant(node: ast.expr, scope: dict[str, Any]) -> Values:
    """The values that an annotation speaks of."""
    match node:
        case ast.BinOp(left=left, right=right):
            return st.one_of(_meant(left, scope), _meant(right, scope))
        case ast.Constant(value=None):
            return st.none()
        case ast.Constant(value=str(inner)):
            return _meant(ast.parse(inner, mode="eval").body, scope)
        case ast.Subscript(value=outer, slice=inner):
            return _inside(_last(outer), inner, scope)
        case ast.Name() | ast.Attribute():
            return _of(_last(node), scope)
    return junk()


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _inside(outer: str, inner: ast.expr, scope: dict[str, Any]) -> Values:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if outer == "Literal":
        return st.sampled_from([ast.literal_eval(part) for part in parts])
    if outer in ("Mapping", "dict"):
        key, value = (_meant(part, scope) for part in parts)
        hashable = key if _last(parts[0]) == "str" else st.integers()
        return st.dictionaries(hashable, _mostly(value), max_size=3)
    if outer == "tuple" and not (len(parts) == 2 and isinstance(parts[1], ast.Constant)):
        return st.tuples(*(_meant(part, scope) for part in parts))
    if outer in ("Sequence", "Iterable", "list", "tuple", "Iterator"):
        one = _meant(parts[0], scope)
        return st.lists(_mostly(one), max_size=4).map(tuple if outer == "tuple" else list)
    return _of(outer, scope)


def _of(name: str, scope: dict[str, Any]) -> Values:
    plain = _PLAIN.get(name)
    if plain is not None:
        return plain()
    alike = pool.of(name)
    if alike:
        return st.sampled_from(alike)
    alias = scope.get(name)
    if typing.get_origin(alias) is typing.Literal:
        return st.sampled_from(typing.get_args(alias))
    return junk()


def _conditions() -> Values:
    several = st.lists(st.one_of(text(), whole()), max_size=3)
    one = st.one_of(whole(), text(), st.tuples(whole(), whole()), several, junk())
    return st.dictionaries(st.sampled_from(_NAMES), one, max_size=3)


def _paths() -> Values:
    return st.one_of(st.sampled_from(pool.FILES), text())


_PLAIN: dict[str, Callable[[], Values]] = {
    "int": whole, "float": real, "str": text, "bool": st.booleans, "Number": real, "Fraction": st.fractions,
    "Any": junk, "object": junk, "Path": _paths, "PathLike": _paths, "ArrayLike": array, "NDArray": array,
    "IntArray": array, "FloatArray": array, "BoolArray": array,
    "range": lambda: st.sampled_from([range(3), range(0), range(0, 10, 2)]),
    "Callable": lambda: st.sampled_from([len, print, lambda *_: None]),
}  # fmt: skip
# By what it is called, where the annotation says too little.
_NAMED: dict[str, Callable[[], Values]] = {
    "where": _conditions,
    "conditions": _conditions,
    "epsilon": lambda: st.one_of(st.sampled_from([1, "1/10", 0.5, Fraction(1, 3)]), real(), text()),
    "source": lambda: st.one_of(st.sampled_from([*pool.sources(), *pool.of("Histogram")]), _paths(), junk()),
    "records": lambda: st.one_of(st.sampled_from(pool.sources()), junk(), whole()),
    "path": _paths,
}
# What ought to work, for those arguments of a call that are not meant to be odd.
_CALM: dict[str, Callable[[], Values]] = {
    "epsilon": lambda: st.sampled_from([1, "1/10", 0.5, Fraction(1, 3)]),
    "confidence": lambda: st.sampled_from([0.5, 0.9, 0.95]),
    "trials": lambda: st.integers(1, 2),
    "source": lambda: st.sampled_from(pool.of("Histogram")),
    "counts": lambda: st.sampled_from([np.arange(8), np.ones((8, 2), dtype=np.int64)]),
    "mechanism": lambda: st.sampled_from(["laplace", "auto", "privelet", *pool.of("Mechanism")]),
    "workload": lambda: st.sampled_from([None, "ranges", "cells", *pool.of("Workload")]),
    "name": lambda: st.sampled_from(_NAMES),
    "names": lambda: st.lists(st.sampled_from(_NAMES), max_size=2, unique=True),
    "where": lambda: st.sampled_from([None, {"age": 3}, {"age": (1, 2)}, {"age": (0, 3), "sex": "F"}]),
    "rows": lambda: st.sampled_from([1, 2]),
    "ledger": st.none,
    "dataset": lambda: st.just("people"),
    "path": lambda: st.just("release.parquet"),
    "int": lambda: st.integers(1, 6),
    "float": lambda: st.sampled_from([0.1, 0.5, 1.0, 2]),
}
