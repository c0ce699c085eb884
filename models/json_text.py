"""Strict JSON: no duplicate keys, and only values that every store can keep."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from models.errors import InvalidDocument, Problem
from models.problems import ROOT, path_of

LONGEST_DOCUMENT = 256 * 1024
DEEPEST = 32
TOO_DEEP = f"is nested too deeply; write at most {DEEPEST} levels"
LARGEST_NUMBER = 2**63 - 1
# A text without its end matches too: otherwise each quote in it would be tried as a beginning.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_WRONG_QUOTES = ("'", "\u2018", "\u2019", "\u201c", "\u201d")
# Lines of a comment before an object or a list.
_COMMENTED = re.compile(r"(?:\s*+(?:(?:#|//)[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/))*+\s*+[\[{]")
# Beginnings of the messages of Python's JSON parser, and what to write instead.
_REMEDIES = {
    "Expecting ','": "write a comma between two entries",
    "Expecting ':'": "write a colon between key and value",
    "Expecting property": "write a key in double quotes",
    "Expecting value": "write a text in double quotes, a number, true, false, null, [ ] or { }",
    "Invalid control": "write \\n for a line break and \\t for a tab",
    "Invalid \\": "write \\\\ for a backslash",
    "Unterminated": "close the text with a double quote",
    "Extra data": "remove what follows the end of the document",
}
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_BETWEEN_BRACKETS = re.compile(r"[^\[\]{}]++")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_WIDE_NUMBER = re.compile(r"-?[0-9]{20,}")


class InvalidJson(InvalidDocument, ValueError):
    """A text is not JSON, or is refused JSON; `problems` says where."""


def read_json(text: str | bytes, *, longest: int | None = LONGEST_DOCUMENT) -> object:
    """Return the value of the JSON `text`; raises InvalidJson.

    Also refused: duplicate keys, NaN and Infinity, numbers that no store can keep, nesting deeper
    than 32, and more than `longest` bytes (None: any size).
    """
    written = _decoded(text, longest)
    if _may_be_deep(written) and _depth(written) > DEEPEST:
        raise _refused(ROOT, None, TOO_DEEP)
    try:
        return _READ.decode(written)
    except json.JSONDecodeError as error:
        raise _not_json(written, error) from None
    except _KeyTwice:
        raise _of_keys_twice(written) from None


def is_too_large(value: object) -> bool:
    """Return whether a value is a number that no column of 64 bits can hold."""
    return isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER


def unstorable(value: object) -> list[Problem]:
    """Return a problem for each part of `value` that is not JSON, or that no store can keep."""
    # Paths cost more than the checks: they are built only for a value that has a fault.
    return [] if _is_storable(value) else list(_faults(value, ()))


def _is_storable(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                if not {*map(type, item)} <= {str}:
                    return False
                inner.extend(item)
                inner.extend(item.values())
            elif kind is list:
                inner.extend(item)
            elif _unstorable_scalar(item):
                return False
        level = inner
    return not level


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
        return "holds a character that cannot be stored; remove it" if bad else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "write a finite number"
    if isinstance(value, int) and not isinstance(value, bool):
        return None if abs(value) <= LARGEST_NUMBER else "is too large a number; write it as a text"
    return None if value is None or isinstance(value, bool) else "write a JSON value"


def _decoded(text: str | bytes, longest: int | None) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if longest is not None and size > longest:
        raise _refused(ROOT, None, f"is {size} bytes long; write at most {longest}")
    try:
        written = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise _refused(ROOT, None, f"is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    written = written.removeprefix("\ufeff")
    if not written.strip():
        raise _refused(ROOT, None, "is empty; write a JSON object")
    return written


def _may_be_deep(text: str) -> bool:
    """Return whether a text has so many brackets, those in its strings included."""
    return text.count("{") + text.count("[") > DEEPEST


def _depth(text: str) -> int:
    brackets = _BETWEEN_BRACKETS.sub("", _STRING.sub("", text))
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


class _KeyTwice(Exception):
    """A key occurs twice in one object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _KeyTwice
    return found


def _of_keys_twice(text: str) -> InvalidJson:
    """Return the error of a text with a key twice in one object, all such keys in it."""
    repeated: dict[str, None] = {}

    def note(pairs: list[tuple[str, Any]]) -> None:
        counts = Counter(key for key, _ in pairs)
        repeated.update((key, None) for key, count in counts.items() if count > 1)

    try:
        _decoder(note).decode(text)
    except json.JSONDecodeError as error:
        return _not_json(text, error)
    return InvalidJson([_twice(key) for key in repeated])


def _twice(key: str) -> Problem:
    return Problem(path_of((key,)), key, "occurs twice in one object; keep one of the two")


def _no_constant(name: str) -> object:
    raise _refused(ROOT, name, f"{name} is not JSON; write a number, or leave the key out")


def _whole(digits: str) -> int:
    number = None if _WIDE_NUMBER.fullmatch(digits) else int(digits)
    if number is None or abs(number) > LARGEST_NUMBER:
        raise _refused(ROOT, digits[:40], "is too large a number; write it as a text")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _refused(ROOT, digits[:40], "is too large a number; write it as a text")
    return number


def _decoder(object_of: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=object_of,
        parse_constant=_no_constant,
        parse_int=_whole,
        parse_float=_finite,
    )


# Made once: it takes as long to make as to read a short document.
_READ = _decoder(_object)


def _not_json(text: str, error: json.JSONDecodeError) -> InvalidJson:
    comma = _last_comma(text, error.pos)
    if comma is not None:
        return _at(text, comma, "there is a comma after the last entry; remove it")
    return _at(text, error.pos, _remedy(text, error))


def _last_comma(text: str, position: int) -> int | None:
    """Return where a comma stands before the end of an object or a list, around `position`."""
    before = text[:position].rstrip()
    comma = len(before) - 1 if before.endswith(",") else position
    is_last = text[comma : comma + 1] == "," and text[comma + 1 :].lstrip()[:1] in ("]", "}")
    return comma if is_last else None


def _remedy(text: str, error: json.JSONDecodeError) -> str:
    at = text[error.pos : error.pos + 1]
    if at in _WRONG_QUOTES:
        return 'write texts and keys in double quotes: "name"'
    if not text[: error.pos].strip() and not _COMMENTED.match(text):
        return "is not JSON; write an object in { } or a list in [ ]"
    if at in ("/", "#"):
        return "JSON has no comments; remove it"
    if not text[error.pos :].strip():
        return "the text ends too early; close every { and ["
    remedies = (remedy for start, remedy in _REMEDIES.items() if error.msg.startswith(start))
    return f"is not JSON; {next(remedies, error.msg)}"


def _at(text: str, position: int, remedy: str) -> InvalidJson:
    position = max(position, 0)
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return _refused(f"line {line}, column {column}", text[position : position + 20], remedy)


def _refused(path: str, value: object, remedy: str) -> InvalidJson:
    return InvalidJson([Problem(path, value, remedy)])
