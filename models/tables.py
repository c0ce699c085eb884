"""The tables: the only truth. Constraints forbid what the code must not do.

The database refuses a value that its column's type does not hold: `models.column_types.guard`.
Documents and plans are JSON as text, parsed row by row: one without a meaning must not affect
others. Indexes are named after their reader.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module

import sqlalchemy as sa

from models.celery_task import HANDED_OVER
from models.column_types import (
    HyphenatedUuid,
    Json,
    JsonText,
    LargeNumber,
    Number,
    ShownText,
    StorableText,
    Switch,
    UTCDateTime,
    guard,
)
from models.notices import NoticeKind
from models.operation import Cause, OperationState
from models.roles import Role, TokenKind
from models.stored import StoredList, StoredPlan, StoredSteps, StoredTexts, StoredTrust
from runtime.plug_ins import named

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def _app() -> sa.Column[int]:
    return sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), nullable=False)


def _at(name: str, *, optional: bool = True) -> sa.Column[object]:
    return sa.Column(name, UTCDateTime(), nullable=optional)


def _text(name: str, *, optional: bool = False, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, StorableText, nullable=optional, server_default=default)


def _line(name: str) -> sa.Column[str]:
    """Return a column for what a step, a server or an error says: one visible line."""
    return sa.Column(name, ShownText, nullable=True)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default="0")


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, Switch, nullable=False, server_default=sa.false())


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    return sa.Index(name, *columns, unique=unique, info={"where": where})


def _one_of(column: str, values: Iterable[str]) -> sa.CheckConstraint:
    named = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({named})", name=column)


small_apps = sa.Table(
    "small_apps",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _text("name"),
    _text("zone"),
    sa.Column("document", JsonText, nullable=False),
    _at("created_at", optional=False),
    _at("deleted_at"),
    # Since when it has had an action `maintenance`: the default one is made only once.
    _at("maintained_at"),
    # How far it is trusted: the queues and tasks of a restricted one, null for a trusted one.
    sa.Column("trust", StoredTrust, nullable=True),
    sa.UniqueConstraint("name"),
)


def naming(key: str) -> str:
    """Return the condition of actions with a key, as the partial indexes have it.

    It admits others too: the word may stand anywhere in the document.
    """
    return f"""document LIKE '%"{key}"%' AND deleted_at IS NULL"""


WANTS_MAIL = naming("mail")
IS_JOB = "job_id IS NOT NULL AND deleted_at IS NULL"
SENDS_TASK = f"plan LIKE '%{HANDED_OVER}%'"
_SENDS_TASK = f"{SENDS_TASK} AND deleted_at IS NULL"

actions = sa.Table(
    "actions",
    metadata,
    sa.Column("uid", HyphenatedUuid, primary_key=True),
    _app(),
    _text("name"),
    _text("owner", optional=True),
    sa.Column("active", Switch, nullable=False),
    sa.Column("document", JsonText, nullable=False),
    _text("document_hash"),
    sa.Column("plan", StoredPlan, nullable=False),
    # The event that an event action is about; null for those that the clock makes due.
    _text("event", optional=True),
    # The longest look-back of its triggers.
    _count("look_back_s"),
    # The id of the job that it does the work of; null for another action.
    _text("job_id", optional=True),
    sa.Column("revision", sa.Integer, nullable=False),
    _line("quarantined"),
    _at("created_at", optional=False),
    _at("updated_at", optional=False),
    _at("deleted_at"),
    _partial("actions_named", "small_app_id", "name", where="deleted_at IS NULL", unique=True),
    sa.Index("actions_by_name", "name", "uid"),
    _partial("actions_counted", "small_app_id", "active", where="deleted_at IS NULL"),
    _partial("actions_wanting_mail", "active", where=WANTS_MAIL),
    sa.Index("actions_owned", "owner"),
    _partial("actions_on_events", "small_app_id", "event", where="event IS NOT NULL"),
    sa.Index("actions_look_back", "look_back_s"),
    _partial("actions_quarantined", "updated_at", where="quarantined IS NOT NULL"),
    _partial("actions_jobs", "small_app_id", "job_id", "name", where=IS_JOB),
    _partial("actions_sending_tasks", "small_app_id", "name", where=_SENDS_TASK),
)

revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), primary_key=True, type_=HyphenatedUuid),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("document", JsonText, nullable=False),
    sa.Column("plan", StoredPlan, nullable=False),
    _text("author"),
    _at("effective_from", optional=False),
    # Up to when it decided, and why not further: the next revision, quarantined, deleted.
    _at("ended_at"),
    _text("end_reason", optional=True),
)

action_cursor = sa.Table(
    "action_cursor",
    metadata,
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), primary_key=True, type_=HyphenatedUuid),
    _at("watermark", optional=False),
    _at("next_occurrence_at"),
    _at("effective_from", optional=False),
    # The last end of its operations, kept for an interval that counts from it.
    _at("ended_at"),
    sa.Index("action_cursor_due", "next_occurrence_at"),
    sa.Index("action_cursor_ahead", "watermark"),
)

action_state = sa.Table(
    "action_state",
    metadata,
    # No foreign key, docs/dev/adr/0030: a lock on the row of an action must not delay ticks.
    sa.Column("action_uid", HyphenatedUuid, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True, server_default=""),
    _text("last_state", optional=True),
    _at("last_run_at"),
    _at("last_success_at"),
    _count("run_number"),
    _count("failures_in_row"),
    _count("bad_runs_in_a_row"),
    sa.Column("checkpoint", Json(dict)),
    _one_of("last_state", OperationState),
)

# The condition of the index operations_to_send.
SENDABLE = "state IN ('pending', 'queued') AND waiting_for IS NULL"
# The condition of the index operations_overdue.
NEVER_STARTED = f"{SENDABLE} AND first_started_at IS NULL"
_UNSTARTED = "state IN ('pending', 'queued')"
# The condition of the index operations_jobs: no worker has taken it.
JOB_TO_TAKE = f"{SENDABLE} AND task = 'job'"
_RUNNING = "state = 'running'"
# With the second half only what names a heartbeat reads it.
_BEATING = f"{_RUNNING} AND heartbeat_at IS NOT NULL"
# With the second half only what names an instant reads it.
_TROUBLED = "state IN ('failed', 'missed', 'partial') AND finished_at IS NOT NULL"

LONG_AGO = "1970-01-01 00:00:00.000000"

operations = sa.Table(
    "operations",
    metadata,
    sa.Column("id", HyphenatedUuid, primary_key=True),
    # No foreign keys, docs/dev/adr/0026: PostgreSQL would lock, and write, the row of the action.
    sa.Column("small_app_id", sa.Integer, nullable=False),
    sa.Column("action_uid", HyphenatedUuid, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    _at("occurrence_at", optional=False),
    _text("subject", optional=True),
    _text("event_id", optional=True),
    # The event's instant; null if the clock or a person is the cause.
    _at("event_at"),
    _text("state"),
    _line("reason"),
    # The cause, by which policies decide; `triggerer` is the same as a text for people.
    sa.Column("cause", sa.Text, nullable=False, server_default=Cause.SCHEDULE),
    _text("triggerer"),
    # The last backfill that recorded it, or made it run again.
    sa.Column("backfill_id", HyphenatedUuid),
    _text("queue"),
    _text("task"),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="1"),
    _count("failures"),
    _count("losses"),
    _count("sendings"),
    # Of a `celery_task`, the start of sending it; if it then stays pending, the broker may have it.
    _at("send_started_at"),
    sa.Column("overlap_key", HyphenatedUuid),
    sa.Column("waiting_for", HyphenatedUuid),
    # Whether a manual run mails what a step leaves to the user; null if the user did not say.
    sa.Column("notify", Switch),
    _at("recorded_at", optional=False),
    _at("not_before", optional=False),
    _at("sent_at"),
    _at("first_started_at"),
    _at("started_at"),
    _at("heartbeat_at"),
    _at("finished_at"),
    _at("cancel_requested_at"),
    # Before texts: behind them, PostgreSQL would fill up to seven bytes.
    sa.Column("progress", Number("0", "1")),
    _text("worker", optional=True),
    # What its worker brought with its claim; no list, page or answer shows it.
    _text("secret", optional=True),
    sa.Column("steps", StoredSteps()),
    _line("phase"),
    _line("message"),
    sa.Column("processed", LargeNumber),
    sa.Column("total", LargeNumber),
    # Whether what it does now should not be looked at meanwhile; null is no.
    sa.Column("is_blocking", Switch),
    # As its step announced them: estimates compare runs that rewrite the same.
    _text("run_type", optional=True),
    _text("rewrites", optional=True),
    _at("eta_at"),
    sa.Column("result", Json(dict)),
    _line("error"),
    _one_of("state", OperationState),
    _one_of("cause", Cause),
    sa.CheckConstraint("attempt >= 1", name="attempt"),
    sa.CheckConstraint(
        "state <> 'running' OR (worker IS NOT NULL AND heartbeat_at IS NOT NULL)", name="owner"
    ),
    _partial("operations_to_send", "not_before", where=SENDABLE),
    _partial("operations_jobs", "small_app_id", "queue", "recorded_at", where=JOB_TO_TAKE),
    _partial("operations_overdue", "recorded_at", where=NEVER_STARTED),
    _partial("operations_waiting", "waiting_for", where="waiting_for IS NOT NULL"),
    _partial("operations_heartbeat_stale", "heartbeat_at", where=_BEATING),
    _partial("operations_one_running", "overlap_key", where=_RUNNING, unique=True),
    _partial("operations_unstarted", "action_uid", "occurrence_at", where=_UNSTARTED),
    sa.Index("operations_of_action", "action_uid", "occurrence_at"),
    sa.Index("operations_recent", "recorded_at"),
    sa.Index("operations_of_app", "small_app_id", "recorded_at"),
    _partial("operations_finished", "finished_at", where="finished_at IS NOT NULL"),
    _partial("operations_troubled", "finished_at", where=_TROUBLED),
)

operation_logs = sa.Table(
    "operation_logs",
    metadata,
    sa.Column(
        "operation_id", sa.ForeignKey("operations.id"), primary_key=True, type_=HyphenatedUuid
    ),
    sa.Column("lines", StoredList("at", "level", "message"), nullable=False),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column(
        "operation_id", sa.ForeignKey("operations.id"), primary_key=True, type_=HyphenatedUuid
    ),
    sa.Column("attempt", sa.Integer, primary_key=True),
    _text("worker"),
    _at("started_at", optional=False),
    _at("finished_at"),
    _text("state"),
    _line("error"),
    # Of the worker that ended it itself: its report may come again.
    _text("secret", optional=True),
)

missed_spans = sa.Table(
    "missed_spans",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("action_uid", HyphenatedUuid, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    _at("first_at", optional=False),
    _at("last_at", optional=False),
    sa.Column("count", LargeNumber, nullable=False),
    _text("reason"),
    _at("recorded_at", optional=False),
    # The tick's `now`, which separates those that were too late from those that were overtaken.
    _at("decided_at"),
    sa.CheckConstraint("count >= 1", name="count"),
    # The instants that rules know.
    sa.CheckConstraint(
        f"first_at > '{LONG_AGO}+00' AND first_at <= last_at "
        "AND last_at < '2200-01-01 00:00:00+00'",
        name="span",
    ),
    sa.Index("missed_spans_of_action", "action_uid", "last_at"),
    sa.Index("missed_spans_recorded", "recorded_at"),
)

backfills = sa.Table(
    "backfills",
    metadata,
    sa.Column("id", HyphenatedUuid, primary_key=True),
    _app(),
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), nullable=False, type_=HyphenatedUuid),
    # The range (since, until], and which of its operations are wanted.
    _at("since", optional=False),
    _at("until", optional=False),
    _text("mode"),
    _text("state"),
    _text("actor"),
    _at("not_before", optional=False),
    _count("recorded"),
    _count("repeated"),
    _count("passed_over"),
    _at("requested_at", optional=False),
    _at("finished_at"),
    _line("error"),
    _one_of("state", ["active", "done", "cancelled", "failed"]),
    _one_of("mode", ["missing", "failed", "all"]),
    sa.CheckConstraint("since < until", name="range"),
    _partial("backfills_to_send", "not_before", where="state = 'active'"),
    sa.Index("backfills_of_action", "action_uid", "requested_at"),
)

notices = sa.Table(
    "notices",
    metadata,
    sa.Column("id", HyphenatedUuid, primary_key=True),
    # Null for a notice to the admins about the installation.
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    sa.Column("action_uid", HyphenatedUuid),
    # The operation with this end; no foreign key, for a notice outlives its operation.
    sa.Column("operation_id", HyphenatedUuid),
    sa.Column("finding_id", HyphenatedUuid),
    _text("kind"),
    sa.Column("target", Json(dict, required=True), nullable=False),
    sa.Column("payload", Json(dict, required=True), nullable=False),
    _text("state"),
    _count("tries"),
    _at("not_before", optional=False),
    _at("created_at", optional=False),
    _at("finished_at"),
    _line("error"),
    _one_of("kind", NoticeKind),
    _one_of("state", ["owed", "done", "failed"]),
    _partial("notices_owed", "not_before", where="state = 'owed'"),
    sa.Index("notices_of_operation", "operation_id"),
    _partial("notices_of_finding", "finding_id", where="finding_id IS NOT NULL"),
    sa.Index("notices_finished", "finished_at"),
)

findings = sa.Table(
    "findings",
    metadata,
    # That of its kind and of what it is about: what begins again is the same row.
    sa.Column("id", HyphenatedUuid, primary_key=True),
    # Null for a finding about the installation, and for what many actions missed.
    sa.Column("action_uid", HyphenatedUuid),
    _text("kind"),
    _text("about"),
    _text("text"),
    _text("remedy"),
    _at("began_at", optional=False),
    _at("ended_at"),
    # When the admins were told of one about the installation.
    _at("told_at"),
    _partial("findings_open", "action_uid", where="ended_at IS NULL"),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    # A request may ask for a text that no store takes.
    sa.Column("id", StorableText, primary_key=True),
    _text("email", optional=True),
    _text("name", optional=True),
    sa.Column("active", Switch, nullable=False),
    _at("created_at", optional=False),
    _at("activated_at"),
    _at("last_seen_at"),
    # An instant written by an import raises no event unless requested.
    _flag("created_silent"),
    _flag("activated_silent"),
    _flag("last_seen_silent"),
    sa.Index("users_created", "small_app_id", "created_at"),
    sa.Index("users_activated", "small_app_id", "activated_at"),
    sa.Index("users_last_seen", "small_app_id", "last_seen_at"),
)

groups = sa.Table(
    "groups",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", StorableText, primary_key=True),
)

group_members = sa.Table(
    "group_members",
    metadata,
    sa.Column("small_app_id", sa.Integer, primary_key=True),
    sa.Column("group_name", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.ForeignKeyConstraint(["small_app_id", "group_name"], ["groups.small_app_id", "groups.name"]),
    sa.ForeignKeyConstraint(["small_app_id", "user_id"], ["users.small_app_id", "users.id"]),
    sa.Index("group_members_of_user", "small_app_id", "user_id"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("event", StorableText, primary_key=True),
    sa.Column("id", StorableText, primary_key=True),
    _text("subject"),
    _at("occurred_at", optional=False),
    sa.Index("events_due", "small_app_id", "event", "occurred_at"),
)

# Operations' ends that make other actions due: models/store/operations/ends.py.
action_ends = sa.Table(
    "action_ends",
    metadata,
    sa.Column("action_uid", HyphenatedUuid, primary_key=True),
    # No foreign key: an end may outlive its operation.
    sa.Column("operation_id", HyphenatedUuid, primary_key=True),
    sa.Column("state", sa.Text, primary_key=True),
    _app(),
    _text("subject", optional=True),
    _at("ended_at", optional=False),
    sa.Index("action_ends_due", "action_uid", "ended_at"),
    sa.Index("action_ends_old", "small_app_id", "ended_at"),
    _one_of("state", OperationState),
)

ticks = sa.Table(
    "ticks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _text("daemon"),
    _at("now", optional=False),
    _at("finished_at", optional=False),
    sa.Column("duration_ms", Number, nullable=False),
    sa.Column("report", Json(dict, required=True), nullable=False),
    sa.Index("ticks_recent", "finished_at"),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("name", StorableText, primary_key=True),
    _text("queues"),
    sa.Column("pid", sa.Integer, nullable=False),
    _at("started_at", optional=False),
    _at("seen_at", optional=False),
    _at("stopped_at"),
    # How many operations it runs at once; null for a worker of an application.
    sa.Column("slots", sa.Integer),
    # Its machine's clock minus the database's.
    sa.Column("skew_s", Number),
    # The tasks of a user's own Celery application that this worker follows: a list of names.
    sa.Column("follows", StoredTexts()),
    # The parameters of these tasks, each a list of texts such as `limit=5`; null if unknown.
    sa.Column("signatures", Json(dict)),
    # The modules of steps that it could not load, each with the reason.
    sa.Column("step_failures", Json(dict)),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    _at("at", optional=False),
    _text("actor"),
    _text("verb"),
    _text("object"),
    sa.Column("details", Json(dict)),
    sa.Index("audit_recent", "at"),
)

# What is recorded and not sent: models/store/pauses.py. Ended ones stay for a while.
pauses = sa.Table(
    "pauses",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _text("kind"),
    # The name of a small app, or of a queue where those of all worker kinds are listed.
    _text("name"),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    _text("by"),
    _line("reason"),
    _at("began_at", optional=False),
    _at("until"),
    _at("ended_at"),
    _text("ended_by", optional=True),
    _one_of("kind", ["all", "app", "queue"]),
    _partial("pauses_open", "kind", "name", where="ended_at IS NULL", unique=True),
)

# Tokens of the HTTP API. A token of no small app is one of the installation.
tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", StorableText, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    _text("role"),
    _one_of("role", Role),
    # SHA-256 of the whole token: 256 random bits need no slow hash.
    _text("hash"),
    _at("created_at", optional=False),
    _text("created_by"),
    _at("expires_at"),
    _at("last_used_at"),
    _at("revoked_at"),
    _text("kind", default=TokenKind.TOKEN),
    _one_of("kind", TokenKind),
    # The token that a link signs in by; without one, the link itself is it once it was used.
    sa.Column("parent", sa.ForeignKey("tokens.id")),
    # The person or program that it was made for.
    _line("name"),
    # The tasks of the Celery application that its bearer follows: a list of patterns.
    sa.Column("tasks", StoredTexts()),
)

# Facts of the installation: tz release, kernel version, the last tick's `now`.
installation = sa.Table(
    "installation",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    _text("value"),
)


@cache
def schema() -> sa.MetaData:
    """Return all tables with what migrations give them, and no statement needs."""
    for module in named("tables"):
        import_module(module)
    guard(metadata)
    return metadata
