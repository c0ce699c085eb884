"""Strict JSON: no duplicate keys, and only values that every store can keep."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from models.errors import InvalidDocument, Problem
from models.hints import ROOT, path_of

LONGEST_DOCUMENT = 256 * 1024
DEEPEST = 32
TOO_DEEP = f"is nested too deeply; write at most {DEEPEST} levels"
LARGEST_NUMBER = 2**63 - 1
BAD_CHARACTER = "holds a character that cannot be stored; remove it"
TOO_LARGE = "is too large a number; write it as a text"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LAST_COMMA = re.compile(r",\s*[\]}]")
_QUOTES = 'write texts and keys in double quotes: "name"'
# By the character at which Python's parser stops.
_AT = {
    **dict.fromkeys(("'", "\u2018", "\u2019", "\u201c", "\u201d"), _QUOTES),
    **dict.fromkeys(("/", "#"), "JSON has no comments; remove it"),
    "": "the text ends too early; close every { and [",
}
# By the beginnings of its messages.
_MESSAGES = {
    "Expecting ','": "write a comma between two entries",
    "Expecting ':'": "write a colon between key and value",
    "Expecting property": "write a key in double quotes",
    "Expecting value": "write a text in double quotes, a number, true, false, null, [ ] or { }",
    "Invalid control": "write \\n for a line break and \\t for a tab",
    "Invalid \\": "write \\\\ for a backslash",
    "Unterminated": "close the text with a double quote",
    "Extra data": "remove what follows the end of the document",
}


class InvalidJson(InvalidDocument, ValueError):
    """A text is not JSON, or is refused JSON; `problems` says where."""


def read_json(text: str | bytes, *, longest: int | None = LONGEST_DOCUMENT) -> object:
    """Return the value of the JSON `text`; raises InvalidJson.

    Also refused: duplicate keys, what `unstorable` names except characters, which a result may
    hold, and more than `longest` bytes (None: any size).
    """
    written = _decoded(text, longest)
    try:
        value = _READ.decode(written)
    except json.JSONDecodeError as error:
        raise _not_json(written, error) from None
    except RecursionError:
        raise _refused(ROOT, None, TOO_DEEP) from None
    problems = [one for one in unstorable(value) if not one.remedy.endswith(BAD_CHARACTER)]
    if problems:
        raise InvalidJson(problems)
    return value


def is_too_large(value: object) -> bool:
    """Return whether a value is a number that no column of 64 bits can hold."""
    return isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER


def unstorable(value: object) -> list[Problem]:
    """Return a problem for each part of `value` that is not JSON, or that no store can keep."""
    return list(_faults(value, ()))


def _faults(value: object, loc: tuple[int | str, ...]) -> Iterator[Problem]:
    if len(loc) > DEEPEST:
        yield Problem(path_of(loc), None, TOO_DEEP)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unstorable_key(key, loc)
            yield from _faults(item, (*loc, str(key)))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _faults(item, (*loc, number))
    else:
        remedy = _unstorable_scalar(value)
        if remedy:
            yield Problem(path_of(loc), value, remedy)


def _unstorable_key(key: object, loc: tuple[int | str, ...]) -> Iterator[Problem]:
    remedy = _unstorable_scalar(key) if isinstance(key, str) else "write keys in double quotes"
    if remedy:
        yield Problem(path_of((*loc, str(key))), key, f"the key {remedy}")


def _unstorable_scalar(value: object) -> str | None:
    if isinstance(value, str):
        bad = _UNSTORABLE.search(value)
        return BAD_CHARACTER if bad else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "write a finite number"
    if isinstance(value, int) and not isinstance(value, bool):
        return None if abs(value) <= LARGEST_NUMBER else TOO_LARGE
    return None if value is None or isinstance(value, bool) else "write a JSON value"


def _decoded(text: str | bytes, longest: int | None) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if longest is not None and size > longest:
        raise _refused(ROOT, None, f"is {size} bytes long; split it: {longest} at most")
    try:
        written = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise _refused(ROOT, None, f"is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    written = written.removeprefix("\ufeff")
    if not written.strip():
        raise _refused(ROOT, None, "is empty; write a JSON object")
    return written


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        remedy = "occurs twice in one object; keep one of the two"
        raise InvalidJson([Problem(path_of((key,)), key, remedy) for key in twice])
    return found


def _whole(digits: str) -> int:
    # Python reads no number of thousands of digits.
    return int(digits) if len(digits) <= 20 else 10**20


# Made once: it takes as long to make as to read a short document.
_READ = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole)


def _not_json(text: str, error: json.JSONDecodeError) -> InvalidJson:
    before = text[: error.pos].rstrip()
    comma = _LAST_COMMA.match(text, len(before) - before.endswith(","))
    if comma is not None:
        return _at(text, comma.start(), "there is a comma after the last entry; remove it")
    remedy = _AT.get(text[error.pos :].strip()[:1])
    if remedy is None and not before:
        remedy = "is not JSON; write an object in { } or a list in [ ]"
    messages = (one for start, one in _MESSAGES.items() if error.msg.startswith(start))
    return _at(text, error.pos, remedy or f"is not JSON; {next(messages, error.msg)}")


def _at(text: str, position: int, remedy: str) -> InvalidJson:
    position = max(position, 0)
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return _refused(f"line {line}, column {column}", text[position : position + 20], remedy)


def _refused(path: str, value: object, remedy: str) -> InvalidJson:
    return InvalidJson([Problem(path, value, remedy)])
