"""End the operations whose messages Celery discards: tasks that are revoked or unknown.

Such a task never runs, so nothing else would end its operation.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, Optional

from celery import Celery, signals

from minutebook.agents import Agent
from minutebook.channel import AgentAway, Channel
from minutebook.followed import HEADER

logger = logging.getLogger("minutebook.follow")

AGAIN_S = 0.5
ANSWER_S = 15.0
# How long to wait for an agent or its database.
NOTE_S = 60.0

AgentOf = Callable[[Celery], Optional[Agent]]


def note_discarded(app: Celery, agent_of: AgentOf) -> None:
    """Let the agent beside each worker of `app` end the operations of discarded messages."""

    def revoked(sender: Any, request: Any, expired: bool = False, **_: object) -> None:
        if sender.app is app:
            said = {"what": "revoked", "reason": "revoked in Celery"}
            if expired:
                said = {"what": "expired", "reason": "expired before it started"}
            _note(agent_of(app), ours(headers_of(request), request.id), said)

    def unknown(sender: Any, message: Any, name: str, id: str, **_: object) -> None:
        if sender.app is app:
            reason = f"worker {sender.hostname} does not know the task {name}"
            said = {"what": "unknown", "reason": reason, "worker": str(sender.hostname)}
            _note(agent_of(app), ours(message.headers, id), said)

    key = f"minutebook {id(app)}"
    signals.task_revoked.connect(revoked, weak=False, dispatch_uid=f"{key} revoked")
    signals.task_unknown.connect(unknown, weak=False, dispatch_uid=f"{key} unknown")


def headers_of(request: Any) -> dict[str, Any]:
    """Return the headers of a task's request, ours included."""
    headers = dict(request.headers or {})
    # Before Celery 5.3 a custom header is only an attribute of the request.
    its_own = getattr(request, HEADER, None)
    return headers if its_own is None or HEADER in headers else {**headers, HEADER: its_own}


def ours(headers: Any, id: str) -> dict[str, Any] | None:
    """Return our header of a message; None if Minutebook did not send the message."""
    header = (headers or {}).get(HEADER)
    if not isinstance(header, dict) or not isinstance(header.get("attempt"), int):
        return None
    # A task may pass its headers on to another task, which is then not ours.
    return header if header.get("id") == id else None


def _note(agent: Agent | None, message: dict[str, Any] | None, said: dict[str, str]) -> None:
    # In a pool's child nothing is to be noted: the operation has ended already.
    if agent is None or message is None or agent.worker_pid != os.getpid():
        return
    asked = {"verb": "discarded", "id": message["id"], "attempt": message["attempt"], **said}
    # The worker's loop must not wait.
    threading.Thread(target=_ask, args=(agent.path, asked), daemon=True).start()


def _ask(path: str, asked: dict[str, Any]) -> None:
    channel, give_up_at = Channel(path), monotonic() + NOTE_S
    while not _is_noted(channel, asked):
        if monotonic() >= give_up_at:
            logger.error("operation %s: %s; not recorded", asked["id"], asked["reason"])
            break
        threading.Event().wait(AGAIN_S)
    channel.close()


def _is_noted(channel: Channel, asked: dict[str, Any]) -> bool:
    try:
        answer = channel.ask(asked, ANSWER_S)
    except AgentAway:
        return False
    if answer["state"] == "refused":
        logger.error("operation %s: %s; not recorded", asked["id"], answer.get("reason"))
    return answer["state"] in {"noted", "refused"}
