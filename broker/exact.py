"""Whether a message is exactly what Minutebook sends: two short arguments, and nothing else."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from broker.names import ORIGIN
from models.carriers import WORKER_TASKS

# In bytes: an id, a number, and four empty fields of Celery.
LONGEST_BODY = 512
# Of a header's text: those that Celery writes for logs name the two arguments.
LONGEST_TEXT = 200
LARGEST_ATTEMPT = 2**31 - 1
# Celery's fields of a body that start further tasks.
CANVAS = frozenset({"callbacks", "errbacks", "chain", "chord"})
JSON, UTF_8 = "application/json", "utf-8"

Holds = Callable[[Any], bool]


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


# Headers that hold something in our messages, and those that brokers add on redelivery.
FILLED: Mapping[str, Holds] = {
    "task": lambda value: value in WORKER_TASKS,
    "lang": lambda value: value == "py",
    "origin": lambda value: value == ORIGIN,
    "ignore_result": lambda value: isinstance(value, bool),
    "argsrepr": _is_short,
    "kwargsrepr": _is_short,
    "redelivered": lambda value: isinstance(value, bool),
    "x-delivery-count": lambda value: isinstance(value, int),
}
IDS = frozenset({"id", "root_id"})
# Of a header that holds nothing: a newer Celery may send more of them.
EMPTY: tuple[object, ...] = (None, 0, "", [], {}, [None, None])


def why_foreign(message: Any) -> str | None:
    """Return why a message is not exactly one of ours, None if it is.

    Celery obeys much that a message says: an `eta` or a `timelimit`, callbacks, chains and tasks of
    its own. Ours say nothing of the kind, and whoever may write to the broker must not either.
    """
    headers = message.headers
    if not isinstance(headers, Mapping) or not isinstance(headers.get("task"), str):
        return "it is not a message of a Celery task"
    if headers["task"] not in WORKER_TASKS:
        return f"the task {headers['task'][:LONGEST_TEXT]!r} is not known here"
    if (message.content_type, message.content_encoding) != (JSON, UTF_8):
        return f"it is not {JSON} in {UTF_8}"
    body = message.body
    if not isinstance(body, str | bytes) or len(body) > LONGEST_BODY:
        return f"its body is longer than {LONGEST_BODY} bytes"
    named = _named(body)
    if named is None:
        return "its body is not an id and an attempt"
    return _why_by_headers(headers, named)


def _named(body: str | bytes) -> str | None:
    """Return the id that a body names, None if it holds anything but an id and an attempt."""
    try:
        args, kwargs, embedded = json.loads(body)
        id, attempt = args
        is_id = str(UUID(id)) == id
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    is_attempt = type(attempt) is int and 0 < attempt <= LARGEST_ATTEMPT
    is_plain = kwargs == {} and isinstance(embedded, dict) and embedded.keys() <= CANVAS
    is_all = is_id and is_attempt and is_plain and not any(embedded.values())
    return id if is_all else None


def _why_by_headers(headers: Mapping[str, Any], id: str) -> str | None:
    for name, value in headers.items():
        if not _is_ours(name, value, id):
            return f"its header {str(name)[:LONGEST_TEXT]!r} is not one that Minutebook sends"
    return None if headers.get("id") == id else "its header 'id' is missing"


def _is_ours(name: str, value: Any, id: str) -> bool:
    if name in IDS:
        return bool(value == id)
    holds = FILLED.get(name)
    return value in EMPTY if holds is None else holds(value)
