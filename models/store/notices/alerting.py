"""Enqueue the notices of an operation's end: hooks, alerts and recoveries."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.hooks import HooksModel
from models.action.plan import Broken, Plan, hooks_of
from models.notices import (
    OF_HOOKS,
    OPPOSITE,
    NoticeKind,
    Target,
    first_targets,
    hook_kind,
    quiet_until,
    targets_of,
)
from models.operation import OperationState
from models.sql import database_now
from models.store import notices
from models.store.conditions import state_of
from models.store.notices import Origin, Owed
from models.store.notices.payload import payload_of
from models.tables import action_state
from runtime.sections import AlertSettings

NO_ALERTS = AlertSettings()
STATUS = (
    action_state.c.run_number,
    action_state.c.failures_in_row,
    action_state.c.troubles_in_row,
    action_state.c.alerted_at,
    action_state.c.overdue_alerted_at,
    action_state.c.first_failed_at,
)

# An occurrence that ends after a newer one does not move these back.
LATEST = ("last_run_at", "last_success_at")


@dataclass(frozen=True, slots=True)
class End:
    """The facts about an operation's end that notices need; `plan` is the operation's."""

    operation_id: UUID
    attempt: int
    action_uid: UUID
    state: OperationState
    reason: str | None
    finished_at: datetime
    plan: Plan | Broken | None


def alert_targets(alerts: AlertSettings) -> tuple[Target, ...]:
    """Return the targets of alerts for all actions."""
    webhook = alerts.webhook.get_secret_value()
    mails = tuple(Target("mail", address) for address in alerts.mail)
    channels = tuple(Target("notify", name) for name in alerts.notify)
    return (*mails, *((Target("webhook", webhook),) if webhook else ()), *channels)


def is_of_installation(kind: NoticeKind, target: Target, alerts: AlertSettings) -> bool:
    """Return whether the installation itself sends notices of that kind to the target.

    A hook of a small app may name the same target: it goes where the app may.
    """
    return kind not in OF_HOOKS and target in alert_targets(alerts)


def enqueue(
    connection: sa.Connection, end: End, status: sa.Row[Any], alerts: AlertSettings
) -> list[Owed]:
    """Enqueue the notices of `end`; return those to send now.

    `status` is the action's after it (STATUS). Without targets, this executes nothing.
    """
    hooks = hooks_of(end.plan)
    if hooks is not None and hooks.pinged(NoticeKind.START):
        notices.withdraw_start(connection, end.operation_id)
    pending: list[tuple[NoticeKind, tuple[Target, ...]]] = []
    kinds = [hook_kind(end.state, end.reason), *_changes(end, status, hooks, alerts)]
    for kind in kinds:
        targets = () if kind is None else targets_of(kind, hooks, alert_targets(alerts))
        if kind is not None and (targets or kind in _CLOSES):
            pending.append((kind, targets))
    pending += _first(connection, end, status, hooks)
    if not pending:
        return []
    payload = payload_of(connection, end.operation_id) | {
        "run_number": status.run_number,
        "failures_in_row": status.failures_in_row,
        "troubles_in_row": status.troubles_in_row,
    }
    sent: list[Owed] = []
    for kind, targets in pending:
        sent += _enqueue_one(connection, (end, kind), targets, payload, alerts)
    return sent


def enqueue_start(
    connection: sa.Connection, origin: Origin, small_app: str, plan: Plan
) -> list[Owed]:
    """Enqueue the pings of a run that starts; return those to send now."""
    payload = {
        "kind": NoticeKind.START,
        "small_app": small_app,
        "action_uid": str(origin.action_uid),
        "operation_id": str(origin.operation_id),
    }
    targets = targets_of(NoticeKind.START, plan.hooks, ())
    return notices.enqueue(connection, origin, NoticeKind.START, targets, payload)


def _first(
    connection: sa.Connection, end: End, status: sa.Row[Any], hooks: HooksModel | None
) -> list[tuple[NoticeKind, tuple[Target, ...]]]:
    """Return the notices of hooks that hear of the first failure alone, and of the recovery."""
    is_known = status.first_failed_at is not None
    targets = first_targets(hooks)
    has_failed = hook_kind(end.state, end.reason) is NoticeKind.FAILURE
    is_well = end.state in {OperationState.SUCCESS, OperationState.HANDED_OVER}
    if not (targets and has_failed and not is_known) and not (is_known and is_well):
        return []
    changed = sa.update(action_state).where(state_of(end.action_uid))
    at = database_now() if has_failed else None
    connection.execute(changed.values(first_failed_at=at))
    if not targets:
        return []
    kinds = (NoticeKind.FAILURE, NoticeKind.RESTORED)
    kind, opposite = kinds if has_failed else reversed(kinds)
    notices.withdraw_stale_to(connection, end.action_uid, opposite, targets)
    return [(kind, targets)]


_CLOSES = {
    NoticeKind.RECOVERED: action_state.c.alerted_at,
    NoticeKind.SEEN: action_state.c.overdue_alerted_at,
}


def _changes(
    end: End, status: sa.Row[Any], hooks: HooksModel | None, alerts: AlertSettings
) -> list[NoticeKind]:
    """Return the alerts that this end opens or closes."""
    changes = []
    after = (hooks and hooks.alert_after) or alerts.after
    is_open = status.alerted_at is not None
    if is_open and end.state in {OperationState.SUCCESS, OperationState.HANDED_OVER}:
        changes.append(NoticeKind.RECOVERED)
    # More than `after` if the number was lowered, or there was no target before.
    if not is_open and hook_kind(end.state, end.reason) is NoticeKind.FAILURE:
        changes += [NoticeKind.ALERT] if status.troubles_in_row >= after else []
    if status.overdue_alerted_at is not None:
        changes.append(NoticeKind.SEEN)
    return changes


def _enqueue_one(
    connection: sa.Connection,
    what: tuple[End, NoticeKind],
    targets: tuple[Target, ...],
    payload: dict[str, Any],
    alerts: AlertSettings,
) -> list[Owed]:
    end, kind = what
    origin = Origin(
        payload["small_app_id"], end.action_uid, end.operation_id, str(end.attempt),
        operation_id=end.operation_id,
    )  # fmt: skip
    if kind not in OF_HOOKS:
        origin, targets = _as_alert(connection, (origin, kind), targets, end, alerts)
    shown = {key: value for key, value in payload.items() if key != "small_app_id"}
    return notices.enqueue(connection, origin, kind, targets, {"kind": kind, **shown})


def _as_alert(
    connection: sa.Connection,
    what: tuple[Origin, NoticeKind],
    targets: tuple[Target, ...],
    end: End,
    alerts: AlertSettings,
) -> tuple[Origin, tuple[Target, ...]]:
    """Open or close the alert; return its notice, after the quiet hours, and the targets."""
    origin, kind = what
    until = quiet_until(end.finished_at, alerts.quiet, alerts.timezone)
    state = sa.update(action_state).where(state_of(end.action_uid))
    if kind is NoticeKind.ALERT:
        connection.execute(state.values(alerted_at=database_now()))
    else:
        connection.execute(state.values({_CLOSES[kind].name: None}))
    notices.withdraw_stale(connection, end.action_uid, OPPOSITE[kind])
    if until is not None:
        withdrawn = notices.withdraw_held(connection, end.action_uid, OPPOSITE[kind])
        targets = tuple(one for one in targets if one not in withdrawn)
    return replace(origin, not_before=until), targets
