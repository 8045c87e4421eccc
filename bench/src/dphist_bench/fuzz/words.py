"""Command lines made from the commands' own options: every option that there is, with values that fit and others."""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dphist_bench.fuzz import grammar, pool

# Servers, programs of another distribution, and what takes minutes by its nature.
LEFT_OUT = ("explore", "bench", "demo", "audit")


@cache
def commands() -> dict[str, Any]:
    """Every command of the command line, with those below it, by the words that call it."""
    import typer

    from dphist.cli.commands import app

    found: dict[str, Any] = {}

    def look(words: tuple[str, ...], command: Any) -> None:
        below = getattr(command, "commands", None)
        if below is None:
            found[" ".join(("$", *words))] = command
            return
        for name, each in below.items():
            if name not in LEFT_OUT:
                look((*words, name), each)

    look((), typer.main.get_command(app))
    return found


def attack(target: str) -> tuple[st.SearchStrategy[Any], Callable[[Any], Any]]:
    """Command lines of one command, and how they are run: within the process, as `dphist` would."""
    from typer.testing import CliRunner

    from dphist.cli.commands import app

    pieces: list[st.SearchStrategy[list[str]]] = []
    for parameter in commands()[target].params:
        value = _value(parameter)
        if parameter.param_type_name == "argument":
            pieces.append(st.lists(value, min_size=1, max_size=1))
            continue
        name = st.sampled_from([*parameter.opts, *parameter.secondary_opts])
        with_value = name.map(lambda one: [one]) if parameter.is_flag else st.tuples(name, value).map(list)
        pieces.append(st.one_of(st.just([]), st.just([]), with_value))
    stray = st.one_of(st.just([]), st.just([]), st.just([]), st.lists(grammar.text(), max_size=2))
    lines = st.tuples(*pieces, stray).map(lambda parts: [word for part in parts for word in part])
    runner = CliRunner()

    def call(given: list[str]) -> None:
        done = runner.invoke(app, [*target.split()[1:], *given])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if done.exit_code not in (0, 1, 2, 3):
            raise RuntimeError(f"exit code {done.exit_code}")

    return lines, call


def _kind(parameter: Any) -> Any:
    """What an option holds, however the reader of command lines keeps it."""
    kept = getattr(parameter, "type_descriptor", None)
    kind = kept.annotation if kept is not None else getattr(parameter, "type", str)
    return next((part for part in typing.get_args(kind) if part in (int, float, Path)), kind)


def _value(parameter: Any) -> st.SearchStrategy[str]:
    """Words for an option: its choices, files that are there, numbers as one writes them, and any text."""
    kind = _kind(parameter)
    choices = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        choices = tuple(each.value for each in kind)
    fitting: list[st.SearchStrategy[str]] = [grammar.text()]
    if choices:
        fitting += [st.sampled_from([str(each) for each in choices])] * 3
    if kind is Path or parameter.name in ("source", "release", "schema", "ledger"):
        fitting += [st.sampled_from(pool.FILES)] * 3
    if kind in (int, float) or parameter.name in ("epsilon", "total"):
        fitting += [st.sampled_from(["1", "0.5", "1/3", "0", "-1", "3"])] * 2 + [grammar.whole().map(str)]
    return st.one_of(*fitting)
