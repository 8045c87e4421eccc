"""Commands that other distributions bring: found by entry point, asked for by name, loaded when used.

`dphist-bench` brings the experiments and the audit of everything; the product does not carry them.
"""

from __future__ import annotations

from typing import Any

from dphist.errors import InputError

GROUP = "dphist.commands"


def load(name: str, what: str) -> Any:
    """Give what a distribution registered under a name, or say what to install."""
    from importlib.metadata import entry_points

    for found in entry_points(group=GROUP, name=name):
        return found.load()
    raise InputError(
        f"{what} is part of dphist-bench, which is not installed: `pip install ./bench` from a clone"
    )
