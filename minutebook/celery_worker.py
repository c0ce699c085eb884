"""Make the tasks of a Celery worker claim their operations before they run; see `follow`."""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable
from datetime import datetime
from math import inf
from secrets import token_urlsafe
from time import monotonic
from typing import Any

from celery import Celery, signals
from celery import Task as CeleryTask
from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded

from minutebook.continued import noted, replacing
from minutebook.discarded import headers_of, note_discarded, ours
from minutebook.error_text import signatures_of, text_of, traceback_of, value_of
from minutebook.followed import HEADER, FollowedOperation, current_operation
from minutebook.lease import CANCELLED, LOST, TIME_LIMIT, Interrupted
from minutebook.reporter import NOT_READY, TIME_LIMIT_TEXT, Reporter, is_too_late
from minutebook.server import NotDone, ServerAway, find_server

logger = logging.getLogger("minutebook.follow")

# How long a task waits for an answer to its take, and for an attempt that is not recorded yet.
TAKE_S = 5.0
EARLY_S = 5.0
AGAIN_S = 0.2
# The longest delay of a message that cannot be claimed.
LONGEST_PUT_BACK_S = 30
SAID_EACH_S = 60.0
# Celery's built-in tasks are not followed.
BUILT_IN_PREFIX = "celery."


class Follower:
    """A worker that follows: its way to the server, and what tasks need to know of it."""

    def __init__(self, reporter: Reporter, time_limit_s: float | None) -> None:
        self.reporter = reporter
        # Celery's time limit for all tasks of the worker.
        self.time_limit_s = time_limit_s
        # When this process last said that it put messages back.
        self.said_at: float | None = None


_followers: dict[int, Follower] = {}


def connect(
    app: Celery, url: str | None, token: str | None, home: str | os.PathLike[str] | None
) -> None:
    """Let workers of `app` follow from their start on; other processes are not affected."""

    # A proxy such as `current_app` stands for another object.
    app = getattr(app, "_get_current_object", lambda: app)()

    def begin(sender: Any, **_: object) -> None:
        if sender.app is app:
            reporter = Reporter(find_server(url, token, home), _described(app, sender))
            _begin(app, Follower(reporter, getattr(sender, "time_limit", None)))

    def ready(sender: Any, **_: object) -> None:
        its = _followers.get(id(app))
        if its is not None and getattr(sender, "app", app) is app:
            number = len(_followed(app))
            logger.info("follows %d tasks by Minutebook at %s", number, its.reporter.server.url)

    def stop(**_: object) -> None:
        its = _followers.pop(id(app), None)
        if its is not None and not its.reporter.is_child:
            its.reporter.stop()

    key = f"minutebook {id(app)}"
    note_discarded(app, lambda app: its.reporter if (its := _followers.get(id(app))) else None)
    signals.worker_init.connect(begin, weak=False, dispatch_uid=f"{key} begin")
    signals.worker_ready.connect(ready, weak=False, dispatch_uid=f"{key} ready")
    signals.worker_shutdown.connect(stop, weak=False, dispatch_uid=f"{key} stop")


def _described(app: Celery, worker: Any) -> dict[str, Any]:
    return {
        "name": worker.hostname,
        "queues": sorted(app.amqp.queues.consume_from),
        "follows": sorted(_followed(app)),
        "signatures": signatures_of(_followed(app)),
        "pid": os.getpid(),
    }


def _followed(app: Celery) -> dict[str, Any]:
    return {name: one for name, one in app.tasks.items() if not name.startswith(BUILT_IN_PREFIX)}


def _begin(app: Celery, follower: Follower) -> None:
    _followers[id(app)] = follower
    for task in _followed(app).values():
        _wrap(task, follower)
    follower.reporter.start()


def _wrap(task: Any, follower: Follower) -> None:
    original = task.run
    if hasattr(original, "__minutebook__"):
        return

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        message = _message_of(task.request)
        # A task that calls itself is part of its operation.
        if message is None or current_operation() is not None:
            return original(*args, **kwargs)
        return _run(task, functools.partial(original, *args, **kwargs), message, follower)

    run.__minutebook__ = True  # type: ignore[attr-defined]
    task.run = run
    task.retry = noted(task, task.retry)
    task.replace = replacing(task, task.replace, set(_followed(task.app)))


def _message_of(request: Any) -> dict[str, Any] | None:
    """Return what our message says of its operation; None for any other call of a task."""
    if request.called_directly or request.is_eager:
        return None
    return ours(headers_of(request), request.id)


def _run(task: Any, call: Callable[[], Any], message: dict[str, Any], follower: Follower) -> Any:
    """Run a task under its operation's lease; raises Ignore if it must not run."""
    operation = _claim(task, message, follower)
    # A message that Celery's `retry` sends belongs to the next attempt.
    next_one = {**message, "attempt": message["attempt"] + 1}
    next_one.pop("put_back", None)
    task.request.headers = {**headers_of(task.request), HEADER: next_one}
    return _run_claimed(task, operation, call)


def _run_claimed(task: Any, operation: FollowedOperation, call: Callable[[], Any]) -> Any:
    try:
        returned = operation.run(call)
    except Interrupted as interrupted:
        if operation.interrupted_for == CANCELLED:
            operation.end("cancelled")
        else:
            operation.forget()
        raise Ignore(f"run {operation.operation_id}: {interrupted}") from None
    except BaseException as error:
        outcome, details = _outcome_of(task, operation, operation.sent_again or error)
        operation.end(outcome, **details)
        raise
    if operation.sent_again is not None:
        outcome, details = _outcome_of(task, operation, operation.sent_again)
        operation.end(outcome, **details)
        return returned
    if operation.stopped_for == LOST:
        operation.forget()
        return returned
    outcomes = {CANCELLED: "cancelled", TIME_LIMIT: "time box", None: "success"}
    said = value_of(returned)
    details = {} if said is None else {"returned": said}
    operation.end(outcomes[operation.stopped_for], **details)
    return returned


def _outcome_of(
    task: Any, operation: FollowedOperation, error: BaseException
) -> tuple[str, dict[str, Any]]:
    """Return the outcome of an attempt whose task raised `error`, with details."""
    if isinstance(error, Retry):
        return "retry", {"error": _text(error.exc or error), **_when(error)}
    if isinstance(error, Ignore):
        ignored = ("success", {"message": "it raised Ignore"})
        return ignored if operation.replaced is None else ("replaced", operation.replaced)
    if isinstance(error, Reject):
        # A user's subclass may have neither.
        reason, requeue = getattr(error, "reason", None), getattr(error, "requeue", False)
        is_put_back = requeue and task.acks_late
        return "put back" if is_put_back else "failed", {"error": f"rejected: {reason}"}
    if isinstance(error, SoftTimeLimitExceeded) and operation.interrupted_for == TIME_LIMIT:
        return "time limit", {}
    if not (isinstance(error, SystemExit) and _is_of_a_worker_that_stops(error)):
        return "failed", {"error": _text(error), "traceback": traceback_of(error)}
    late = "failed", {"error": TIME_LIMIT_TEXT}
    return late if is_too_late(operation.killed_at) else ("cut off", {"error": _text(error)})


def _is_of_a_worker_that_stops(error: SystemExit) -> bool:
    """Whether Celery ends this process, by its own exception or a signal to its pool."""
    is_by_signal = isinstance(error.code, int) and error.code < 0
    return type(error) is not SystemExit or is_by_signal


def _text(error: BaseException | str) -> str:
    return error if isinstance(error, str) else text_of(error)


def _when(retry: Retry) -> dict[str, str | float]:
    """Return when Celery retries a task: an instant, or seconds from now."""
    if isinstance(retry.when, datetime):
        return {"at": retry.when.isoformat()}
    return {"delay_s": float(retry.when or 0)}


def _claim(task: Any, message: dict[str, Any], follower: Follower) -> FollowedOperation:
    """Take the task's operation; raises Ignore or Reject if the task must not run now.

    It waits for a retry's attempt that is not recorded yet, for a moment.
    """
    request, reporter = task.request, follower.reporter
    path = f"/api/operations/{request.id}"
    said = {
        "attempt": message["attempt"],
        # Random: a take that comes twice is one take.
        "delivery": token_urlsafe(12),
        "worker": f"{request.hostname}:{os.getpid()}",
        # Celery repeats a task whose process was killed only if both are set.
        "repeatable": bool(task.acks_late and task.reject_on_worker_lost),
    }
    killed_at, give_up_at = _killed_at(task, follower), monotonic() + EARLY_S
    while True:
        try:
            taken = reporter.server.ask(f"{path}:take", said, TAKE_S)
            return FollowedOperation(taken, SoftTimeLimitExceeded, reporter, killed_at)
        except ServerAway as away:
            if away.is_in_doubt:
                # It may be taken all the same: then it is given back.
                end = {"lease": _lease_of(request.id, said), "outcome": "given back"}
                reporter.report((f"{path}:take", said), (f"{path}:end", end))
            _put_back(task, message, follower, str(away))
        except NotDone as refused:
            if refused.kind != NOT_READY:
                _ignore(request.id, refused)
            if monotonic() >= give_up_at:
                _put_back(task, message, follower, str(refused))
        threading.Event().wait(AGAIN_S)


def _ignore(id: str, refused: NotDone) -> None:
    """Raise Ignore for an operation that does not start here."""
    text = f"run {id} does not start here: {refused}"
    logger.log(logging.INFO if refused.kind == "not-taken" else logging.ERROR, text)
    raise Ignore(text) from None


def _lease_of(id: str, said: dict[str, Any]) -> str:
    """Return the lease that a take gives."""
    return f"{id.replace('-', '')}-{said['attempt']}-{said['delivery']}"


def _killed_at(task: Any, follower: Follower) -> float:
    """Return when Celery's time limit kills this process, by the machine's monotonic clock."""
    of_message = (getattr(task.request, "timelimit", None) or (None,))[0]
    limit_s = of_message or task.time_limit or follower.time_limit_s
    return inf if limit_s is None else monotonic() + float(limit_s)


def _put_back(task: Any, message: dict[str, Any], follower: Follower, cause: str) -> None:
    """Send the same message again with a delay, since no task may run unclaimed.

    A rejected message would come again at once.
    """
    request, times = task.request, int(message.get("put_back", 0))
    countdown = min(LONGEST_PUT_BACK_S, 2**times)
    reason = f"run {request.id} cannot be taken now: {cause}"
    now = monotonic()
    if follower.said_at is None or now - follower.said_at >= SAID_EACH_S:
        follower.said_at = now
        logger.error("%s; its message goes back to its queue for %d s", reason, countdown)
    request.headers = {**headers_of(request), HEADER: {**message, "put_back": times + 1}}
    again = task.signature_from_request(
        request, request.args, request.kwargs, retries=request.retries, countdown=countdown
    )
    try:
        # Celery's own: a class that overrides it, as celery-once's does, would refuse the message.
        CeleryTask.apply_async(task, again.args, again.kwargs, **again.options)
    except Exception as error:
        logger.exception("operation %s: its message cannot be sent again", request.id)
        if task.acks_late:
            raise Reject(reason, requeue=True) from error
        raise
    raise Ignore(reason)
