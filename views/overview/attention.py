"""What needs attention: the unhealthy actions, and those that recovered since yesterday."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.operation import TROUBLED
from models.store import operations
from models.store.actions.status import health_in, with_status
from models.store.matters import DAY, Matters
from views.installation import Installation
from views.view import Instant, View

# How many of each kind are looked at; `status` counts all.
MOST = 48
# Kind, reason, remedy and instant of what did not go well, and its operation.
Trouble = tuple[str, str, str | None, datetime | None, UUID | None]


class Attention(View):
    """An action that needs a look: it is unhealthy, or was in the last 24 hours."""

    app: str = Field(description="Its small app.")
    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")
    kind: str = Field(description="`failed`, `partial`, `missed`, `overdue` or `set aside`.")
    reason: str = Field(description="What happened, in words.")
    times: int = Field(
        description="How often, in the last seven days; of what waits, among the oldest 1,000."
    )
    at: Instant | None = Field(description="When it happened last.")
    operation_id: UUID | None = Field(
        description="The operation that says so; null if there is none."
    )
    remedy: str | None = Field(description="`retry` or `edit`; null for none.")
    is_over: bool = Field(description="Whether the action is healthy now, as lists show it.")
    health: str = Field(description="One sentence on why it is healthy or not.")


def attention_in(
    connection: sa.Connection,
    installation: Installation,
    now: datetime,
    apps: Mapping[int, str],
    matters: Matters,
) -> list[Attention]:
    """Return the unhealthy actions of the request's scope, then those that recovered in a day."""
    alert = installation.settings.alert
    times = {one.operation_id: one.times for one in (*matters.overdue, *matters.troubled)}
    last: dict[UUID, dict[str, Any]] = {}
    for row in rows_of(connection, [id for id in times if id is not None]):
        last.setdefault(row["action_uid"], {**row, "times": times[row["id"]]})
    aside = [one.action_uid for one in matters.set_aside]
    uids = dict.fromkeys([*aside, *last, *(one.action_uid for one in matters.failing)])
    known = with_status(connection, list(uids), alert.overdue)
    found = (
        _attention(known[uid], last.get(uid), alert.after, apps) for uid in uids if uid in known
    )
    shown = [one for one in found if not one.is_over or (one.at and one.at >= now - DAY)]
    return sorted(shown, key=lambda one: one.is_over)


def rows_of(connection: sa.Connection, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """Return those of the operations that exist, in the order of their ids."""
    found = {row["id"]: row for row in (operations.by_ids(connection, ids) if ids else ())}
    return [found[id] for id in ids if id in found]


def _attention(
    action: Mapping[str, Any],
    last: Mapping[str, Any] | None,
    alert_after: int,
    apps: Mapping[int, str],
) -> Attention:
    """Return an action with its last operation that did not go well, if there is one."""
    health = health_in(action, alert_after)
    kind, reason, remedy, at, id = (
        _without_operation(action, health.sentence)
        if action["set_aside"] or last is None
        else _trouble(last, health.sentence)
    )
    return Attention(
        app=apps.get(action["small_app_id"], ""),
        action=action["name"],
        uid=action["uid"],
        kind=kind,
        reason=reason,
        times=1 if last is None else last["times"],
        at=at,
        operation_id=id,
        remedy=remedy,
        is_over=health.is_healthy,
        health=health.sentence,
    )


def _without_operation(action: Mapping[str, Any], sentence: str) -> Trouble:
    if action["set_aside"]:
        return "set aside", action["set_aside"], "edit", action["updated_at"], None
    return action["last_state"] or "overdue", sentence, None, action["last_run_at"], None


def _trouble(row: Mapping[str, Any], sentence: str) -> Trouble:
    state, said = row["state"], row["error"] or row["reason"]
    if state == "missed":
        why = said or "no daemon ran in time"
        return state, why, "retry", row["finished_at"], row["id"]
    if state in TROUBLED:
        return state, said or "it gave no reason", "retry", row["finished_at"], row["id"]
    return "overdue", sentence, None, row["occurrence_at"], row["id"]
