"""Whether the quoted fields of a CSV file end on the line they began on."""

from __future__ import annotations

from typing import Any

from dphist.kernels.compile import kernel

# Where a reader stands: at the start of a field, after one space or several there, in a plain field, inside quotes,
# just after a quote inside quotes (it ends the field or stands for itself), after the spaces that may follow a closed
# field. Or it is lost.
START, SPACE, SPACES, PLAIN, QUOTED, CLOSING, CLOSED, LOST = range(8)


@kernel
def follow(text: Any, state: int, separator: int) -> int:
    """Follow the quotes through a piece of a file (bytes), and say where the reader stands after it.

    It is lost (`LOST`) as soon as a line ends inside quotes, or something else than a separator follows a closing
    quote. A quote inside a plain field is a character like any other. After one space DuckDB takes a quote for an
    opening one, after two it does not; whoever wrote two may have meant either, so there the reader is lost.
    """
    for byte in text:
        if state == QUOTED:
            if byte == 34:
                state = CLOSING
            elif byte == 10 or byte == 13:
                return LOST
        elif byte == separator or byte == 10 or byte == 13:
            state = START
        elif state == PLAIN:
            continue
        elif state in (START, SPACE, SPACES):
            if byte == 32:
                state = SPACE if state == START else SPACES
            elif byte != 34:
                state = PLAIN
            elif state == SPACES:
                return LOST
            else:
                state = QUOTED
        elif byte == 34 and state == CLOSING:
            state = QUOTED
        elif byte == 32:
            state = CLOSED
        else:
            return LOST
    return state
