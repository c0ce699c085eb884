"""Let a task's retries and replacements continue its operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from celery.exceptions import Ignore, Retry

from minutebook.followed import HEADER, current_operation


def noted(task: Any, retry: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a task's `retry` so that its message belongs to the operation.

    The retry is noted even if the task catches its exception or continues after it.
    """

    @functools.wraps(retry)
    def retried(*args: Any, **options: Any) -> Any:
        operation = current_operation()
        if operation is None:
            return retry(*args, **options)
        if options.get("headers"):
            ours = {HEADER: (task.request.headers or {}).get(HEADER)}
            options["headers"] = {**options["headers"], **ours}
        try:
            sent = retry(*args, **options)
        except Retry as error:
            operation.sent_again = error
            raise
        operation.sent_again = sent
        return sent

    return retried


def replacing(task: Any, replace: Callable[..., Any], is_followed: set[str]) -> Callable[..., Any]:
    """Wrap a task's `replace` so that the replacement continues the operation.

    For a canvas or a task that is not followed, the operation is handed over.
    """

    @functools.wraps(replace)
    def replaced(sig: Any) -> Any:
        operation = current_operation()
        if operation is None or task.request.is_eager:
            return replace(sig)
        name = str(sig.get("task"))
        is_plain = sig.get("subtask_type") is None and not task.request.chain
        goes_on = is_plain and name in is_followed
        if goes_on:
            header = (task.request.headers or {}).get(HEADER)
            sig.set(headers={**(sig.options.get("headers") or {}), HEADER: header})
        try:
            return replace(sig)
        except Ignore:
            operation.replaced = {"by": name, "is_followed": goes_on}
            raise

    return replaced
