"""Give actions new plans after the calendars that their rules leave out were changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutebook.steps import SmallApp, Steps
from models.action.plan import Broken, Plan
from models.action.when import WhenModel
from models.errors import InvalidDocument, Problem
from models.parsing import Reading
from models.sql import read_clock
from models.store.actions import cursors
from models.store.operations import outbox
from models.stored import document_in
from models.tables import actions as action_table
from models.tables import naming
from scheduler.changes.adoption import settle
from scheduler.changes.revisions import Next, begin_all, conclude
from scheduler.changes.validation import ChangeContext
from scheduler.kernel_release import hold_release
from scheduler.record import Recorded

Calendars = Mapping[str, Sequence[object]]


def replan(
    connection: sa.Connection, app: SmallApp, calendars: Calendars, author: str, steps: Steps
) -> None:
    """Make new revisions of a small app's actions whose calendars have changed.

    Each old revision is first decided up to now, as with any change; the next tick sends what is
    due. Raises InvalidDocument if an action names a calendar that is gone.
    """
    uids = _naming_calendars(connection, app.id)
    if not uids:
        return
    recorded = Recorded()
    hold_release(connection)
    rows = cursors.lock_all(connection, uids)
    now = read_clock(connection)
    problems = [problem for row in rows for problem in _gone(row, calendars)]
    if problems:
        raise InvalidDocument(problems)
    reading = Reading(app.zone, calendars=calendars, tolerant=True)
    following: list[Next] = []
    for row in rows:
        before, next_ones = _replan(
            connection, row, reading, now, ChangeContext(author, app, steps)
        )
        recorded += before
        following += next_ones
    begin_all(connection, following, now)
    outbox.release_unsent(connection, recorded.messages)


def _naming_calendars(connection: sa.Connection, small_app_id: int) -> Sequence[UUID]:
    # Written exactly as in the index actions_with_calendar.
    found = sa.select(action_table.c.uid).where(
        action_table.c.small_app_id == small_app_id, sa.text(naming("calendar"))
    )
    return connection.execute(found.order_by(action_table.c.uid)).scalars().all()


def _names(row: sa.Row[Any]) -> list[str]:
    """Return the names of the calendars in an action's document."""
    document = document_in(row.document)
    when = document.get("when")
    rules = when if isinstance(when, list) else [when]
    entries = [
        entry
        for rule in rules
        if isinstance(rule, Mapping) and isinstance(rule.get("except"), list)
        for entry in rule["except"]
    ]
    return [
        str(one["calendar"]) for one in entries if isinstance(one, Mapping) and "calendar" in one
    ]


def _gone(row: sa.Row[Any], calendars: Calendars) -> list[Problem]:
    remedy = f"the action {row.name!r} leaves it out; keep it, or change the action first"
    return [Problem("calendars", name, remedy) for name in _names(row) if name not in calendars]


def _replan(
    connection: sa.Connection,
    row: sa.Row[Any],
    reading: Reading,
    now: datetime,
    author: ChangeContext,
) -> tuple[Recorded, tuple[Next, ...]]:
    row, recorded = settle(connection, row, now, author.steps)
    if row.set_aside is not None or isinstance(row.plan, Broken) or not _names(row):
        return recorded, ()
    plan = _with(row.plan, document_in(row.document), reading)
    if plan == row.plan:
        return recorded, ()
    if not all(one.leaves_some(now) for one in plan.rules):
        remedy = f"the action {row.name!r} would never be due again; leave some of its times"
        raise InvalidDocument([Problem("calendars", None, remedy)])
    columns = {"document": row.document, "plan": plan.to_json(), "author": author.name}
    following, before = conclude(connection, row, columns, plan, now)
    return recorded + before, (following,)


def _with(plan: Plan, document: Mapping[str, Any], reading: Reading) -> Plan:
    """Return a plan whose rules leave out what its document and the calendars say now."""
    when = WhenModel.model_validate(document["when"], context=reading)
    return replace(plan, rules=when.resolved)
