"""Enqueue the notices of a run: its end, and the findings that it begins or ends."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.health import REMEDIES, in_a_row
from models.action.hooks import HooksModel
from models.action.plan import Plan, hooks_of
from models.notices import (
    BROKERS,
    FindingKind,
    Moment,
    NoticeKind,
    Target,
    moment_of,
    quiet_until,
)
from models.operation import OperationState
from models.sql import read_clock
from models.store import notices, operations
from models.store.notices import Origin, Owed, findings
from models.store.notices.findings import Found
from models.tables import action_state
from models.values import format_instant
from runtime.sections import AlertSettings

NO_ALERTS = AlertSettings()
NO_HOOKS = HooksModel()
MOST_LINES = 10
LONGEST_LINE = 500
STATUS = (
    action_state.c.run_number,
    action_state.c.failures_in_row,
    action_state.c.bad_runs_in_a_row,
)
# An occurrence that ends after a newer one does not move these back.
LATEST = ("last_run_at", "last_success_at")
_WELL = frozenset({OperationState.SUCCESS, OperationState.HANDED_OVER})


def alert_targets(alerts: AlertSettings) -> tuple[Target, ...]:
    """Return the targets of alerts for all actions."""
    webhook = alerts.webhook.get_secret_value()
    mails = tuple(Target("mail", address) for address in alerts.mail)
    channels = tuple(Target("notify", name) for name in alerts.notify)
    return (*mails, *((Target("webhook", webhook),) if webhook else ()), *channels)


def of_findings(hooks: HooksModel | None, alerts: AlertSettings) -> tuple[Target, ...]:
    """Return the targets of what is found about an action: its own, and the installation's."""
    return tuple(dict.fromkeys((*(hooks or NO_HOOKS).of_findings, *alert_targets(alerts))))


def enqueue(
    connection: sa.Connection, end: sa.Row[Any], status: sa.Row[Any], alerts: AlertSettings
) -> list[Owed]:
    """Enqueue the notices of an end, the row of its operation; return those to send now.

    `status` is the action's after it (STATUS), with its `open_findings`. Without targets, this
    executes nothing.
    """
    hooks = hooks_of(end.plan) or NO_HOOKS
    if hooks.at(Moment.START):
        notices.withdraw_start(connection, end.id)
    targets = hooks.at(moment_of(OperationState(end.state), end.reason))
    changes = list(_changes(end, status, hooks, alerts))
    if not targets and not changes:
        return []
    told = told_of(connection, end.id) | {
        "run_number": status.run_number,
        "failures_in_row": status.failures_in_row,
        "bad_runs_in_a_row": status.bad_runs_in_a_row,
    }
    origin = Origin(told["small_app_id"], end.action_uid, end.id)
    payload = {"kind": NoticeKind.RUN_ENDED, **told}
    owed = notices.enqueue(connection, origin, end.attempt, targets, payload)
    for kind, is_over, to in changes:
        if is_over:
            rows = findings.end(connection, [findings.id_of(kind, end.action_uid)])
        else:
            rows = findings.begin(connection, _found(kind, end, told))
        for row in rows:
            owed += findings.tell(connection, row, to, told, alerts)
    return owed


def enqueue_start(
    connection: sa.Connection, origin: Origin, small_app: str, plan: Plan
) -> list[Owed]:
    """Enqueue the pings of a run that starts; return those to send now."""
    payload = {
        "kind": NoticeKind.RUN_STARTED,
        "small_app": small_app,
        "action_uid": str(origin.action_uid),
        "operation_id": str(origin.operation_id),
    }
    targets = (plan.hooks or NO_HOOKS).at(Moment.START)
    return notices.enqueue(connection, origin, "start", targets, payload)


def _changes(
    end: sa.Row[Any], status: sa.Row[Any], hooks: HooksModel, alerts: AlertSettings
) -> Iterator[tuple[FindingKind, bool, tuple[Target, ...]]]:
    """Yield the findings that this end begins, or ends: then True; and who hears of it."""
    known = (status.open_findings or "").split()
    has_failed = moment_of(OperationState(end.state), end.reason) is Moment.FAILURE
    # More failures than this if the number was lowered, or there was no target before.
    is_alarming = has_failed and status.bad_runs_in_a_row >= (hooks.alert_after or alerts.after)
    is_well, all_of_them = end.state in _WELL, of_findings(hooks, alerts)
    for kind, begins, ends, targets in (
        (FindingKind.FAILING, has_failed, is_well, hooks.of_first_failures),
        (FindingKind.FAILED, is_alarming, is_well, all_of_them),
        (FindingKind.OVERDUE, False, True, all_of_them),
    ):
        is_open = kind in known
        if (is_open and ends) or (not is_open and begins and targets):
            yield kind, is_open, targets


def _found(kind: FindingKind, end: sa.Row[Any], told: dict[str, Any]) -> Found:
    how: str = end.state
    if kind is FindingKind.FAILED:
        how = f"failed or partial {in_a_row(told['bad_runs_in_a_row'])}"
    about = str(end.action_uid)
    return Found(kind, about, f"{told['action']}: {how}", REMEDIES[kind], end.action_uid)


_INSTANTS = ("occurrence_at", "recorded_at", "first_started_at", "started_at", "finished_at")
_UNCHANGED = (
    "small_app_id",
    "state",
    "reason",
    "error",
    "triggerer",
    "subject",
    "attempt",
    "queue",
)
_OF_STEP = ("name", "state", "message", "error")


def told_of(connection: sa.Connection, operation_id: UUID) -> dict[str, Any]:
    """Return the reported facts about an operation as JSON, and its small app's id."""
    (row,) = operations.by_ids(connection, [operation_id])
    lines = operations.log_lines(connection, operation_id)[-MOST_LINES:]
    steps = row["steps"] or []
    return {
        "small_app": row["app"],
        "action": row["action_name"],
        "action_uid": str(row["action_uid"]),
        "operation_id": str(operation_id),
        **{key: row[key] for key in _UNCHANGED},
        **{key: row[key] and format_instant(row[key]) for key in _INSTANTS},
        "steps": [{key: one[key] for key in _OF_STEP if one.get(key)} for one in steps],
        "log": [str(one.get("message", ""))[:LONGEST_LINE] for one in lines],
    }


def note_brokers(
    connection: sa.Connection, errors: Mapping[FindingKind, str | None], alerts: AlertSettings
) -> None:
    """Begin the findings of brokers with an error, and end those of the others.

    Web processes and workers tell the admins that one lasts; this, that it is over.
    """
    for kind, error in errors.items():
        if error:
            findings.begin(connection, Found(kind, "", error, BROKERS[kind]))
    well = [findings.id_of(kind, "") for kind, error in errors.items() if not error]
    over = [row for row in findings.end(connection, well) if row.told_at is not None]
    until = quiet_until(read_clock(connection), alerts.quiet, alerts.timezone)
    to = alert_targets(alerts)
    owed = findings.tell_admins(connection, NoticeKind.FINDING_ENDED, over, to, until)
    notices.send_soon(connection, owed)
