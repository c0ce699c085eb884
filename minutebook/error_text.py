"""Errors and values as text, for Minutebook's workers and the user's."""

from __future__ import annotations

import os
import reprlib
import traceback
from types import TracebackType

MOST_LINES = 80
LONGEST_LINE = 500
LONGEST_VALUE = 1_000
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep

_short = reprlib.Repr()
_short.maxlevel, _short.maxdict, _short.maxlist, _short.maxtuple, _short.maxset = 4, 20, 20, 20, 20
_short.maxstring = _short.maxother = _short.maxlong = 400


def text_of(error: BaseException) -> str:
    """Return an error's class and message, without the message if it raises an error."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a user's __str__
        return type(error).__name__


def traceback_of(error: BaseException) -> list[str]:
    """Return the last lines of a traceback, from the task's own function on."""
    try:
        found = traceback.format_exception(type(error), error, _of_the_task(error.__traceback__))
    except Exception:  # a user's __str__
        return []
    lines = "".join(found).splitlines()[-MOST_LINES:]
    return [line[:LONGEST_LINE] for line in lines]


def value_of(returned: object) -> str | None:
    """Return the short text of what a task returned; None for nothing."""
    if returned is None:
        return None
    try:
        return _short.repr(returned)[:LONGEST_VALUE]
    except Exception:  # a user's __repr__
        return type(returned).__name__


def _of_the_task(at: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the frames of the wrapper around the task."""
    first = at
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_OURS):
        first = first.tb_next
    return first or at
