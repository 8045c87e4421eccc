"""Mutants of the sources: what lets one person's rows move others', or be more than the unit says."""

_PEOPLE = "src/dphist/sources/people.py"
_COUNT = "src/dphist/sources/count.py"
_KEYS = "src/dphist/sources/keys.py"
_DUCK = "src/dphist/sources/duck.py"
_SQL = "src/dphist/sources/sql.py"
_WORDS = "src/dphist/sources/sqlwords.py"
_REMOTE = "src/dphist/sources/remote.py"
_IBIS = "src/dphist/sources/ibis_table.py"
_POSTGRES = "src/dphist/sources/postgres.py"
_SPARK = "src/dphist/sources/spark.py"
_EXPRESSIONS = "src/dphist/sources/expressions.py"
_LINES = "src/dphist/sources/lines.py"
_DELIMITED = "src/dphist/sources/delimited.py"
_SPLIT = "src/dphist/kernels/delimited.py"
_OBJECTS = "src/dphist/sources/objects.py"
_TEXT = "src/dphist/sources/text.py"
_FRAMES = "src/dphist/sources/frames.py"
_PARQUET = "src/dphist/sources/parquet.py"
_CLOSED = "src/dphist/tracebacks.py"

_BY_CELL = ("tests/door/test_bounding_by_cell.py", "-k", "not spark and not postgres")
_BOUNDING = ("tests/door/test_sources_bounding.py",)
_FAIR = ("tests/attacks/test_neighbouring_tables.py", "-k", "as_likely")
_NEIGHBOURS = ("tests/attacks/test_neighbouring_tables.py", "-k", "odd_person or other_types or tell_apart")
_EXPRESSED = ("tests/attacks/test_neighbouring_tables.py", "-k", "expressions")
_FILES = ("tests/attacks/test_neighbouring_tables.py", "-k", "parquet_file")
_BYTES = ("tests/attacks/test_neighbouring_tables.py", "-k", "under_any_collation")
_IN_POSTGRES = ("tests/door/test_engines.py", "-k", "postgres and (bounding or nobody)")
_COLLATED = ("tests/attacks/test_neighbouring_tables.py", "-k", "bytes_in_postgres")
_IN_SPARK = ("tests/door/test_engines.py", "-k", "spark and bounding and 2")
_IN_SQLITE = ("tests/door/test_sources_bounding.py", "-k", "sqlite")
_CSV = ("tests/attacks/test_lines.py", "tests/attacks/test_quotes.py", "-k", "not large")
_SPOKEN = (
    "tests/attacks/test_lines.py",
    "tests/attacks/test_messages.py",
    "-k",
    "messages or errors or refusal",
)
_CARRIED = ("tests/attacks/test_frames.py",)
_SPARSE = ("tests/door/test_every_door.py", "-k", "sparse and not spark")

_SUMMED = ("tests/door/test_sums.py",)

_SMALL = "tests/attacks/test_small_print.py"
_MEASURE = "src/dphist/model/measure.py"
_PAID = ("tests/door/test_measures.py", "-k", "the_noise_is or adds_up_to_bounds")

MUTANTS = [
    dict(
        file=_MEASURE,
        old="        return Unit(rows=unit.rows * self.reach * times)",
        new="        return Unit(rows=unit.rows * times)",
        tests=_PAID,
        why="sums are noised as if one row moved them by one step",
    ),
    dict(
        file=_MEASURE,
        old="        times = 2 if unit.replace else 1",
        new="        times = 1",
        tests=_PAID,
        why="who is replaced moves sums by half of what they do",
    ),
    dict(
        file=_KEYS,
        old="    clipped = engine.when(below, low, engine.when(inside, steps, high))",
        new="    clipped = engine.when(below, low, engine.floor(engine.plus(scaled, engine.literal(0.5))))",
        tests=_SUMMED,
        why="values above the bound are added whole",
    ),
    dict(
        file=_PEOPLE,
        old="            cut = limited(cut, (np.cumsum(changes) - 1)[chosen], limit)",
        new="            pass",
        tests=_SUMMED,
        why="DuckDB does not limit what a person adds up to",
    ),
    dict(
        file=_REMOTE,
        old='rows = f"least(count(*), {most(bound.per_cell)})"',
        new='rows = "count(*)"',
        tests=("tests/door/test_bounding_by_cell.py", "-k", "every_engine and postgres"),
        why="all rows of a kept cell are kept",
    ),
    dict(
        file=_POSTGRES,
        old="""{values}[{i + 1}]')}), 0)" for i in range(limit))""",
        new="""{values}[{i + 1}]')}), 0)" for i in range(1, limit))""",
        tests=("tests/door/test_sums.py", "-k", "engine and postgres"),
        why="what a person adds up to leaves a row out",
    ),
    dict(
        file=_PEOPLE,
        old="    return np.repeat(among, sizes) & inside",
        new="    return np.repeat(among, sizes)",
        tests=_BY_CELL,
        why="DuckDB keeps any number of rows in a cell",
    ),
    dict(
        file=_PEOPLE,
        old="    return np.repeat(among, sizes) & inside",
        new="    return inside",
        tests=_BY_CELL,
        why="DuckDB keeps rows in any number of cells",
    ),
    dict(
        file=_PEOPLE,
        old="(hashed // different)[whose[full]]",
        new="hashed[whose[full]]",
        tests=_BY_CELL,
        why="which rows of a cell are kept depends on which cells are",
    ),
    dict(
        file=_SQL,
        old="WHERE ({among}) AND ({inside})",
        new="WHERE {among}",
        tests=(*_BY_CELL[:-1], "postgres and cells"),
        why="PostgreSQL keeps any number of rows in a cell",
    ),
    dict(
        file=_IBIS,
        old="at_a_place(*among) & at_a_place(*inside)",
        new="at_a_place(*inside)",
        tests=_BY_CELL,
        why="through Ibis rows are kept in any number of cells",
    ),
    dict(
        file=_SQL,
        old="        if any(value.limit is not None for value in values):",
        new="        if False:",
        tests=(*_SUMMED, "-k", "postgres"),
        why="PostgreSQL does not limit what a person adds up to",
    ),
    dict(
        file=_DUCK,
        old="counted(people, cells, bound, self.starts, limited)",
        new="counted(people, cells, Bound(bound.id, bound.rows + 1), self.starts, limited)",
        tests=_BOUNDING,
        why="bounding in DuckDB keeps one row too many",
    ),
    dict(
        file=_SQL,
        old='_at_a_place("start", "total", "place", most(bound.rows))',
        new='_at_a_place("start", "total", "place", most(bound.rows) + 1)',
        tests=("tests/door/test_engines.py", "-k", "postgres and tables"),
        why="bounding in PostgreSQL keeps one row too many of those whose tables are counted",
    ),
    dict(
        file=_REMOTE,
        old="return self._listed_cells(people, most(bound.rows))",
        new="return self._listed_cells(people, most(bound.rows) + 1)",
        tests=_IN_POSTGRES,
        why="bounding in PostgreSQL keeps one row too many",
    ),
    dict(
        file=_POSTGRES,
        old='return f"array_agg({value} ORDER BY {value} ASC)"',
        new='return f"array_agg({value})"',
        tests=_IN_POSTGRES,
        why="in PostgreSQL the order of the table decides which rows of a person are kept",
    ),
    dict(
        file=_IBIS,
        old="ranked.place, most(bound.rows)))",
        new="ranked.place, most(bound.rows) + 1))",
        tests=_IN_SQLITE,
        why="bounding through Ibis keeps one row too many",
    ),
    dict(
        file=_IBIS,
        old="order = ibis.window(group_by=placed.person, order_by=[placed.cell, *values])",
        new="order = ibis.window(group_by=placed.person)",
        tests=_IN_SQLITE,
        why="through Ibis rows are ranked as they happen to lie",
    ),
    dict(
        file=_IBIS,
        old='        return SALT + value.cast("string")',
        new='        return value.cast("string")',
        tests=_IN_SQLITE,
        why="through Ibis other rows are kept than everywhere else, and ids have their column's collation",
    ),
    dict(
        file=_SQL,
        old="(PARTITION BY person ORDER BY {order})",
        new="(PARTITION BY person)",
        tests=_IN_POSTGRES,
        why="rows are ranked as they happen to lie: others' rows can move them",
    ),
    dict(
        file=_DUCK,
        old='ORDER BY {order}"',
        new='ORDER BY person ASC"',
        tests=_BOUNDING,
        why="DuckDB ranks rows as they happen to lie",
    ),
    dict(
        file=_SQL,
        old='known = ["person IS NOT NULL", "cell IS NOT NULL",',
        new='known = ["cell IS NOT NULL",',
        tests=_BOUNDING,
        why="rows without an id are somebody's",
    ),
    dict(
        file=_SQL,
        old='known = ["person IS NOT NULL", "cell IS NOT NULL",',
        new='known = ["person IS NOT NULL",',
        tests=_BOUNDING,
        why="rows in no cell use up a person's limit",
    ),
    dict(
        file=_WORDS,
        old='whole = f"abs({value}) < {below} AND {value} = floor({value})"',
        new='whole = f"abs({value}) < {below}"',
        tests=("tests/door/test_sources_bounding.py", "-k", "half_a_number"),
        why="1.4 and 1 are one person, whom a missing value may tell apart again",
    ),
    dict(
        file=_WORDS,
        old='        if column.family == "real":\n            value, below',
        new='        if column.family == "never":\n            value, below',
        tests=_NEIGHBOURS,
        why="an id of floats is refused, or NaN somebody's",
    ),
    dict(
        file=_WORDS,
        old='        if column.family != "real" or is_decimal(column):\n            return None',
        new="        return None",
        tests=_NEIGHBOURS,
        why="floats beyond 2^53 are several people's id, and accepted",
    ),
    dict(
        file=_WORDS,
        old="return f'(CAST({value} AS {self.string}) COLLATE \"C\")'",
        new="return f'CAST({value} AS {self.string})'",
        tests=_COLLATED,
        why="ids are compared under the column's collation",
    ),
    dict(
        file=_DUCK,
        old='parts = [None] if count <= 1 else [f"hash(person) % {count} = {part}" for part in range(count)]',
        new='parts = [None] if count <= 1 else [f"hash(cell) % {count} = {part}" for part in range(count)]',
        tests=_BOUNDING,
        why="a person is taken in several groups, and has a limit in each",
    ),
    dict(
        file=_DUCK,
        old="return f\"CAST(md5_number('{SALT}' || CAST({person} AS VARCHAR)) & {2**64 - 1} AS UBIGINT)\"",
        new='return "CAST(0 AS UBIGINT)"',
        tests=_FAIR,
        why="of everybody the first rows are kept: counts are biased towards low cells",
    ),
    dict(
        file=_POSTGRES,
        old="substr(md5('{SALT}' || CAST({person} AS TEXT)), 1, {DIGITS})",
        new="substr(md5(CAST({person} AS TEXT)), 1, {DIGITS})",
        tests=_IN_POSTGRES,
        why="PostgreSQL keeps other rows than the reference",
    ),
    dict(
        file=_POSTGRES,
        old="REPEATABLE READ READ ONLY",
        new="REPEATABLE READ",
        tests=("tests/door/test_engines.py", "-k", "read_only"),
        why="counting may write to the database",
    ),
    dict(
        file=_POSTGRES,
        old="{user.partition(':')[0]}{at}{host}",
        new="{user}{at}{host}",
        tests=("tests/door/test_engines.py", "-k", "an_address"),
        why="a message shows the password",
    ),
    dict(
        file=_REMOTE,
        old="        if looked and looked[0] != [[0]]:",
        new="        if looked and looked[0] == [[-1]]:",
        tests=("tests/door/test_engines.py", "-k", "postgres and too_large"),
        why="elsewhere, floats beyond 2^53 are several people's id, and accepted",
    ),
    dict(
        file=_REMOTE,
        old='raise SourceError(f"{self.name} could not count the table") from None',
        new="raise",
        tests=("tests/door/test_engines.py", "-k", "postgres and words"),
        why="an engine's own words, which may quote a record, are passed on",
    ),
    dict(
        file=_SPARK,
        old="substr(md5(concat('{SALT}', CAST({person} AS STRING))), 1, {DIGITS})",
        new="substr(md5(CAST({person} AS STRING)), 1, {DIGITS})",
        tests=_IN_SPARK,
        why="Spark keeps other rows than the reference",
    ),
    dict(
        file=_PEOPLE,
        old="    ordered, total = sorted(cells), len(cells)",
        new="    ordered, total = list(cells), len(cells)",
        tests=_BOUNDING,
        why="the reference ranks by the order of rows",
    ),
    dict(
        file=_PEOPLE,
        old="value == int(value) and abs(value) < 2**53",
        new="value == int(value)",
        tests=(_SMALL, "-k", "written_in_one_way"),
        why="a float of 2^53 or more is written as if it stood for one number",
    ),
    dict(
        file=_COUNT,
        old="bound = Bound.of(column_of(engine, unit.id), unit, domain.size)",
        new="bound = Bound(column_of(engine, unit.id), 2 * unit.rows)",
        tests=_BOUNDING,
        why="twice the rows of a unit are kept",
    ),
    dict(
        file=_COUNT,
        old="    cells, rows, _ = occupied(source, domain, unit)\n    return",
        new="    cells, rows, _ = occupied(source, domain, Unit())\n    return",
        tests=_SPARSE,
        why="sparse counting ignores the unit",
    ),
    dict(
        file=_COUNT,
        old="    cells, rows, _ = occupied(source, domain, unit)\n    #",
        new="    cells, rows, _ = occupied(source, domain, Unit(rows=unit.rows))\n    #",
        tests=_BOUNDING,
        why="counting ignores the id",
    ),
    dict(
        file=_COUNT,
        old='    if unit.id is not None:\n        raise SourceError("unit: a histogram has no column',
        new='    if unit.id == "":\n        raise SourceError("unit: a histogram has no column',
        tests=("tests/door/test_sources.py", "-k", "passes_through"),
        why="a histogram is taken for bounded rows",
    ),
    dict(
        file=_COUNT,
        old='f"there is no column {name}; `dphist',
        new='f"there is no column {name}; there are {[c.name for c in engine.columns]}; `dphist',
        tests=_SPOKEN,
        why="a message lists columns: the first line of a file may be a record",
    ),
    dict(
        file=_KEYS,
        old='    if column.inferred and family == "real" and any(abs(end) >= EXACT for end in ends):',
        new="    if False:",
        tests=_NEIGHBOURS,
        why="one missing value rounds everybody's large numbers",
    ),
    dict(
        file=_EXPRESSIONS,
        old="                return self.occurrences(op.left, person) + self.occurrences(op.right, person)",
        new="                return self.occurrences(op.left, person) | self.occurrences(op.right, person)",
        tests=_EXPRESSED,
        why="a union's factor is forgotten",
    ),
    dict(
        file=_EXPRESSIONS,
        old="occurs = Counter({table: count * times for table, count in occurs.items()})",
        new="occurs = Counter({table: count for table, count in occurs.items()})",
        tests=_EXPRESSED,
        why="a join's factor is forgotten",
    ),
    dict(
        file=_EXPRESSIONS,
        old="                | ops.Distinct()\n",
        new="                | ops.Distinct()\n                | ops.Limit()\n",
        tests=_EXPRESSED,
        why="a limit is accepted",
    ),
    dict(
        file=_EXPRESSIONS,
        old="                | ops.Distinct()\n",
        new="                | ops.Distinct()\n                | ops.Sample()\n",
        tests=_EXPRESSED,
        why="a sample is accepted",
    ),
    dict(
        file=_EXPRESSIONS,
        old="(ops.WindowFunction, ops.Analytic, ops.Reduction)),",
        new="(ops.Analytic,)),",
        tests=_EXPRESSED,
        why="a window over everybody is accepted",
    ),
    dict(
        file=_EXPRESSIONS,
        old="(mine for rel, column, mine in equal if self.bounded and ids.get(rel) == column)",
        new="(mine for rel, column, mine in equal if self.bounded)",
        tests=(_SMALL, "-k", "within_a_person"),
        why="a join that pairs different people is taken for one within a person",
    ),
    dict(
        file=_EXPRESSIONS,
        old="        if not self.bounded or below is None:",
        new="        if not self.bounded:",
        tests=_EXPRESSED,
        why="an aggregate over many people is accepted",
    ),
    dict(
        file=_SPLIT,
        old="                if not returns or at == text.size or text[at] != _LF:",
        new="                if at == text.size or text[at] != _LF:",
        tests=_CSV,
        why="a carriage return and line feed are accepted among bare line feeds",
    ),
    dict(
        file=_SPLIT,
        old="            elif returns:\n",
        new="            elif False:\n",
        tests=_CSV,
        why="a bare line feed is accepted in a file of the other kind",
    ),
    dict(
        file=_SPLIT,
        old="                    if byte in (_LF, _CR):\n                        return rows, QUOTE",
        new="                    if at + 1 == text.size:\n                        return rows, QUOTE",
        tests=_CSV,
        why="a quote swallows the lines behind it",
    ),
    dict(
        file=_SPLIT,
        old="        if field == fields:\n            rows += 1",
        new="        if field >= 1:\n            rows += 1",
        tests=(_SMALL, "-k", "too_few_fields"),
        why="a line of too few fields makes a row of what was left in memory",
    ),
    dict(
        file=_DELIMITED,
        old='    same = len({each.rstrip(b"\\r\\n") for each in heads}) <= 1',
        new="    same = True",
        tests=_CSV,
        why="fields of another file are read as other columns",
    ),
    dict(
        file=_DELIMITED,
        old='    returns = head.endswith(b"\\r")',
        new='    returns = rest[:rest.find(b"\\n")].endswith(b"\\r")',
        tests=_CSV,
        why="the first record decides how all lines end",
    ),
    dict(
        file=_LINES,
        old="            yield left + piece[:cut]\n",
        new="            yield piece[:cut]\n",
        tests=_CSV,
        why="a line that two pieces share is lost",
    ),
    dict(
        file=_LINES,
        old='        if len(left) > LONGEST:\n            raise Refused("long")',
        new='        if len(left) > LONGEST:\n            left = b""',
        tests=_CSV,
        why="a line beyond every bound takes others with it",
    ),
    dict(
        file=_LINES,
        old='for line in re.findall(rb"[^\\n]*\\n|[^\\n]+", piece) if is_text(line))',
        new="for line in piece.splitlines(keepends=True) if is_text(line))",
        tests=(_SMALL, "-k", "no_text"),
        why="half a record that is no text makes a row of its other half",
    ),
    dict(
        file=_OBJECTS,
        old="TRY(json_transform(object, {literal(shape)}))",
        new="json_transform(object, {literal(shape)})",
        tests=("tests/attacks/test_lines.py", "-k", "object"),
        why="an object that is no JSON fails for everybody",
    ),
    dict(
        file=_OBJECTS,
        old="    if stand != OVER or left.strip(_SPACE):",
        new="    if stand != OVER and left.strip(_SPACE):",
        tests=("tests/attacks/test_lines.py", "-k", "object or array"),
        why="what follows an array of objects is not looked at",
    ),
    dict(
        file=_OBJECTS,
        old="if 2 * times >= looked]",
        new="if times]",
        tests=("tests/attacks/test_lines.py", "-k", "draft"),
        why="a draft names a field that one record has",
    ),
    dict(
        file=_TEXT,
        old="        if self.reason is not None:\n            # Outside",
        new='        if self.reason == "never":\n            # Outside',
        tests=_CSV,
        why="a refused file is counted as far as it was read",
    ),
    dict(
        file=_FRAMES,
        old="        return whole_text(value) or repr(value)",
        new="        return repr(value)",
        tests=(_SMALL, "-k", "written_in_one_way"),
        why="an id is not written in one way: 7 and 7.0 are two people",
    ),
    dict(
        file=_FRAMES,
        old="            return None if math.isnan(value) else str(value)",
        new="            return str(value)",
        tests=(_SMALL, "-k", "written_in_one_way"),
        why="NaN as an id, or as a category, becomes somebody",
    ),
    dict(
        file=_FRAMES,
        old='    if isinstance(value, float | Decimal) and text is not None and not text.lstrip("-").isdigit():\n        return None\n',
        new="",
        tests=_NEIGHBOURS,
        why="a number with a fraction is somebody in one type of column and nobody in another",
    ),
    dict(
        file=_FRAMES,
        old='        return text.rstrip("0").rstrip(".") if "." in text else text',
        new="        return text",
        tests=(_SMALL, "-k", "written_in_one_way"),
        why="Decimal('7.00') and 7 are two people",
    ),
    dict(
        file=_PARQUET,
        old="    if len(distinct) <= 1:\n        return whole",
        new="    return whole",
        tests=_FILES,
        why="the file that comes first rounds everybody else's values",
    ),
    dict(
        file=_PARQUET,
        old='        return "DOUBLE"\n',
        new='        return "BIGINT"\n',
        tests=_FILES,
        why="broken numbers are rounded because somebody's file has whole ones",
    ),
    dict(
        file=_CLOSED,
        old="    error.__traceback__ = None\n",
        new="",
        tests=_CARRIED,
        why="an exception keeps frames that hold counts",
    ),
    dict(
        file=_CLOSED,
        old="        del given, named\n",
        new="",
        tests=_CARRIED,
        why="an exception keeps the frame that was handed the records",
    ),
    dict(
        file=_CLOSED,
        old="    error.__cause__ = error.__context__ = None\n",
        new="",
        tests=(_SMALL, "-k", "without_those"),
        why="an exception drags the one that it came from along",
    ),
    dict(
        file=_CLOSED,
        old="    error.__dict__.clear()\n",
        new="",
        tests=_CARRIED,
        why="notes and what libraries hang on errors are kept",
    ),
    dict(
        file=_CLOSED,
        old="if isinstance(each, str | type(None)) or _is_code(error, each)",
        new="if True",
        tests=_CARRIED,
        why="values that an exception was made of are kept",
    ),
]
