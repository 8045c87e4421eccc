"""Lines of a CSV file into the texts of some of their fields."""

from __future__ import annotations

from typing import Any

from dphist.kernels.compile import kernel

# What was found: nothing to refuse; a quoted field that goes on past its line, or something behind its closing quote; a
# carriage return where none ends a line; a line longer than any may be.
FINE, QUOTE, CARRIAGE, LONG = range(4)

_LF, _CR, _SPACE, _QUOTE = 10, 13, 32, 34


@kernel
def split_fields(
    text: Any, separator: int, returns: bool, longest: int, places: Any, data: Any, ends: Any, missing: Any
) -> tuple[int, int]:
    """Split lines (bytes) into fields, and copy out those that are wanted; give the rows made and what was found.

    ``text`` is whole lines, the last one ended too. Each ends in a line feed, after a carriage return if ``returns``.
    ``places`` has an entry for each field of a line: where its text goes, or -1. Row ``r`` of column ``c`` is then
    ``data[c, ends[c, r] : ends[c, r + 1]]``, or missing. Empty lines, and lines with another number of fields, make no
    row.

    Nothing is carried from one line to the next but where to write, so a row is a function of its line.
    """
    fields = places.size
    columns = data.shape[0]
    rows = 0
    for column in range(columns):
        ends[column, 0] = 0
    at = 0
    while at < text.size:
        begin = at
        field = 0
        for column in range(columns):
            ends[column, rows + 1] = ends[column, rows]
        if text[at] == _LF or (text[at] == _CR and at + 1 < text.size and text[at + 1] == _LF):
            # An empty line: its end is judged, and it makes no row.
            if (text[at] == _CR) != returns:
                return rows, CARRIAGE
            at += 1 + returns
            continue
        while True:
            place = places[field] if field < fields else -1
            write = ends[place, rows + 1] if place >= 0 else 0
            start = at
            while text[at] == _SPACE:
                at += 1
            if text[at] == _QUOTE:
                # Spaces around a quoted field are not part of it.
                at += 1
                while True:
                    byte = text[at]
                    if byte in (_LF, _CR):
                        return rows, QUOTE
                    at += 1
                    if byte == _QUOTE:
                        if text[at] != _QUOTE:
                            break
                        at += 1
                    if place >= 0:
                        data[place, write] = byte
                        write += 1
                while text[at] == _SPACE:
                    at += 1
                byte = text[at]
                if byte != separator and byte != _LF and byte != _CR:
                    return rows, QUOTE
                if place >= 0:
                    missing[place, rows] = False
            else:
                at = start
                byte = text[at]
                if place >= 0:
                    while byte != separator and byte != _LF and byte != _CR:
                        data[place, write] = byte
                        write += 1
                        at += 1
                        byte = text[at]
                    missing[place, rows] = at == start
                else:
                    while byte != separator and byte != _LF and byte != _CR:
                        at += 1
                        byte = text[at]
            if place >= 0:
                ends[place, rows + 1] = write
            field += 1
            at += 1
            if byte == separator:
                continue
            if byte == _CR:
                if not returns or at == text.size or text[at] != _LF:
                    return rows, CARRIAGE
                at += 1
            elif returns:
                return rows, CARRIAGE
            break
        if at - begin > longest:
            return rows, LONG
        if field == fields:
            rows += 1
    return rows, FINE
