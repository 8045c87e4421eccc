"""How many of something there are, in words that are read by people; and names as they can be shown to them."""

from __future__ import annotations

import re

UNPAIRED = (
    "No pair of columns was measured: the budget is too small. Numbers about pairs assume independence."
)
"""What is said first of a release of single columns to whoever asks about several."""

_THINGS = "attribute|bin|block|cell|group|pair|part|question|record|row|table|total|value"
_ONE_OF_MANY = re.compile(rf"(?<![\d.,])1 ({_THINGS})s\b( (?:were|are)\b)?")
_OF_ONE = {" were": " was", " are": " is", None: ""}


# What terminals obey and XML has not, and what turns the order of letters around.
_UNSEEN = (*range(32), *range(127, 160), *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFFFE, 0xFFFF)
_BY_NUMBER = {code: f"\\u{code:04x}" for code in _UNSEEN}
_LINES = {code: number for code, number in _BY_NUMBER.items() if chr(code) not in "\t\n"}


def counted(number: int, thing: str) -> str:
    """Say a number with what it counts: one of it by itself, or several, with thousands marked.

    Example:
        >>> counted(1, "cell"), counted(4096, "cell")
        ('1 cell', '4,096 cells')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def mended(said: str) -> str:
    """Give what a mechanism says of its estimate as people say it: not of "1 tables", whoever wrote the words.

    Example:
        >>> mended("21 tables were measured; 1 tables were measured with 1 parts")
        '21 tables were measured; 1 table was measured with 1 part'
    """
    return _ONE_OF_MANY.sub(lambda found: f"1 {found[1]}{_OF_ONE[found[2]]}", said)


def visible(text: str, *, lines: bool = False) -> str:
    r"""A text as it can be shown: names of releases may be made by anybody, to mislead whoever looks at one.

    Control characters are given by their numbers, as JSON writes them; ``lines`` leaves line ends and tabs.

    Example:
        >>> print(visible("1\x1b[2J9"))
        1\u001b[2J9
    """
    return text.translate(_LINES if lines else _BY_NUMBER)
