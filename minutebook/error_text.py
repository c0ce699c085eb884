"""Errors, values and parameters of tasks as text, for Minutebook's workers and the user's."""

from __future__ import annotations

import inspect
import os
import re
import reprlib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

MOST_LINES = 80
LONGEST_LINE = 500
LONGEST_VALUE = 1_000
# A worker says them every two seconds.
MOST_TEXT = 16_000
MOST_PARAMETERS = 30
LONGEST_NAME = 60
LONGEST_DEFAULT = 40
# Other values have a `repr` of their own, which is not called.
_PLAIN = (bool, int, float, str, type(None))
_WORDS = "pass|pwd|secret|token|key|credential|auth(?!or)"
_SECRET = re.compile(f"{_WORDS}|authori[sz]", re.IGNORECASE)
# A URL with credentials, or a text such as `host=db password=sesame`.
_SECRET_TEXT = re.compile(rf"://.*@|(?:{_WORDS})\w*['\"]?\s*[=:]", re.IGNORECASE | re.DOTALL)
_HIDDEN = "…"
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


def signatures_of(tasks: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the parameters of each task by its name; without those that are too long for all."""
    known = ((name, _parameters(tasks[name].run)) for name in sorted(tasks))
    return bounded((name, texts) for name, texts in known if texts is not None)


def bounded(signatures: Iterable[tuple[str, list[str]]]) -> dict[str, list[str]]:
    """Return the parameters of tasks by name; without those that are too long for all."""
    found: dict[str, list[str]] = {}
    left = MOST_TEXT
    for name, texts in signatures:
        left -= sum(map(len, [name, *texts]))
        if left >= 0:
            found[name] = texts
    return found


def _parameters(run: Callable[..., Any]) -> list[str] | None:
    try:
        parameters = [*inspect.signature(run).parameters.values()]
    except Exception:  # a user's callable may have a signature of its own, and break
        return None
    is_short = len(parameters) <= MOST_PARAMETERS
    is_short = is_short and all(len(one.name) <= LONGEST_NAME for one in parameters)
    return [*_texts(parameters)] if is_short else None


def _texts(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield the parameters as Python writes them, with its marks `/` and `*`."""
    before = None
    for one in parameters:
        if before is one.POSITIONAL_ONLY and one.kind is not before:
            yield "/"
        if one.kind is one.KEYWORD_ONLY and before not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            yield "*"
        stars = "*" * (one.kind is one.VAR_POSITIONAL) + "**" * (one.kind is one.VAR_KEYWORD)
        yield stars + one.name + ("" if one.default is one.empty else f"={_default(one)}")
        before = one.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def is_secret_name(name: str) -> bool:
    """Return whether the name of a parameter says that its value is secret: `db_password_ro`."""
    return _SECRET.search(name) is not None


def _default(one: inspect.Parameter) -> str:
    if type(one.default) not in _PLAIN or is_secret_name(one.name):
        return _HIDDEN
    text = repr(one.default)
    if _SECRET_TEXT.search(text):
        return _HIDDEN
    return text if len(text) <= LONGEST_DEFAULT else text[: LONGEST_DEFAULT - 1] + _HIDDEN
