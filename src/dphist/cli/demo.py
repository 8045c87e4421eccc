"""A million made-up records, from file to release, in one command."""

from __future__ import annotations

import time
from pathlib import Path

from dphist.cli import screen
from dphist.cli.showing import draw
from dphist.errors import BudgetExhausted, InputError, OutputError
from dphist.model.domain import Domain
from dphist.model.phrases import counted
from dphist.private.ledger import Ledger
from dphist.publishing.checking import save_noted
from dphist.publishing.door import publish
from dphist.release import load
from dphist.release.asking import read_question

SCHEMA = """\
# What is public about the visits: what can be asked, never what was recorded.
[[attribute]]
name = "age"
kind = "ordinal"
range = [0, 100]

[[attribute]]
name = "sex"
kind = "nominal"
categories = ["F", "M"]

[[attribute]]
name = "hour"
kind = "ordinal"
range = [0, 24]
"""

# What the demo then asks and draws: tables of two attributes, and ranges in them.
ANNOUNCED = "marginals:2 + ranges"

# Ages like a population's, more women among the old, visits that peak twice a day. The rows are numbered and hashed, so
# the same demo is made everywhere.
_ROWS = """
copy (
  select least(99, floor(a))::integer as age, case when s < 0.5 + a / 900 then 'F' else 'M' end as sex,
         (case when p < 0.55 then 9 + 2.2 * z when p < 0.9 then 17 + 2.5 * z else 24 * u end)::integer % 24 as hour
  from (
    select case when h(i, 1) < 0.22 then 19.5 * h(i, 9)
                when h(i, 1) < 0.70 then 18 + 42 * h(i, 9) + 3 * h(i, 10)
                when h(i, 1) < 0.80 then 42 + 10 * (h(i, 9) + h(i, 10))
                else 56 + 9 * h(i, 10) + 34 * (1 - sqrt(1 - h(i, 9))) end as a,
           h(i, 2) as s, h(i, 3) as p, h(i, 4) as u, h(i, 5) + h(i, 6) + h(i, 7) + h(i, 8) - 2 as z
    from range({rows}) t(i)
  )
) to '{path}' (format parquet)
"""


def run_demo(folder: Path, rows: int) -> None:
    """Make records, publish them on a budget, ask, verify and draw."""
    import duckdb

    if rows < 1:
        raise InputError("--rows: at least one record")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}; name another") from None
    source, schema, out, ledger = (
        folder / name for name in ("visits.parquet", "visits.toml", "release.parquet", "budget.db")
    )
    if any(path.exists() for path in (source, schema, out, ledger)) and not _ours(schema):
        raise OutputError(
            f"{folder} has files of these names that no demo made: they are not written over, and no budget is spent "
            "from; name another folder"
        )
    schema.write_text(SCHEMA, encoding="utf-8")
    with screen.progress(f"making {counted(rows, 'record')}"):
        connection = duckdb.connect()
        connection.execute("create macro h(i, k) as (hash(i * 31 + k * 7919) % 1000003) / 1000003.0")
        connection.execute(_ROWS.format(rows=int(rows), path=str(source).replace("'", "''")))
        connection.close()
    screen.line(f"records   {source} ({rows:,} made-up visits)")
    screen.line(f"schema    {schema}")
    screen.line(f"workload  {ANNOUNCED}: announced, so that these are measured well")

    began = time.perf_counter()
    with screen.progress("publishing"), Ledger.open(ledger) as book:
        if "visits" not in book.datasets():
            book.create("visits", 10)
        try:
            release = publish(
                source, Domain.from_toml(schema), 1, workload=ANNOUNCED, ledger=book, dataset="visits"
            )
        except BudgetExhausted:
            raise BudgetExhausted(
                f"earlier demos have spent the budget of 10 in {ledger}, and a ledger gives nothing back; name another "
                f"folder, as in `dphist demo {folder}-again`"
            ) from None
        save_noted(release, out, book)
        left = book.remaining("visits")
    screen.line(f"release   {out} in {time.perf_counter() - began:.1f} s, ε = 1, {left} left in {ledger}")

    read = load(out)
    question = "age between 30 and 40 and sex = 'F'"
    answer = read.answer(read_question(question, read.domain))[0]
    screen.line(f"query     {question}: {answer}")
    read.verify()
    screen.line("verify    run again on the published noisy answers, without the data: the same release")
    draw(read)
    screen.line(f'\nnext      dphist query {out} "hour between 8 and 10"')


def _ours(schema: Path) -> bool:
    """Whether an earlier demo made what is in the folder: its schema is the first file and always the same."""
    try:
        return schema.read_text(encoding="utf-8") == SCHEMA
    except (OSError, UnicodeDecodeError):
        return False
