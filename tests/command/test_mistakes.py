"""The mistakes of a first hour: none that is dangerous is accepted, and none ends in a bare error.

A mistake is refused by an error of ours that says what to do, or done with a warning where somebody may want it.
"""

from __future__ import annotations

import shlex
import warnings
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dphist
from dphist import reminding
from dphist.cli.commands import app
from dphist.errors import CustodyWarning, DphistError

# What may go on, because it is what somebody may want; said in a warning.
ACCEPTED = (
    "epsilon=50", "--epsilon 50", "visits, domain, epsilon=1)", "-o noledger.parquet", '{"F", "M"}', "unique()",
    ".max()",
)  # fmt: skip
DOMAIN = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])


def listed(name: str) -> list[str]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mistakes")
    rows = "".join(f"{20 + i % 60},{'FM'[i % 2]},{i % 40}\n" for i in range(400))
    schema = DOMAIN.to_toml()
    for name, text in {
        "visits.csv": f"age,sex,user\n{rows}",
        "visits.toml": schema,
        "broken.toml": "[[attribute]\n",
        "empty.toml": "",
        "draft.toml": '[[attribute]]\nname = "age"\nkind = "ordinal"\n',
        "upper.toml": schema.replace('"F", "M"', '"f", "m"'),
        "noheader.csv": "30,F,1\n31,M,2\n",
    }.items():
        (place / name).write_text(text)
    with dphist.Ledger.open(place / "budget.db") as book:
        book.create("people", 1)
    dphist.publish(str(place / "visits.csv"), DOMAIN, epsilon=1).save(place / "out.parquet")
    return place


@pytest.fixture(scope="module")
def names(folder):
    counts = dphist.Histogram(DOMAIN, np.full(DOMAIN.shape, 7))
    release = dphist.publish(counts, epsilon=1, mechanism="laplace")
    visits = pd.read_csv(folder / "visits.csv")
    with dphist.Ledger.open(folder / "python.db") as book:
        book.create("people", 1)
        yield {
            "dphist": dphist, "visits": visits, "domain": DOMAIN, "counts": counts, "folder": str(folder),
            "release": release, "book": book,
        }  # fmt: skip


@pytest.fixture
def told():
    """Whatever is warned of, reminders that were given before among it."""
    reminding._reminded.clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def judged(mistake: str, error: BaseException | None, said: str, told: list[Any]) -> None:
    """Refused in words, or accepted with a warning."""
    if error is None:
        assert any(words in mistake for words in ACCEPTED), mistake
        assert any(issubclass(each.category, CustodyWarning) for each in told), mistake
    else:
        assert len(said) > 20


@pytest.mark.parametrize("code", listed("mistakes_python.txt"))
def test_in_python(code, names, told):
    error: Exception | None = None
    try:
        eval(code, names)  # noqa: S307 -- our own list
    except (DphistError, AttributeError) as refused:
        error = refused
    except ValueError as refused:
        # NumPy's own words for an array that may not be written to.
        error = refused if "read-only" in str(refused) else None
    judged(code, error, str(error), told)


@pytest.mark.parametrize("line", listed("mistakes_command.txt"))
def test_on_the_command_line(line, folder, told):
    with chdir(folder):
        done = CliRunner().invoke(app, shlex.split(line))
    error = done.exception
    assert error is None or isinstance(error, DphistError | SystemExit), error
    if isinstance(error, SystemExit):
        assert done.exit_code
        return judged(line, error, done.output, told)
    return judged(line, error, str(error), told)
