"""How many of something there are, in words that are read by people."""

from __future__ import annotations

import re

_THINGS = "attribute|bin|block|cell|group|pair|part|question|record|row|table|total|value"
_ONE_OF_MANY = re.compile(rf"(?<![\d.,])1 ({_THINGS})s\b( (?:were|are)\b)?")
_OF_ONE = {" were": " was", " are": " is", None: ""}


def so_many(number: int, thing: str) -> str:
    """Say a number with what it counts: one of it by itself, or several.

    Args:
        number: How many.
        thing: What, if it is one.

    Returns:
        The words.

    Example:
        >>> so_many(1, "table"), so_many(12, "table")
        ('1 table', '12 tables')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def counted(number: int, thing: str) -> str:
    """Say the same with thousands marked; `so_many` leaves them unmarked, as files say it of themselves.

    Args:
        number: How many.
        thing: What, if it is one.

    Returns:
        The words.

    Example:
        >>> counted(1, "cell"), counted(4096, "cell")
        ('1 cell', '4,096 cells')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def mended(said: str) -> str:
    """Give what a mechanism says of its estimate as people say it: not of "1 tables", whoever wrote the words.

    Args:
        said: The words.

    Returns:
        The same with one of a thing by itself.

    Example:
        >>> mended("21 tables were measured; 1 tables were measured with 1 parts")
        '21 tables were measured; 1 table was measured with 1 part'
    """
    return _ONE_OF_MANY.sub(lambda found: f"1 {found[1]}{_OF_ONE[found[2]]}", said)
