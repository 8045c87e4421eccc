"""Mechanisms in words: their names, what they are for, who thought of them, and their options."""

from __future__ import annotations

from dataclasses import MISSING, is_dataclass
from inspect import Parameter
from typing import Any

from dphist.cli import screen
from dphist.mechanisms.options import show
from dphist.mechanisms.registry import FAMILIES, Entry, list_mechanisms


def mechanism_rows() -> list[dict[str, Any]]:
    """Everything the registry knows, for a program: the default first, then the recommended, then by family."""
    return [
        {
            "name": entry.name,
            "status": entry.status,
            "family": entry.family,
            "summary": entry.summary,
            "options": _options(entry),
            "preset_of": entry.preset_of,
            "alias_of": entry.alias_of,
            "authors": entry.authors,
            "paper": "" if entry.paper is None else entry.paper.cited,
        }
        for entry in list_mechanisms().values()
    ]


def show_mechanisms(everything: bool) -> None:
    """Print the default and the recommended with their options, then the families' names, or all of them."""
    entries = list(list_mechanisms().values())
    first = [entry for entry in entries if entry.status in ("default", "recommended")]
    _table(first)
    rest = [entry for entry in entries if entry not in first]
    for family, title in FAMILIES.items():
        members = [entry for entry in rest if entry.family == family]
        if not members:
            continue
        screen.line("")
        screen.line(title)
        if everything:
            _table(members)
        else:
            screen.line("  " + ", ".join(map(_marked, members)))
    if not everything:
        screen.line("")
        screen.line(
            "`dphist mechanisms --all` says what each is for; `--mechanism 'name(option=value)'` sets options"
        )


def _table(entries: list[Entry]) -> None:
    rows = [(_marked(entry), entry.summary, entry.authors, _options(entry)) for entry in entries]
    screen.table(("name", "for", "by", "options"), rows)


def _marked(entry: Entry) -> str:
    """The name, and what sets it apart."""
    if entry.status == "default":
        return f"{entry.name} (default)"
    if entry.status == "reference":
        return f"{entry.name} (comparison only)"
    return f"{entry.name} (= {entry.alias_of})" if entry.alias_of else entry.name


def _options(entry: Entry) -> str:
    listed = []
    for name, default in entry.options.items():
        if default is MISSING or default is Parameter.empty:
            listed.append(name)
        else:
            shown = show(default) if is_dataclass(default) and not isinstance(default, type) else default
            listed.append(f"{name}={shown}")
    return ", ".join(listed)
