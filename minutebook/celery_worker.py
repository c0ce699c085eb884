"""Make the tasks of a Celery worker claim their operations before they run; see `follow`."""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import uuid4

from celery import Celery, signals
from celery import Task as CeleryTask
from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded

from minutebook.agent_sharing import agent_of
from minutebook.agents import Agent
from minutebook.channel import AgentAway, Channel
from minutebook.continued import noted, replacing
from minutebook.discarded import headers_of, note_discarded, ours
from minutebook.error_text import signatures_of, text_of, traceback_of, value_of
from minutebook.followed import (
    HEADER,
    FollowedOperation,
    current_operation,
)
from minutebook.lease import CANCELLED, LOST, TIME_LIMIT, Interrupted

logger = logging.getLogger("minutebook.follow")

AGAIN_S = 0.5
# The longest delay of a message that cannot be claimed.
LONGEST_PUT_BACK_S = 30
# Beyond the agent's own wait for the database.
ANSWER_MARGIN_S = 15.0
# Celery's built-in tasks are not followed.
BUILT_IN_PREFIX = "celery."

_agents: dict[int, Agent] = {}


def connect(
    app: Celery,
    agent: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None,
    wait_s: float,
) -> None:
    """Let workers of `app` follow from their start on; other processes are not affected."""

    # A proxy such as `current_app` stands for another object.
    app = getattr(app, "_get_current_object", lambda: app)()

    def begin(sender: Any, **_: object) -> None:
        if sender.app is app:
            its = agent_of(agent, home, _described(app, sender), wait_s)
            its.time_limit_s = getattr(sender, "time_limit", None)
            _begin(app, its)

    def stop(**_: object) -> None:
        its = _agents.pop(id(app), None)
        if its is not None and its.worker_pid == os.getpid():
            its.stop()

    key = f"minutebook {id(app)}"
    note_discarded(app, lambda app: _agents.get(id(app)))
    signals.worker_init.connect(begin, weak=False, dispatch_uid=f"{key} begin")
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


def _begin(app: Celery, agent: Agent) -> None:
    _agents[id(app)] = agent
    for task in _followed(app).values():
        _wrap(task, agent)
    agent.start()


def _wrap(task: Any, agent: Agent) -> None:
    original = task.run
    if hasattr(original, "__minutebook__"):
        return

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        message = _message_of(task.request)
        # A task that calls itself is part of its operation.
        if message is None or current_operation() is not None:
            return original(*args, **kwargs)
        return _run(task, functools.partial(original, *args, **kwargs), message, agent)

    run.__minutebook__ = True  # type: ignore[attr-defined]
    task.run = run
    task.retry = noted(task, task.retry)
    task.replace = replacing(task, task.replace, set(_followed(task.app)))


def _message_of(request: Any) -> dict[str, Any] | None:
    """Return what our message says of its operation; None for any other call of a task."""
    if request.called_directly or request.is_eager:
        return None
    return ours(headers_of(request), request.id)


def _run(task: Any, call: Callable[[], Any], message: dict[str, Any], agent: Agent) -> Any:
    """Run a task under its operation's lease; raises Ignore if it must not run."""
    operation = _claim(task, message, agent)
    # A message that Celery's `retry` sends belongs to the next attempt.
    next_one = {**message, "attempt": message["attempt"] + 1}
    next_one.pop("put_back", None)
    task.request.headers = {**headers_of(task.request), HEADER: next_one}
    try:
        return _run_claimed(task, operation, call)
    finally:
        operation.close()


def _run_claimed(task: Any, operation: FollowedOperation, call: Callable[[], Any]) -> Any:
    try:
        returned = operation.run(call)
    except Interrupted as interrupted:
        if operation.interrupted_for == CANCELLED:
            operation.end("cancelled")
        raise Ignore(f"operation {operation.operation_id}: {interrupted}") from None
    except BaseException as error:
        outcome, details = _outcome_of(task, operation, operation.sent_again or error)
        operation.end(outcome, **details)
        raise
    if operation.sent_again is not None:
        outcome, details = _outcome_of(task, operation, operation.sent_again)
        operation.end(outcome, **details)
        return returned
    outcomes = {CANCELLED: "cancelled", TIME_LIMIT: "time box", LOST: LOST, None: "success"}
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
        if operation.replaced is not None:
            return "replaced", operation.replaced
        return "success", {"message": "it raised Ignore"}
    if isinstance(error, Reject):
        # A user's subclass may have neither.
        reason, requeue = getattr(error, "reason", None), getattr(error, "requeue", False)
        is_put_back = requeue and task.acks_late
        return "put back" if is_put_back else "failed", {"error": f"rejected: {reason}"}
    if isinstance(error, SoftTimeLimitExceeded) and operation.interrupted_for == TIME_LIMIT:
        return "time limit", {}
    is_cut_off = isinstance(error, SystemExit) and _is_of_a_worker_that_stops(error)
    details: dict[str, Any] = {} if is_cut_off else {"traceback": traceback_of(error)}
    return "cut off" if is_cut_off else "failed", {"error": _text(error), **details}


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


def _claim(task: Any, message: dict[str, Any], agent: Agent) -> FollowedOperation:
    """Claim the task's operation, waiting for agent and database; raises Ignore or Reject.

    It also waits for a retry's attempt that is not recorded yet.
    """
    request = task.request
    asked = {
        "verb": "take",
        "id": request.id,
        "attempt": message["attempt"],
        "worker": f"{request.hostname}:{os.getpid()}",
        # Celery repeats a task whose process was killed only if both are set.
        "repeatable": bool(task.acks_late and task.reject_on_worker_lost),
        # Random: by it the next agent finds what this call claimed before its agent was killed.
        "delivery": uuid4().hex,
        "again": False,
    }
    started = {"verb": "started", "killed_at": _killed_at(task, agent)}
    give_up_at = monotonic() + agent.wait_s
    answer_s = agent.wait_s + ANSWER_MARGIN_S
    channel = agent.channels.take()
    while True:
        state, answer = _ask(channel, asked, answer_s)
        if state == "taken" and _is_told(channel, started):
            is_child = os.getpid() != agent.worker_pid
            claimed = {**answer, "delivery": asked["delivery"], "is_child": is_child}
            return FollowedOperation(channel, agent.channels, claimed, SoftTimeLimitExceeded)
        if state == "refused":
            channel.close()
            text = f"operation {request.id} is not run here: {answer['reason']}"
            is_unknown = answer["reason"].startswith("unknown")
            logger.log(logging.ERROR if is_unknown else logging.INFO, text)
            raise Ignore(text)
        if answer.get("put_back") or monotonic() >= give_up_at:
            # Free the worker for tasks that need no database of ours.
            channel.close()
            _put_back(task, message, answer.get("reason"))
        asked["again"] = True
        threading.Event().wait(AGAIN_S)


def _killed_at(task: Any, agent: Agent) -> float | None:
    """Return when Celery's time limit kills this process, by the machine's monotonic clock."""
    of_message = (getattr(task.request, "timelimit", None) or (None,))[0]
    limit_s = of_message or task.time_limit or agent.time_limit_s
    return None if limit_s is None else monotonic() + float(limit_s)


def _ask(channel: Channel, request: dict[str, Any], answer_s: float) -> tuple[str, dict[str, Any]]:
    try:
        answer = channel.ask(request, answer_s)
    except AgentAway as error:
        return "away", {"reason": f"Minutebook's agent beside this worker: {error}"}
    return str(answer["state"]), answer


def _is_told(channel: Channel, request: dict[str, Any]) -> bool:
    """Tell the agent that the task begins; it reads that before it notices that we died."""
    try:
        channel.tell(request)
    except AgentAway:
        return False
    return True


def _put_back(task: Any, message: dict[str, Any], cause: str | None) -> None:
    """Send the same message again with a delay, since no task may run unclaimed.

    A rejected message would come again at once.
    """
    request, times = task.request, int(message.get("put_back", 0))
    countdown = min(LONGEST_PUT_BACK_S, 2**times)
    reason = f"operation {request.id} cannot be claimed now: {cause}"
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
