"""Celery tasks that jobs of APScheduler send: their names, and where Celery's router sends them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from minutebook.json_values import said


class Sent(NamedTuple):
    """A task that is sent: its application, name, arguments, and the options of the call."""

    app: Any
    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Mapping[str, Any]
    by_name: bool = False


def task_of(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], unsaid: list[str]
) -> dict[str, Any]:
    """Return the name of the task that a function is or sends, and the options of its message.

    Nothing for another function. What JSON cannot hold is added to `unsaid`.
    """
    # No function is of Celery before it is imported, and it need not be installed.
    sent = _sent(function, args, kwargs) if "celery" in sys.modules else None
    if sent is None:
        return {}
    from minutebook.beat.messages import message_options

    parts = (sent.app, sent.name, sent.args, sent.kwargs, sent.options)
    options = message_options(*parts, by_name=sent.by_name)
    return {"task": sent.name, "options": said("options", options, unsaid)}


def _sent(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sent | None:
    from celery import Celery, Task

    owner, method = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(function, Task):
        return Sent(function.app, function.name, args, kwargs, {})
    if isinstance(owner, Task) and method == "delay":
        return Sent(owner.app, owner.name, args, kwargs, {})
    names = ("args", "kwargs")
    if isinstance(owner, Task) and method == "apply_async":
        given = {**dict(zip(names, args)), **kwargs}
        return Sent(owner.app, owner.name, *_taken(given), given)
    if isinstance(owner, Celery) and method == "send_task":
        given = {**dict(zip(("name", *names), args)), **kwargs}
        return Sent(owner, str(given.pop("name", "")), *_taken(given), given, by_name=True)
    return None


def _taken(given: dict[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Take the task's arguments out of those of a call."""
    return given.pop("args", None) or (), given.pop("kwargs", None) or {}
