"""Keeping records and counts out of what an exception carries.

An exception holds on to the frames that it passed, and they to their local variables. Whoever prints those (``pytest
-l``, rich, IPython's verbose mode, a service that collects errors) prints true counts and records. So the doors
through which private data come in let an exception out bare: its kind and words stay, its frames, causes and contexts
do not. ``DPHIST_TRACEBACK=1`` keeps them, for debugging; what is printed then is as private as the records.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from dphist.errors import DphistError

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def closed(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Let no frame inside a function reach its caller through an exception.

    The only frame that an exception keeps is the one below, and when it raises, its arguments are forgotten: what is
    left are the function itself and the exception.
    """

    @functools.wraps(function)
    def door(*given: Arguments.args, **named: Arguments.kwargs) -> Answer:
        try:
            return function(*given, **named)
        except BaseException as error:
            if os.environ.get("DPHIST_TRACEBACK") == "1":
                raise
            failure = bare(error)
        # Outside of the handler, so that the old traceback does not come along as a context.
        del given, named
        raise failure

    return door


def bare(error: BaseException) -> BaseException:
    """An exception without what it drags along: frames, causes, contexts, notes, and values that are no words."""
    if isinstance(error, UnicodeError | BaseExceptionGroup | StopIteration):
        # These hold the text, the errors or the value themselves, and cannot be made to forget them.
        return RuntimeError(
            f"an unforeseen {type(error).__name__}; DPHIST_TRACEBACK=1 shows where it happened"
        )
    error.__cause__ = error.__context__ = None
    error.__traceback__ = None
    # Notes live here too, and so does whatever a library hangs on its errors.
    error.__dict__.clear()
    if not isinstance(error, DphistError):
        error.args = tuple(
            each for each in error.args if isinstance(each, str | type(None)) or _is_code(error, each)
        )
        held: Any = error
        if isinstance(error, AttributeError):
            held.obj = None
    return error


def _is_code(error: BaseException, value: object) -> bool:
    """Whether a number is one that the system or a program gave to say what went wrong."""
    return isinstance(error, OSError | SystemExit) and isinstance(value, int)
