"""Bugs planted in the gate over records: tables and residuals, codes, and what is counted of them."""

from __future__ import annotations

from typing import Any

_TABLES = "src/dphist/private/queries/tables.py"
_SCORE = "src/dphist/private/scores/tables.py"
_HELD = "src/dphist/private/held.py"
_RECORDS = "src/dphist/private/records.py"
_COUNTING = "src/dphist/private/queries/counting.py"
_DEPENDENCE = "src/dphist/private/queries/dependence.py"
_MERGING = "src/dphist/private/merging.py"
_MERGED = "tests/private/test_merging.py"
_SQL = "src/dphist/sources/sql.py"
_DUCK = "src/dphist/sources/duck.py"
_CODED = "src/dphist/sources/coded.py"
_KERNEL = "src/dphist/kernels/tables.py"
_GATE = "tests/private/test_records.py"
_KERNEL_DOOR = "src/dphist/model/coded.py"
_WIDE = "src/dphist/publishing/wide.py"
_DOOR = "tests/door/test_newer_doors.py tests/door/test_wide.py"
_LAWS = "tests/private/test_laws.py"
_ENGINES = "tests/door/test_engines.py::test_coded_records_give_the_tables_of_the_cube[duckdb]"


def _bug(file: str, old: str, new: str, tests: str, why: str) -> dict[str, Any]:
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


MUTANTS = [
    _bug(
        _COUNTING,
        "            low = np.minimum(low, 2 * self.height - low)",
        "            low = np.minimum(low, 4 * self.height - 2 * low)",
        _LAWS,
        "tents fall by two for a record",
    ),
    _bug(
        _DEPENDENCE,
        '"""Four for each pair."""\n        return Fraction(4 * len(self.tables))',
        '"""Four for each pair."""\n        return Fraction(len(self.tables))',
        _LAWS,
        "dependence moves by more than one: the margins move too",
    ),
    _bug(
        _DEPENDENCE,
        "        return Fraction(len(self.tables))\n\n    def variances",
        "        return Fraction(1)\n\n    def variances",
        _LAWS,
        "distances of several tables move together",
    ),
    _bug(
        _MERGING,
        "owned = tuple(own_array(group) for group in groups)",
        "owned = tuple(groups)",
        _MERGED,
        "groups can be changed after they were checked",
    ),
    _bug(
        _TABLES,
        "return each_table([1 / share for share in self.shares], sizes)",
        "return each_table([Fraction(1)] * len(self.shares), sizes)",
        f"{_GATE} {_LAWS}",
        "every table is noised as if it were the only one",
    ),
    _bug(
        _TABLES,
        "moved = [math.prod(2 * (size - 1) for size in shape) for shape in shapes]",
        "moved = [math.prod(size - 1 for size in shape) for shape in shapes]",
        f"{_GATE} {_LAWS}",
        "the other entries that a residual moves are forgotten in L1",
    ),
    _bug(
        _TABLES,
        "moved = [math.prod(size * (size - 1) for size in shape) for shape in shapes]",
        "moved = [math.prod((size - 1) ** 2 for size in shape) for shape in shapes]",
        f"{_GATE} {_LAWS}",
        "the other entries that a residual moves are forgotten in L2",
    ),
    _bug(
        _TABLES,
        "if sum(shares) > 1:",
        "if sum(shares) > 2:",
        f"{_GATE}::test_questions_that_would_break_the_promise_are_refused",
        "shares of tables may be more than the whole",
    ),
    _bug(
        _TABLES,
        "if len(shares) != tables or any(not isinstance(share, Fraction) or share <= 0 for share in shares):",
        "if len(shares) != tables:",
        f"{_GATE}::test_questions_that_would_break_the_promise_are_refused",
        "a negative share makes room for a larger one",
    ),
    _bug(
        _TABLES,
        'return "any" if any(self.differences) else "alike"',
        'return "alike"',
        f"{_LAWS} tests/private/test_records.py::test_differences_do_not_meet_alike",
        "differences have weights of both signs, and a replaced row moves 2, not √2",
    ),
    _bug(
        _TABLES,
        "if any(layout.shape[axis] != 2 for axis in chosen):",
        "if any(layout.shape[axis] < 2 for axis in chosen):",
        f"{_GATE}::test_differences_stand_for_both_values",
        "differences along longer axes have answers without noise of their own",
    ),
    _bug(
        _SCORE,
        "most = 2 if self.weights is None",
        "most = 1 if self.weights is None",
        f"{_GATE} {_LAWS}",
        "distances go up and down, and their range is 2",
    ),
    _bug(
        _SCORE,
        "left = np.delete(left, int(chosen[0]))",
        "pass",
        f"{_GATE} {_LAWS}",
        "a table is chosen twice",
    ),
    _bug(
        _HELD,
        "return [np.minimum(table, ceiling(table.shape)) for table in found]",
        "return list(found)",
        f"{_GATE}::test_counts_beyond_the_ceiling_do_not_overflow",
        "sums overflow where counts are large: a data-dependent answer",
    ),
    _bug(
        _RECORDS,
        "if not isinstance(query, _ASKED):",
        "if False:",
        f"{_GATE}::test_only_questions_about_tables_are_asked",
        "a question about cells is paid for before it is refused",
    ),
    _bug(
        _SQL,
        'kept = self.chosen(placed, names, [], self.first_bits("person"), bound)',
        'kept = self.chosen(placed, names, [], self.start("person"), bound)',
        _ENGINES,
        "an engine that has the hash of an id the other way round keeps other rows than the rest",
    ),
    _bug(
        _SQL,
        "placed = f\"SELECT person, {listed} FROM ({inner}) AS rows_of{where(['person IS NOT NULL', *known])}\"",
        "placed = f\"SELECT person, {listed} FROM ({inner}) AS rows_of{where(['person IS NOT NULL'])}\"",
        _ENGINES,
        "rows without a cell take the places of rows that have one",
    ),
    _bug(
        _CODED,
        "return engine, keys, None if unit.id is None else Bound.of(column_of(engine, unit.id), unit)",
        "return engine, keys, None",
        _ENGINES,
        "people's rows are not bounded when records are coded",
    ),
    _bug(
        _KERNEL,
        "same = length == ways - 1",
        "same = length > 0",
        "tests/kernels/test_table_counts.py",
        "cells of a table are those of another with a longer prefix",
    ),
    _bug(
        _KERNEL_DOOR,
        "        done(block.shape[1])\n    found",
        "            count_tables(np.ascontiguousarray(block[:, :1]), sizes, flat, starts, offsets, out, _BLOCK)\n"
        "        done(block.shape[1])\n    found",
        f"{_GATE} tests/kernels/test_table_counts.py",
        "a record is counted twice in every table",
    ),
    _bug(
        _RECORDS,
        "purse = Purse.of(Budget.of(budget), unit)",
        "purse = Purse.of(Budget.of(budget), Unit())",
        _GATE,
        "the gate over records forgets the unit",
    ),
    _bug(
        _RECORDS,
        "purse = replace(right._purse, change=right._purse.change.merged())",
        "purse = right._purse",
        f"{_MERGED} tests/private/test_rho.py",
        "merged values still count as apart",
    ),
    _bug(
        _RECORDS,
        "if not isinstance(score, _CHOSEN):",
        "if False:",
        f"{_GATE}::test_only_questions_about_tables_are_asked",
        "a choice about cells is paid for before it is refused",
    ),
    _bug(
        _RECORDS,
        "transcript = Transcript(pay=pay)",
        "transcript = Transcript()",
        f"{_GATE} {_DOOR}",
        "tables are never paid for",
    ),
    _bug(
        _TABLES,
        "return each_table(\n            [move / share for move, share in zip(moved, self.shares, strict=True)],\n"
        "            list(map(math.prod, shapes)),\n        )\n\n    def variances",
        "return each_table(\n            [Fraction(move) for move in moved],\n"
        "            list(map(math.prod, shapes)),\n        )\n\n    def variances",
        f"{_GATE} {_LAWS}",
        "every residual is noised as if it were the only one",
    ),
    _bug(
        _TABLES,
        "table = size * table - table.sum(axis=place, keepdims=True)",
        "table = size * table - (size - 1) * table.sum(axis=place, keepdims=True)",
        f"{_GATE} {_LAWS}",
        "a residual has another coefficient than its noise was made for",
    ),
    _bug(
        _MERGING,
        "not np.array_equal(np.unique(group), np.arange(int(group.max()) + 1))",
        "False",
        _MERGED,
        "groups with gaps have cells that nobody can be in",
    ),
    _bug(
        _CODED,
        "flat, rows, _ = occupied(source, domain, unit)",
        "flat, rows, _ = occupied(source, domain, Unit())",
        "tests/door/test_bounding_by_cell.py::"
        "test_through_sqlite_coded_records_are_bounded_and_those_without_a_cell_left_out",
        "through Ibis people's rows are not bounded when records are coded",
    ),
    _bug(
        _CODED,
        "        if held > room:\n            return Passes(source, domain, unit)\n",
        "        if held > room:\n            return Passes(source, domain, Unit())\n",
        _ENGINES,
        "records too many to be held are not bounded",
    ),
    _bug(
        _CODED,
        "return HistogramTables(pass_through(source, domain, unit))",
        "return HistogramTables(source)",
        "tests/door/test_wide.py tests/private/test_records.py",
        "a histogram is taken for bounded records",
    ),
    _bug(
        _WIDE,
        "records = coded(source, domain, unit)",
        "records = coded(source, domain)",
        _DOOR,
        "tables are counted as if nobody were bounded",
    ),
    _bug(
        _WIDE,
        "right, transcript = open_records_gate(records, budget, unit, workload",
        "right, transcript = open_records_gate(records, budget, Unit(), workload",
        _DOOR,
        "tables are noised for one row",
    ),
    _bug(
        _WIDE,
        "        Guarantee(budget, unit),\n",
        "        Guarantee(budget, Unit()),\n",
        _DOOR,
        "a release of tables promises something to somebody else",
    ),
]
