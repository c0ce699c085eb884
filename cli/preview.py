"""What an action means and would do, in words: occurrences, steps, recipients, warnings."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cli.invocation import Invocation
from cli.output import in_zone, instant, print_json, print_line
from cron import ClockChange, CronSchedule, clock_changes, in_words
from minutehand.steps import SmallApp
from models.action import ScheduledActionModel, load_action
from models.action.health import Health, health_of
from models.action.plan import (
    Broken,
    CronTrigger,
    DueDateTrigger,
    EventTrigger,
    IntervalTrigger,
    Plan,
    Trigger,
    hooks_of,
    sound,
)
from models.action.warnings import KnownNames, warnings_of
from models.sql import read_clock
from models.store.people import users
from models.stored import document_in
from runtime.database import reading
from scheduler.events import trigger_delay
from scheduler.events.preview import next_due
from scheduler.occurrence import next_occurrences
from small_apps.store import app_documents, small_apps

# Daylight saving is told so far ahead.
YEAR = timedelta(days=366)


def document(row: Mapping[str, Any]) -> Any:
    """Return an action's stored document; its text when somebody broke it."""
    read = document_in(row["document"])
    return row["document"] if read is None else read


def model(row: Mapping[str, Any]) -> ScheduledActionModel:
    """Return an action's stored document as a model; raises InvalidAction."""
    return load_action(document(row))


def summary(row: Mapping[str, Any], now: datetime, alert_after: int) -> dict[str, Any]:
    """Return how an action stands; before a tick has filed it, its next occurrence after `now`.

    A paused one has none: `next_if_resumed_at` is when it would run.

    `alert_after` counts for an action that does not say itself how many failures raise an alert.
    """
    keys = (
        "uid", "name", "owner", "active", "revision", "set_aside", "created_at", "updated_at",
        "last_state", "last_run_at", "last_success_at",
    )  # fmt: skip
    standing = "set aside" if row["set_aside"] else "active" if row["active"] else "paused"
    health = health_in(row, alert_after)
    following, if_resumed = row["next_occurrence_at"], None
    if standing == "paused" or (following is not None and following <= now):
        following = next((one["utc"] for one in upcoming(row, now, "UTC", 1)["next"]), None)
    if standing == "paused":
        following, if_resumed = None, following
    return {
        **{key: row[key] for key in keys},
        **{key: row[key] or 0 for key in ("run_number", "failures_in_row", "troubles_in_row")},
        "is_healthy": health.is_healthy,
        "health": health.sentence,
        "standing": standing,
        "next_occurrence_at": following,
        "next_if_resumed_at": if_resumed,
    }


def health_in(row: Mapping[str, Any], alert_after: int) -> Health:
    """Return whether a listed action is well."""
    hooks = hooks_of(row["plan"])
    return health_of(row, (hooks and hooks.alert_after) or alert_after)


def upcoming(row: Mapping[str, Any], now: datetime, zone: str, count: int = 5) -> dict[str, Any]:
    """Return an action's rule in words and its next occurrences; nothing for a broken plan."""
    plan = row["plan"]
    if isinstance(plan, Broken):
        return {"when": [], "zone": zone, "next": []}
    return upcoming_of(plan, row["uid"], now, zone, count)


def upcoming_of(plan: Plan, uid: UUID, now: datetime, zone: str, count: int = 5) -> dict[str, Any]:
    """Return a plan's triggers in words and its next occurrences after `now`."""
    zone = zone_of(plan, zone)
    return {
        "when": [words_of(trigger, zone) for trigger in plan.triggers],
        "zone": zone,
        "is_paused": not plan.active,
        "next": [
            {"utc": at, "local": in_zone(at, zone)}
            for at in next_occurrences(plan, uid, now, count)
        ],
        "daylight_saving": daylight_notes(plan, now, now + YEAR),
    }


def zone_of(plan: Plan | Broken, zone: str) -> str:
    """Return the zone in which an action's instants are shown: its first rule's, or `zone`."""
    if isinstance(plan, Broken):
        return zone
    zones = [
        trigger.zone
        for trigger in plan.triggers
        if isinstance(trigger, CronTrigger | EventTrigger) and trigger.zone
    ]
    return zones[0] if zones else zone


def daylight_notes(plan: Plan, since: datetime, until: datetime) -> list[str]:
    """Return what a plan's rules do on the days in (since, until] on which a clock is set."""
    found = []
    for trigger in plan.triggers:
        if isinstance(trigger, CronTrigger):
            schedule = CronSchedule(trigger.rule, trigger.zone)
            found += [_moved(one) for one in clock_changes(schedule, since, until)]
    return found


def _moved(change: ClockChange) -> str:
    if change.is_gap:
        runs = [in_zone(at, change.zone) for at in change.runs_at]
        told = f"runs at {runs[0]}" if runs else "does not run"
        return f"{change.named} does not exist in {change.zone}: {told}"
    both = any(at >= change.at for at in change.runs_at)
    told = "runs both times" if both else "runs the first time"
    return f"{change.named} comes twice in {change.zone}: {told}"


def subjects_due(
    connection: sa.Connection, row: Mapping[str, Any], now: datetime, zone: str, count: int = 5
) -> dict[str, Any]:
    """Return who is due next by an action on events; nothing to add for any other."""
    plan = row["plan"]
    if isinstance(plan, Broken):
        return {}
    return subjects_due_of(connection, row["small_app_id"], plan, now, zone, count)


def subjects_due_of(
    connection: sa.Connection,
    small_app_id: int,
    plan: Plan,
    now: datetime,
    zone: str,
    count: int = 5,
) -> dict[str, Any]:
    """Return who is due next by a plan on events; nothing to add for any other."""
    if plan.on_event is None:
        return {}
    due = next_due(connection, small_app_id, plan, now, count)
    return {
        "next": [{"utc": at, "local": in_zone(at, zone), "subject": user} for at, user in due],
        "is_about_users": True,
    }


def words_of(trigger: Trigger, zone: str) -> str:
    """Return a trigger in words."""
    match trigger:
        case CronTrigger():
            return f"{in_words(trigger.rule)} ({trigger.rule}), {trigger.zone}"
        case DueDateTrigger():
            return f"once, on {in_zone(trigger.due_at, zone)}, {zone}"
        case IntervalTrigger():
            start = instant(trigger.starting_at)
            return f"every {span_in_words(trigger.every)} on a grid from {start}"
        case EventTrigger():
            return event_in_words(trigger)


def event_in_words(trigger: EventTrigger) -> str:
    """Return an event and its delay in words: `7 days 30 seconds after instance.user.last_seen`."""
    delay = trigger_delay(trigger)
    if not delay.months and not delay.exact:
        return f"on {trigger.event}"
    counts = {"year": delay.months // 12, "month": delay.months % 12}
    parts = [f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in counts.items() if n]
    parts += [span_in_words(delay.exact)] if delay.exact else []
    zone = f", {trigger.zone}" if delay.months else ""
    return f"{' '.join(parts)} after {trigger.event}{zone}"


def span_in_words(span: timedelta) -> str:
    """Return a span in words: `1 hour 30 minutes`."""
    hours, seconds = divmod(span.seconds, 3600)
    counts = {"day": span.days, "hour": hours, "minute": seconds // 60, "second": seconds % 60}
    words = [f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in counts.items() if n]
    return " ".join(words)


def backfill(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a backfill as JSON: `from` and `to` are both part of its range."""
    shown = ("id", "mode", "pace", "state", "actor", "recorded", "repeated", "passed_over")
    instants = ("requested_at", "finished_at", "error")
    ends = {"from": row["since"] + timedelta(seconds=1), "to": row["until"]}
    return {**{key: row[key] for key in shown}, **ends, **{key: row[key] for key in instants}}


def backfill_in_words(shown: Mapping[str, Any]) -> str:
    """Return how a backfill stands: `done: 10 recorded, 0 repeated, 2 passed over, from … to …`."""
    counts = ", ".join(
        f"{shown[key]} {key.replace('_', ' ')}" for key in ("recorded", "repeated", "passed_over")
    )
    ends = f"from {instant(shown['from'])} to {instant(shown['to'])}"
    error = f" ({shown['error']})" if shown["error"] else ""
    return f"{shown['state']}: {counts}, {ends}{error}"


def print_description(shown: Mapping[str, Any]) -> None:
    """Print the rule in words, the next occurrences, and the warnings."""
    for words in shown["when"]:
        print_line(f"  {words}")
    print_upcoming(shown)
    for note in shown.get("daylight_saving", ()):
        print_line(f"  {note}")
    for warning in shown.get("warnings", ()):
        print_line(f"  warning: {warning}")


def print_upcoming(shown: Mapping[str, Any]) -> None:
    """Print occurrences in the action's zone and in UTC."""
    if not shown["next"]:
        is_about_users = shown.get("is_about_users", False)
        print_line("  nobody is due yet" if is_about_users else "  no occurrence to come")
    elif shown.get("is_paused", False):
        print_line("  paused; if it is resumed now, it runs at")
    for one in shown["next"]:
        subject = f"   {one['subject']}" if "subject" in one else ""
        print_line(f"  {one['local']} {shown['zone']}   {instant(one['utc'])}{subject}")


def warnings(connection: sa.Connection, app: SmallApp, action: ScheduledActionModel) -> list[str]:
    """Return what an action names that its small app does not have."""
    documents = app_documents.names_of(connection, app.id)
    known = KnownNames(
        users=users.user_ids(connection, app.id),
        groups=users.group_names(connection, app.id),
        domains=small_apps.domain_names(connection, app.id),
        templates=small_apps.templates_of(connection, app.id),
        design=documents["design"],
        permissions=documents["permissions"],
        kept_recipients=len(users.recipients_of(connection, app.id, action.recipients))
        if action.recipients and not (action.when.is_event and action.recipients.names_nobody)
        else None,
    )
    return warnings_of(action, known)


def print_dry_run(invocation: Invocation, row: Mapping[str, Any], user: str | None = None) -> None:
    """Print what running an action now would do, and whom it would reach; nothing is recorded.

    `user` is whom an action on events is to be about.
    """
    action = model(row)
    with reading(invocation.engine) as connection:
        now = read_clock(connection)
        app = invocation.small_app
        if action.when.is_event:
            subject = users.find(connection, app.id, user) if user else None
            reached = [users.as_recipient(subject)] if subject else []
        else:
            rule = action.recipients
            reached = users.recipients_of(connection, app.id, rule) if rule else []
        warned = warnings(connection, app, action)
    steps = [{"name": step.name, "parameters": step.parameters} for step in action.operations.steps]
    shown = {
        "name": row["name"],
        "now": now,
        "active": row["active"],
        "queue": sound(row["plan"]).queue,
        "steps": steps,
        "recipients": [{"id": one.id, "address": one.address} for one in reached],
        "warnings": warned,
    }
    if invocation.as_json:
        print_json(shown)
        return
    print_line(f"{row['name']} would run on queue {shown['queue']}; nothing was recorded")
    for step in steps:
        print_line(f"  step {step['name']} {json.dumps(step['parameters'], ensure_ascii=False)}")
    for one in reached:
        print_line(f"  reaches {one.id} <{one.address or 'no address'}>")
    if action.when.is_event and not reached:
        print_line("  reaches the user whom --user names")
    elif action.recipients is not None and not reached:
        print_line("  reaches nobody")
    for warning in warned:
        print_line(f"  warning: {warning}")
