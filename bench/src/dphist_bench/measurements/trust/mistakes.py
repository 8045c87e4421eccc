"""The mistakes a new user makes, run one by one, with what happens now.

Wanted: nothing dangerous is accepted, and nothing ends in a bare error of Python's that does not say what to do. An
outcome is *refused* (an error of ours, by name), *told* (done, with a warning), or *answered* (harmless and right).
"""

from __future__ import annotations

import shlex
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import dphist
from dphist import reminding
from dphist.errors import CustodyWarning, DphistError
from dphist_bench.measurements.trust.mistakes_command import MISTAKES as COMMANDS
from dphist_bench.measurements.trust.mistakes_python import MISTAKES as CALLS
from dphist_bench.measuring import Line

Row = dict[str, str]

_LONGEST = 160


def measure(
    *,
    quick: bool,
    only: Annotated[tuple[str, ...], "python, command, or both if not given"] = (),
) -> Iterator[Line]:
    """Make every mistake, and say what happened."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, made in (("python", _calls), ("command", _commands)):
            if not only or kind in only:
                for row in made(Path(folder) / kind):
                    said = _short(row["what is said"].replace(f"{folder}/{kind}", "folder"))
                    rows.append({"where": kind, **row, "what is said": said})
                    yield rows[-1]
    bad = [row for row in rows if row["outcome"] == "BARE"]
    yield {
        "where": "all",
        "mistake": f"{len(rows)} mistakes",
        "outcome": f"{len(bad)} bare",
        "what is said": "",
    }


def _calls(folder: Path) -> Iterator[Row]:
    import numpy as np
    import pandas as pd

    room = _room(folder)
    visits = pd.read_csv(folder / "visits.csv")
    counts = dphist.Histogram(room, np.full(room.shape, 7))
    names: dict[str, Any] = {
        "dphist": dphist, "visits": visits, "domain": room, "counts": counts, "folder": str(folder),
        "release": dphist.publish(counts, epsilon=1, mechanism="laplace"),
    }  # fmt: skip
    with dphist.Ledger.open(folder / "budget.db") as book:
        book.create("people", 1)
        for code in CALLS:
            outcome, said = _tried(code, {**names, "book": book})
            yield {"mistake": code, "outcome": outcome, "what is said": said}


def _tried(code: str, names: dict[str, Any]) -> tuple[str, str]:
    """What became of one call."""
    reminding._reminded.clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made = eval(code, names)  # noqa: S307 -- our own list
        except DphistError as error:
            return "refused", f"{type(error).__name__}: {_plain(str(error))}"
        except AttributeError as error:
            # A name that there is not: Python's own words say which.
            return "refused", f"AttributeError: {_plain(str(error))}"
        except ValueError as error:
            readonly = "read-only" in str(error)
            return ("refused" if readonly else "BARE"), f"{type(error).__name__}: {_plain(str(error))}"
        except Exception as error:
            return "BARE", f"{type(error).__name__}: {_plain(str(error))}"
    ours = [str(each.message) for each in told if issubclass(each.category, CustodyWarning)]
    return ("told", _plain(ours[0])) if ours else ("answered", _plain(repr(made)))


def _commands(folder: Path) -> Iterator[Row]:
    from contextlib import chdir

    from typer.testing import CliRunner

    from dphist.cli.commands import app

    room = _room(folder)
    with chdir(folder):
        Path("visits.toml").write_text(room.to_toml())
        Path("broken.toml").write_text("[[attribute]\n")
        Path("empty.toml").write_text("")
        Path("draft.toml").write_text('[[attribute]]\nname = "age"\nkind = "ordinal"\n')
        Path("upper.toml").write_text(room.to_toml().replace('"F", "M"', '"f", "m"'))
        Path("noheader.csv").write_text("30,F,1\n31,M,2\n")
        with dphist.Ledger.open("budget.db") as book:
            book.create("people", 1)
        runner = CliRunner()
        first = "publish visits.csv --schema visits.toml --epsilon 1 --unattended -o out.parquet"
        assert runner.invoke(app, first.split()).exit_code == 0
        for line in COMMANDS:
            reminding._reminded.clear()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                done = runner.invoke(app, shlex.split(line))
            yield {"mistake": f"dphist {line}", **_ended(done, told)}


def _ended(done: Any, told: list[Any]) -> dict[str, str]:
    error = done.exception
    if isinstance(error, DphistError):
        return {"outcome": "refused", "what is said": f"{_plain(str(error))} (exit {error.exit_code})"}
    if isinstance(error, SystemExit) and done.exit_code:
        said = done.output.rpartition("Error: ")[2]
        return {"outcome": "refused", "what is said": f"{_plain(said)} (exit {done.exit_code})"}
    if error is not None and not isinstance(error, SystemExit):
        return {"outcome": "BARE", "what is said": type(error).__name__}
    ours = [str(each.message) for each in told if issubclass(each.category, CustodyWarning)]
    if ours:
        return {"outcome": "told", "what is said": _plain(ours[0])}
    return {"outcome": "answered", "what is said": _plain(done.output)}


def _room(folder: Path) -> dphist.Domain:
    folder.mkdir(exist_ok=True)
    rows = "".join(f"{20 + i % 60},{'FM'[i % 2]},{i % 40}\n" for i in range(400))
    (folder / "visits.csv").write_text(f"age,sex,user\n{rows}")
    return dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])


def _plain(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
