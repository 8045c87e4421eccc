"""Where the objects of a JSON file begin and end."""

from __future__ import annotations

from typing import Any

from dphist.kernels.compile import kernel

# What was found: nothing to refuse; an object that goes on past its line; something that is not an object, or one that
# is not closed by what opened it; an object longer than any may be; one with more inside each other than is followed.
FINE, BROKEN, OTHER, LONG, DEEP = range(5)
# Where a reader of an array stands between objects: before the first, after an object, after a comma, after the end.
FIRST, AFTER, COMMA, OVER = range(4)

_DEEPEST = 60


@kernel
def split_objects(text: Any, array: bool, stand: int, longest: int, starts: Any) -> tuple[int, int, int, int]:
    """Find the objects in a piece of a JSON file (bytes): one a line, or those of one array.

    Gives how many are complete, where the text behind the last complete one begins, where the reader stands there, and
    what was found; ``starts`` is filled with where each begins. Commas between the objects of an array become
    spaces, so that each object is followed by nothing but white space up to the next. In a line nothing may follow the
    object, and a line that holds nothing is none.

    An object is taken as closed by brackets of the kind that opened it, outside of texts. Whether it is good JSON
    inside is for its reader to say, of each object by itself.
    """
    found = 0
    at = 0
    rest = 0
    while at < text.size:
        byte = text[at]
        if byte == 32 or byte == 9 or byte == 13 or byte == 10:
            if byte == 10 and not array:
                stand = FIRST
            at += 1
            continue
        if array and byte == 44 and stand == AFTER:
            text[at] = 32
            stand = COMMA
            at += 1
            rest = at
            continue
        if array and byte == 93 and stand in (FIRST, AFTER):
            text[at] = 32
            stand = OVER
            at += 1
            rest = at
            continue
        if byte != 123 or stand in (OVER, AFTER):
            return found, rest, stand, OTHER
        start = at
        depth = 0
        # One bit a level: whether a square bracket opened it.
        kinds = 0
        inside = False
        while at < text.size:
            byte = text[at]
            at += 1
            if inside:
                if byte == 34:
                    inside = False
                elif byte == 92:
                    if at < text.size and (text[at] != 10 or array):
                        at += 1
                elif byte == 10 and not array:
                    return found, rest, stand, BROKEN
            elif byte == 34:
                inside = True
            elif byte == 123 or byte == 91:
                if depth == _DEEPEST:
                    return found, rest, stand, DEEP
                kinds = kinds * 2 + (byte == 91)
                depth += 1
            elif byte == 125 or byte == 93:
                if (kinds & 1) != (byte == 93):
                    return found, rest, stand, OTHER
                kinds >>= 1
                depth -= 1
                if depth == 0:
                    break
            elif byte == 10 and not array:
                return found, rest, stand, BROKEN
            elif byte == 92:
                return found, rest, stand, OTHER
        if at - start > longest:
            return found, rest, stand, LONG
        if depth > 0 or inside:
            # It goes on in the next piece.
            break
        starts[found] = start
        found += 1
        rest = at
        stand = AFTER
    return found, rest, stand, FINE
