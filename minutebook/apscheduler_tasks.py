"""Celery tasks that jobs of APScheduler send: their names, and where Celery's router sends them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from minutebook.json_values import said


def task_of(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], unsaid: list[str]
) -> dict[str, Any]:
    """Return the name of the task that a function is or sends, and the options of its message.

    Nothing for another function. What JSON cannot hold is added to `unsaid`.
    """
    if "celery" not in sys.modules:
        return {}
    from celery import Task

    owner, method = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(function, Task):
        return _message(function, args, kwargs, {}, unsaid)
    if isinstance(owner, Task) and method == "delay":
        return _message(owner, args, kwargs, {}, unsaid)
    if isinstance(owner, Task) and method == "apply_async":
        given = {**dict(zip(("args", "kwargs"), args)), **kwargs}
        own = given.pop("args", None) or (), given.pop("kwargs", None) or {}
        return _message(owner, *own, given, unsaid)
    return {}


def _message(
    task: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    given: Mapping[str, Any],
    unsaid: list[str],
) -> dict[str, Any]:
    from minutebook.beat.messages import message_options

    options = message_options(task.app, task.name, args, kwargs, given)
    return {"task": task.name, "options": said("options", options, unsaid)}
