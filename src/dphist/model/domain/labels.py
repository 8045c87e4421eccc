"""Readable names of cells, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

OTHER = "other"


def writable(text: str) -> bool:
    """Whether a text can stand in a file: half of a character cannot, and a release with one could not be saved."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Labels(Sequence[str]):
    """One readable text per cell, as a sequence that costs nothing until it is read."""

    __slots__ = ("_label", "_range")

    def __init__(self, label: Callable[[int], str], cells: range) -> None:
        self._label = label
        self._range = cells

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Labels: ...

    def __getitem__(self, index: int | slice) -> str | Labels:
        if isinstance(index, slice):
            return Labels(self._label, self._range[index])
        return self._label(self._range[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(self[:4])
        return f"Labels({shown}{', …' if len(self) > 4 else ''})"
