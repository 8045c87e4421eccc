"""Bugs planted where keys are discovered: the threshold, its chance, what is charged and what is written down."""

from __future__ import annotations

from typing import Any

_DISCOVERY = "src/dphist/private/discovery.py"
_TAILS = "src/dphist/private/noise/tails.py"
_DOOR = "src/dphist/publishing/discovering.py"
_HASHED = "src/dphist/sources/hashed.py"
_SOURCE = "src/dphist/sources/discovering.py"


def _bug(file: str, old: str, new: str, why: str) -> dict[str, Any]:
    tests = (
        "tests/door/test_newer_doors.py",
        "tests/door/test_discovering.py",
        "-k",
        "not postgres and not spark",
    )
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


MUTANTS = [
    _bug(
        _DISCOVERY,
        "return (unit.per_cell or 1) + least_reach(kind, size, delta / (unit.cells * cells))",
        "return (unit.per_cell or 1) + least_reach(kind, size, delta / unit.cells)",
        "with known attributes a key has many chances to pass",
    ),
    _bug(
        _DISCOVERY,
        "return (unit.per_cell or 1) + least_reach(kind, size, delta / (unit.cells * cells))",
        "return 1 + least_reach(kind, size, delta / (unit.cells * cells))",
        "the threshold forgets that several rows of a person lie in a cell",
    ),
    _bug(
        _DISCOVERY,
        "level = max(level, each + least_reach(kind, size, delta / (keys * cells)))",
        "level = max(level, each + least_reach(kind, size, delta / keys))",
        "without cells of a unit, too, a key has many chances to pass",
    ),
    _bug(
        _DISCOVERY,
        "return rows + furthest",
        "return furthest",
        "people of very many rows show keys of their own",
    ),
    _bug(
        _DISCOVERY,
        "kept = sort(np.flatnonzero((noisy >= level).any(axis=1)))",
        "kept = sort(np.flatnonzero((noisy >= level - 1).any(axis=1)))",
        "the threshold is one too low",
    ),
    _bug(
        _DISCOVERY,
        "kept = sort(np.flatnonzero((noisy >= level).any(axis=1)))",
        "kept = np.flatnonzero((noisy >= level).any(axis=1))",
        "the order in which an engine found the keys leaves",
    ),
    _bug(
        _DISCOVERY,
        "return np.ascontiguousarray(arrange(noisy[kept]))",
        "return np.ascontiguousarray(arrange(counts[kept]))",
        "keys that pass are published with their true counts",
    ),
    _bug(
        _DISCOVERY,
        "return Purse.of(budget, unit).price(",
        "return Purse.of(budget, Unit()).price(",
        "keys of a person of many rows get the noise of one",
    ),
    _bug(
        _DISCOVERY, "transcript = Transcript(pay=pay)", "transcript = Transcript()", "keys are never paid for"
    ),
    _bug(
        _TAILS,
        "return Fraction(first, _ONE - shrinks) / max(Fraction(1), _ROOT * deviation)",
        "return Fraction(first, _ONE) / max(Fraction(1), _ROOT * deviation)",
        "the tail of Gaussian noise ends after its first term",
    ),
    _bug(
        _DOOR,
        "unit=protected, purpose=purpose, delta=chance)",
        "unit=protected, purpose=purpose)",
        "the ledger is not told of the delta of keys",
    ),
    _bug(
        _DOOR,
        "keys, counts = keys_of(source, domain, protected)",
        "keys, counts = keys_of(source, domain, Unit())",
        "keys are counted as if nobody were bounded",
    ),
    _bug(
        _DOOR,
        "Guarantee(budget, protected, chance, level),",
        "Guarantee(budget, Unit(), chance, level),",
        "a release of discovered keys promises something to somebody else",
    ),
    _bug(
        _SOURCE,
        'raise SourceError(\n            f"{unknown.name}: keys that are discovered must be text or whole numbers; make it text"\n        )',
        "pass",
        "keys of types that an engine writes in its own way",
    ),
    _bug(
        _SOURCE,
        "bound = None if unit.id is None else Bound.of(column_of(engine, unit.id), unit)",
        "bound = None",
        "where keys are discovered nobody's rows are bounded",
    ),
    _bug(
        _HASHED,
        "if (ordered[1:] == ordered[:-1]).any():\n        return None",
        "",
        "keys whose hashes collide are counted as one",
    ),
    _bug(
        _HASHED,
        "answers.append(counted(*pairs, bound, starts))",
        "answers.append(counted(*pairs, Bound(bound.id, bound.rows + 1, bound.cells, bound.per_cell), starts))",
        "where keys are hashed a person keeps one row more",
    ),
]
