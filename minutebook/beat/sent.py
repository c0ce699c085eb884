"""Celery tasks that jobs of APScheduler send, and the messages that Celery makes for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from minutebook.json_values import said

NAMES = ("args", "kwargs")


class Call(NamedTuple):
    """A call that sends a task: its application, the task's name, its options, and the call."""

    app: Any
    name: str
    options: Mapping[str, Any]
    send: Callable[..., Any]
    # Whether the job calls this, or the task itself in the scheduler's process.
    sends: bool = True


def task_of(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], unsaid: list[str]
) -> dict[str, Any]:
    """Return the message of the task that a function is or sends; nothing for another function.

    What no action can hold is added to `unsaid`. Raises Unsendable.
    """
    # No function is of Celery before it is imported, and it need not be installed.
    call = _call(function, args, kwargs) if "celery" in sys.modules else None
    if call is None:
        return {}
    from minutebook.beat.messages import message_of

    made = message_of(call.app, call.name, call.options, call.send)
    return {
        "task": call.name,
        "sends": call.sends,
        "options": said("options", made["options"], unsaid),
        **{f"task_{part}": said(part, made[part], unsaid) for part in NAMES},
    }


def _call(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
    from celery import Celery, Task

    owner: Any = getattr(function, "__self__", None)
    method = getattr(function, "__name__", "")
    given: dict[str, Any]
    if isinstance(function, Task):
        send = partial(Task.apply_async, function, tuple(args), dict(kwargs))
        return Call(function.app, function.name, {}, send, sends=False)
    if isinstance(owner, Task) and method == "delay":
        send = partial(Task.apply_async, owner, tuple(args), dict(kwargs))
        return Call(owner.app, owner.name, {}, send)
    if isinstance(owner, Task) and method == "apply_async":
        given = {**dict(zip(NAMES, args)), **kwargs}
        return Call(owner.app, owner.name, given, partial(Task.apply_async, owner, **given))
    if isinstance(owner, Celery) and method == "send_task":
        given = {**dict(zip(("name", *NAMES), args)), **kwargs}
        return Call(owner, str(given.get("name")), given, partial(owner.send_task, **given))
    return None
