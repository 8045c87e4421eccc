"""One way to run every measurement: options read off its signature, lines printed as they come, all of them kept.

A measurement is a module with ``measure(*, quick: bool, …) -> Iterator[Line]``. Keyword arguments are its options, by
their types and defaults; ``Annotated[int, "what it is"]`` says what one means. It yields rows of tables (mappings from
column to value), sentences between them, and a `Failure` where a promise was broken, which makes the exit code 1.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from dphist.release.atomic import atomic
from dphist_bench import results
from dphist_bench.views import short


class Failure(str):
    """A sentence that says which promise was broken."""

    __slots__ = ()


Line = Mapping[str, object] | str
Measure = Callable[..., Iterator[Line]]


def run(name: str, measure: Measure, arguments: list[str], folder: Path | None = None) -> int:
    """Read the options, print every line as it comes, and keep all of them in ``folder``; give the exit code."""
    options = vars(_parser(name, measure).parse_args(arguments))
    printer, lines = Printer(), list[Line]()
    try:
        for line in measure(**options):
            lines.append(line)
            printer.show(line)
    finally:
        # Also when stopped: what is finished is kept.
        if folder is not None and lines:
            _keep(folder, name, options, lines)
    return int(any(isinstance(line, Failure) for line in lines))


def _parser(name: str, measure: Measure) -> argparse.ArgumentParser:
    described = inspect.getdoc(inspect.getmodule(measure)) or ""
    parser = argparse.ArgumentParser(
        prog=f"dphist bench run {name}",
        description=described,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hints = get_type_hints(measure, include_extras=True)
    for option, parameter in inspect.signature(measure).parameters.items():
        dashes = "-" if len(option) == 1 else "--"
        parser.add_argument(
            f"{dashes}{option.replace('_', '-')}", dest=option, **_option(hints[option], parameter.default)
        )
    return parser


def _option(hint: Any, default: Any) -> dict[str, Any]:
    """What argparse is told of one keyword argument."""
    told: dict[str, Any] = {"default": False if default is inspect.Parameter.empty else default}
    if get_origin(hint) is Annotated:
        hint, told["help"] = get_args(hint)[:2]
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not types.NoneType)
    if hint is bool:
        return {**told, "action": argparse.BooleanOptionalAction}
    if get_origin(hint) is tuple:
        told |= {"nargs": "*"}
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        return {**told, "choices": get_args(hint)}
    return {**told, "type": hint}


class Printer:
    """Prints rows under their headings, a new table wherever the columns change."""

    def __init__(self) -> None:
        self._widths: dict[str, int] = {}

    def show(self, line: Line) -> None:
        """Print a row, or a sentence."""
        if isinstance(line, str):
            self._widths = {}
            _write(line)
            return
        cells = {column: _shown(value) for column, value in line.items()}
        if list(cells) != list(self._widths):
            self._widths = {column: max(len(column), len(cell) + 2, 8) for column, cell in cells.items()}
            _write(_row({column: column for column in cells}, self._widths, line))
        _write(_row(cells, self._widths, line))


def _row(cells: Mapping[str, str], widths: Mapping[str, int], line: Mapping[str, object]) -> str:
    return "  ".join(
        cell.ljust(widths[column]) if isinstance(line[column], str) else cell.rjust(widths[column])
        for column, cell in cells.items()
    ).rstrip()


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return short(value) if isinstance(value, float) else str(value)


def _keep(folder: Path, name: str, options: Mapping[str, object], lines: list[Line]) -> None:
    path = folder / ("quick" if options.get("quick") else "full") / "measurements" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "measurement": name,
        "options": options,
        "date": datetime.now(UTC).date().isoformat(),
        **results.machine(),
        "lines": lines,
    }
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(told, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
    _write(f"kept in {path}")


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
