"""How many of something there are, in words that are read by people."""

from __future__ import annotations

import re

_ONE_OF_MANY = re.compile(r"(?<![\d.,])1 (table|attribute|part)s\b( were\b)?")


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


def mended(said: str) -> str:
    """Give what an older release says of itself as it is said today: not of "1 tables".

    Args:
        said: The words.

    Returns:
        The same with one of a thing by itself.

    Example:
        >>> mended("21 tables were measured; 1 tables were measured with 1 parts")
        '21 tables were measured; 1 table was measured with 1 part'
    """
    return _ONE_OF_MANY.sub(lambda found: f"1 {found[1]}" + (" was" if found[2] else ""), said)
