"""Plain factories of what tests need: valid and dull by default."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from threading import Event
from time import monotonic
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutebook.steps import SmallApp, Steps
from models.action.document import ParseContext
from models.action.plan import Plan
from models.action.rule import RuleModel
from models.action.when import WhenModel
from models.fingerprint import operation_id
from models.operation import Cause, CausedBy
from models.parsing import Reading
from models.sql import read_clock
from models.store import actions, operations
from models.store.actions import cursors
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.record import record_new
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim
from models.store.scope import WHOLE_INSTALLATION
from models.store.tenants import storing
from models.tables import action_cursor, missed_spans, revisions
from models.tables import actions as actions_table
from models.tables import operations as operations_table
from models.tenant.document import parse_small_app
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from scheduler.changes.revisions import revision_of
from scheduler.changes.validation import ChangeContext
from scheduler.record import ActionRef, operation_row
from services.installation import Installation
from tasks.built_in import built_in_steps
from tests.attempts import claim
from tests.transactions import act, execute, fetched

DEFAULT_APP = SmallApp(1, "default", "UTC")
STEPS = built_in_steps()


def author(steps: Steps | None = None, app: SmallApp = DEFAULT_APP, **known: Any) -> ChangeContext:
    """Return who changes actions in tests, and what the settings let it name."""
    return ChangeContext("tests", app, STEPS if steps is None else steps, **known)


def make_app(engine: sa.Engine, name: str, **changes: Any) -> SmallApp:
    return act(engine, storing.apply, parse_small_app({"name": name, **changes}))[0]


def make_document(**changes: Any) -> dict[str, Any]:
    """Return a valid document: maintenance every minute, in UTC."""
    document = {
        "name": "every minute",
        "operations": {"maintenance": True},
        "when": {"cron_rule": "* * * * *", "timezone": "UTC"},
    }
    return {**document, **changes}


def make_rule(**keys: Any) -> RuleModel:
    """Return a rule as a plan keeps it, in UTC by default; an interval begins in 2026.

    It may leave out the calendar `closed`.
    """
    reading = Reading(created_at=datetime(2026, 1, 1, tzinfo=UTC), calendars={"closed": ()})
    return WhenModel.model_validate(keys, context=reading).resolved[0]


def make_plan(*rules: RuleModel, active: bool = True, **policy: Any) -> Plan:
    """Return a plan of these rules; `policy` are keys of its policy."""
    plan = Plan(active=active, rules=rules, is_heavy=False, queue="quick")
    return plan.with_policy(**policy)


def yearly(instant: datetime, days: int = 0) -> dict[str, str]:
    """Return a cron rule that fires once a year, in the minute of `instant` moved by `days`."""
    at = instant.astimezone(UTC) + timedelta(days=days)
    return {"cron_rule": f"{at.minute} {at.hour} {at.day} {at.month} *", "timezone": "UTC"}


def make_action(
    engine: sa.Engine,
    *,
    since: datetime | None = None,
    app: SmallApp = DEFAULT_APP,
    **changes: Any,
) -> Change:
    """Store an action; `since` is the instant it was created at, for deciding (default: now)."""
    changed = create_all(engine, [make_document(**changes)], author(app=app))[0]
    if since is not None:
        set_back(engine, changed.uid, since)
    return changed


def set_back(engine: sa.Engine, uids: UUID | Collection[UUID], since: datetime) -> None:
    """Let actions be decided from `since`, as if they were stored then and no tick had come."""
    uids = [uids] if isinstance(uids, UUID) else uids
    with engine.begin() as connection:
        instants = dict.fromkeys(("watermark", "effective_from", "next_occurrence_at"), since)
        cursors.advance(connection, [{"action_uid": uid, **instants} for uid in uids])
        its = revisions.c.action_uid.in_(uids)
        connection.execute(sa.update(revisions).where(its).values(effective_from=since))


def spoil(connection: sa.Connection, /, *which: sa.ColumnElement[bool], **values: Any) -> None:
    """Write columns of actions that edits by SQL may not: as a dump, or another release, has them.

    For the trigger it is a revision; its number is then put back.
    """
    for step, others in ((1, values), (-1, {})):
        number = actions_table.c.revision + step
        changed = sa.update(actions_table).where(*which)
        connection.execute(changed.values(**others, revision=number))


def caused_by(triggerer: str) -> CausedBy:
    """Return the cause that a triggerer's first word stands for; tests run operations manually."""
    causes = {"Scheduled": Cause.SCHEDULE, "Manual": Cause.MANUAL, "tests": Cause.MANUAL}
    word = triggerer.split(maxsplit=1)[0]
    return CausedBy(causes.get(word) or Cause(word.lower()), triggerer)


def make_operation(
    engine: sa.Engine,
    action: Change,
    occurrence: datetime,
    triggerer: str = "tests",
    app: SmallApp = DEFAULT_APP,
) -> UUID:
    """Record a pending operation of an action; return its id."""
    subject = ActionRef(action.uid, app.id, action.name, action.revision)
    id = operation_id(action.uid, occurrence)
    with engine.begin() as connection:
        row = operation_row(subject, action.plan, id, occurrence, caused_by(triggerer))
        record_new(connection, [row])
        # As if a tick had decided it: by a right clock, none lies behind the watermark.
        its = action_cursor.c
        behind = (its.action_uid == action.uid, its.watermark < occurrence)
        connection.execute(sa.update(action_cursor).where(*behind).values(watermark=occurrence))
    return id


def installation_on(engine: sa.Engine, settings: Settings, app: str = "default") -> Installation:
    """Return an installation that is open, on this engine."""
    made = Installation(settings.home, app, is_bound=app != "default")
    made.__dict__.update(settings=settings, engine=engine)
    return made


def claimed(engine: sa.Engine, id: UUID, attempt: int = 1) -> Claim | str:
    """Claim an attempt for a worker, or return why it does not start."""
    with engine.begin() as connection:
        found = claim(connection, id, attempt, "tests", alerts=NO_ALERTS)
    return found.why if isinstance(found, NotStarted) else found


def row_of(engine: sa.Engine, id: UUID) -> dict[str, Any]:
    """Return an operation as it stands."""
    with reading(engine) as connection:
        return operations.get(connection, id, WHOLE_INSTALLATION)


def seen(
    engine: sa.Engine, id: UUID, wanted: Callable[[dict[str, Any]], bool], within_s: float = 20.0
) -> dict[str, Any]:
    """Return the row of an operation once it is as wanted, asked again and again."""
    give_up_at, never = monotonic() + within_s, Event()
    while not wanted(row := row_of(engine, id)):
        if monotonic() > give_up_at:
            raise AssertionError(f"after {within_s} s: {row}")
        never.wait(0.02)
    return row


def rows_of(engine: sa.Engine, action: Change) -> list[sa.RowMapping]:
    """Return an action's operations, oldest occurrence first, then by subject and event."""
    columns = operations_table.c
    order = (columns.occurrence_at, columns.subject, columns.event_id)
    query = sa.select(operations_table).where(columns.action_uid == action.uid).order_by(*order)
    return list(fetched(engine, query).mappings())


def update_operation(engine: sa.Engine, id: UUID, **values: Any) -> None:
    """Change an operation's row by hand: tests age rows, they do not move time."""
    its = operations_table.c.id == id
    execute(engine, sa.update(operations_table).where(its).values(**values))


def cursor_of(engine: sa.Engine, action: Change) -> sa.RowMapping:
    query = sa.select(action_cursor).where(action_cursor.c.action_uid == action.uid)
    return fetched(engine, query).mappings().one()


def spans_of(engine: sa.Engine, *where: sa.ColumnElement[bool]) -> list[tuple[sa.RowMapping, int]]:
    """Return the missed spans, oldest first, each with its count."""
    query = sa.select(missed_spans).where(*where).order_by(missed_spans.c.id)
    return [(one, one["count"]) for one in fetched(engine, query).mappings()]


def make_many(engine: sa.Engine, count: int, **changes: Any) -> list[UUID]:
    """Store many actions of one document under numbered names, quickly."""
    with engine.begin() as connection:
        now = read_clock(connection)
        context = ParseContext(default_zone="UTC", now=now, steps=STEPS)
        revisions = {}
        for number in range(count):
            document = make_document(**changes, name=f"action {number}")
            uid = UUID(int=(0xACE << 64) + number)
            revisions[uid] = dict(revision_of(document, context, "tests").columns)
        actions.insert(connection, DEFAULT_APP.id, revisions, dict.fromkeys(revisions, now), now)
        return list(revisions)


def waits_for_lock(engine: sa.Engine) -> bool:
    """Return whether a transaction waits for another; on SQLite, writers always do."""
    return engine.dialect.name == "sqlite" or locks_waited_for(engine) > 0


def locks_waited_for(engine: sa.Engine) -> int:
    """Return how many locks of PostgreSQL are waited for."""
    query = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    return int(fetched(engine, query).scalar_one())
