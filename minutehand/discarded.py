"""Messages that Celery discards in a worker that follows: of revoked tasks, and of unknown ones.

Their tasks never run, so nothing else would end their operations.
"""

import logging
import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from celery import Celery, signals

from minutehand.agent_process import AgentProcess
from minutehand.channel import AgentAway, Channel
from minutehand.followed import HEADER

logger = logging.getLogger("minutehand.follow")

AGAIN_S = 0.5
ANSWER_S = 15.0
# How long an agent, or its database, that is away is waited for.
NOTE_S = 60.0

AgentOf = Callable[[Celery], AgentProcess | None]


def note_discarded(app: Celery, agent_of: AgentOf) -> None:
    """Let the agent beside each worker of `app` end the operations of discarded messages."""

    def revoked(sender: Any, request: Any, **_: object) -> None:
        if sender.app is app:
            told = {"what": "revoked", "reason": "revoked in Celery"}
            _note(agent_of(app), ours(request.headers, request.id), told)

    def unknown(sender: Any, message: Any, name: str, id: str, **_: object) -> None:
        if sender.app is app:
            reason = f"worker {sender.hostname} does not know the task {name}"
            told = {"what": "unknown", "reason": reason, "worker": str(sender.hostname)}
            _note(agent_of(app), ours(message.headers, id), told)

    key = f"minutehand {id(app)}"
    signals.task_revoked.connect(revoked, weak=False, dispatch_uid=f"{key} revoked")
    signals.task_unknown.connect(unknown, weak=False, dispatch_uid=f"{key} unknown")


def ours(headers: Any, id: str) -> dict[str, Any] | None:
    """Return what the headers of a message say of its operation; None if it is none of ours."""
    told = (headers or {}).get(HEADER)
    if not isinstance(told, dict) or not isinstance(told.get("attempt"), int):
        return None
    # Whatever a task sends with its own headers is a task of its own.
    return told if told.get("id") == id else None


def _note(agent: AgentProcess | None, message: dict[str, Any] | None, told: dict[str, str]) -> None:
    # The signals come in the worker's own process; what its children ran has ended before.
    if agent is None or message is None or agent.worker_pid != os.getpid():
        return
    asked = {"verb": "discarded", "id": message["id"], "attempt": message["attempt"], **told}
    # The worker's loop must not wait.
    threading.Thread(target=_ask, args=(agent.path, asked), daemon=True).start()


def _ask(path: str, asked: dict[str, Any]) -> None:
    channel, give_up_at = Channel(path), monotonic() + NOTE_S
    while not _is_noted(channel, asked):
        if monotonic() >= give_up_at:
            logger.error("operation %s: %s, and not on record", asked["id"], asked["reason"])
            break
        threading.Event().wait(AGAIN_S)
    channel.close()


def _is_noted(channel: Channel, asked: dict[str, Any]) -> bool:
    try:
        return bool(channel.ask(asked, ANSWER_S)["state"] == "noted")
    except AgentAway:
        return False
