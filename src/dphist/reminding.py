"""Reminders: what a custodian should think about, said once in a process."""

from __future__ import annotations

import warnings

from dphist.errors import CustodyWarning

_reminded: set[str] = set()


def remind(key: str, text: str, *, depth: int) -> None:
    """Say something once in a process; ``depth`` is how many calls above this one the caller's line is."""
    if key not in _reminded:
        _reminded.add(key)
        warnings.warn(text, CustodyWarning, stacklevel=depth + 1)


def remind_of_data(name: str, what: str, *, depth: int) -> None:
    """A domain that looks read off the records."""
    remind(
        f"domain {name}",
        f"{name}: {what} looks taken from the records. What the cells are is published as it is: bounds and categories "
        "must come from what everybody may know (a code book, the law), or they tell about somebody before any noise",
        depth=depth + 1,
    )
