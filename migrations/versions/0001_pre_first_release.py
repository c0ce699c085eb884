"""The kernel's schema in 0.9.0, the first release: tables, no edits by SQL, one small app.

Frozen: a later change of `models/tables.py` is a migration of its own.
"""

import sqlalchemy as sa
from alembic import op

from migrations.first_release import (
    BIG,
    DOCUMENT,
    FLAG,
    FLOAT,
    FRACTION,
    LIST,
    NAMING,
    OBJECT,
    UUID,
    app,
    at,
    count,
    flag,
    guard,
    one_of,
    partial,
    text,
)

revision = "0001_pre_first_release"
down_revision = None
branch_labels = None
depends_on = None

STATES = (
    *("pending", "queued", "running", "success", "partial", "failed"),
    *("cancelled", "skipped", "dropped", "missed", "handed_over"),
)

metadata = sa.MetaData(naming_convention=NAMING)


def upgrade() -> None:
    """Create the tables, the trigger and the small app `default`."""
    connection = op.get_bind()
    metadata.create_all(connection)
    # As it stands: the colons are no parameters.
    dialect = connection.dialect.name
    for statement in (*REFUSED[dialect], DEFAULT_APP.format(now=NOW[dialect])):
        connection.exec_driver_sql(statement)


# What decides about an action changes only with a revision, or with its creation: the clock was
# ahead. One that is quarantined is decided by
# nobody: it can be paused although its document makes no revision.
_IS_REFUSED = """
new.revision <> old.revision + 1 AND new.created_at = old.created_at AND (
  new.document <> old.document
  OR new.plan <> old.plan
  OR (new.active <> old.active AND new.quarantined IS NULL)
)
"""
_TEXT = (
    "document, plan and active of an action change only with a revision;"
    " use `minutebook action apply`, or `action pause` and `action resume`"
)
_ON_SQLITE = f"""
CREATE TRIGGER actions_edited BEFORE UPDATE OF document, plan, active ON actions
WHEN {_IS_REFUSED}
BEGIN
  SELECT RAISE(ABORT, '{_TEXT}');
END
"""
_ON_POSTGRESQL = f"""
CREATE FUNCTION actions_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '{_TEXT}' USING ERRCODE = 'integrity_constraint_violation';
END $$
"""
_ITS_TRIGGER = f"""
CREATE TRIGGER actions_edited BEFORE UPDATE OF document, plan, active ON actions FOR EACH ROW
WHEN ({_IS_REFUSED})
EXECUTE FUNCTION actions_edited()
"""
REFUSED = {"sqlite": (_ON_SQLITE,), "postgresql": (_ON_POSTGRESQL, _ITS_TRIGGER)}
NOW = {"sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now')", "postgresql": "CURRENT_TIMESTAMP"}
DEFAULT_APP = """
INSERT INTO small_apps (name, zone, document, created_at)
VALUES ('default', 'UTC', '{{"name": "default", "zone": "UTC"}}', {now})
"""


UNSTARTED = "state IN ('pending', 'queued')"
SENDABLE = f"{UNSTARTED} AND waiting_for IS NULL"
THERE = "deleted_at IS NULL"


WANTS_MAIL = f"""document LIKE '%"mail"%' AND {THERE}"""


sa.Table(
    "small_apps",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    text("name"),
    text("zone"),
    sa.Column("document", DOCUMENT, nullable=False),
    at("created_at", optional=False),
    at("deleted_at"),
    at("maintained_at"),
    sa.Column("trust", OBJECT, nullable=True),
    sa.UniqueConstraint("name"),
)

sa.Table(
    "actions",
    metadata,
    sa.Column("uid", UUID, primary_key=True),
    app(),
    text("name"),
    text("owner", optional=True),
    sa.Column("active", FLAG, nullable=False),
    sa.Column("document", DOCUMENT, nullable=False),
    text("document_hash"),
    sa.Column("plan", DOCUMENT, nullable=False),
    text("event", optional=True),
    count("look_back_s"),
    text("job_id", optional=True),
    sa.Column("revision", sa.Integer, nullable=False),
    text("quarantined", optional=True),
    at("created_at", optional=False),
    at("updated_at", optional=False),
    at("deleted_at"),
    partial("actions_named", "small_app_id", "name", where=THERE, unique=True),
    sa.Index("actions_by_name", "name", "uid"),
    partial("actions_counted", "small_app_id", "active", where=THERE),
    partial("actions_wanting_mail", "active", where=WANTS_MAIL),
    sa.Index("actions_owned", "owner"),
    partial("actions_on_events", "small_app_id", "event", where="event IS NOT NULL"),
    sa.Index("actions_look_back", "look_back_s"),
    partial("actions_quarantined", "updated_at", where="quarantined IS NOT NULL"),
    partial(
        "actions_jobs", "small_app_id", "job_id", "name", where=f"job_id IS NOT NULL AND {THERE}"
    ),
    partial(
        "actions_sending_tasks",
        "small_app_id",
        "name",
        where=f"""plan LIKE '%"hand_over":{{%' AND {THERE}""",
    ),
)

sa.Table(
    "revisions",
    metadata,
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), primary_key=True, type_=UUID),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("document", DOCUMENT, nullable=False),
    sa.Column("plan", DOCUMENT, nullable=False),
    text("author"),
    at("effective_from", optional=False),
    at("ended_at"),
    text("end_reason", optional=True),
)

sa.Table(
    "action_cursor",
    metadata,
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), primary_key=True, type_=UUID),
    at("watermark", optional=False),
    at("next_occurrence_at"),
    at("effective_from", optional=False),
    at("ended_at"),
    sa.Index("action_cursor_due", "next_occurrence_at"),
    sa.Index("action_cursor_ahead", "watermark"),
)

sa.Table(
    "action_state",
    metadata,
    sa.Column("action_uid", UUID, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True, server_default=""),
    text("last_state", optional=True),
    at("last_run_at"),
    at("last_success_at"),
    count("run_number"),
    count("failures_in_row"),
    count("bad_runs_in_a_row"),
    sa.Column("checkpoint", OBJECT),
    one_of("last_state", STATES),
)

sa.Table(
    "operations",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    sa.Column("small_app_id", sa.Integer, nullable=False),
    sa.Column("action_uid", UUID, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    at("occurrence_at", optional=False),
    text("subject", optional=True),
    text("event_id", optional=True),
    at("event_at"),
    text("state"),
    text("reason", optional=True),
    sa.Column("cause", sa.Text, nullable=False, server_default="schedule"),
    text("triggerer"),
    sa.Column("backfill_id", UUID),
    text("queue"),
    text("task"),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="1"),
    count("failures"),
    count("losses"),
    count("sendings"),
    at("send_started_at"),
    sa.Column("overlap_key", UUID),
    sa.Column("waiting_for", UUID),
    sa.Column("notify", FLAG),
    at("recorded_at", optional=False),
    at("not_before", optional=False),
    at("sent_at"),
    at("first_started_at"),
    at("started_at"),
    at("heartbeat_at"),
    at("finished_at"),
    at("cancel_requested_at"),
    sa.Column("progress", FRACTION),
    text("worker", optional=True),
    text("secret", optional=True),
    sa.Column("steps", LIST),
    text("phase", optional=True),
    text("message", optional=True),
    sa.Column("processed", BIG),
    sa.Column("total", BIG),
    sa.Column("is_blocking", FLAG),
    text("run_type", optional=True),
    text("rewrites", optional=True),
    at("eta_at"),
    sa.Column("result", OBJECT),
    text("error", optional=True),
    one_of("state", STATES),
    one_of("cause", ("schedule", "event", "manual", "retry", "backfill")),
    sa.CheckConstraint("attempt >= 1", name="attempt"),
    sa.CheckConstraint(
        "state <> 'running' OR (worker IS NOT NULL AND heartbeat_at IS NOT NULL)", name="owner"
    ),
    partial("operations_to_send", "not_before", where=SENDABLE),
    partial(
        "operations_jobs",
        *("small_app_id", "queue", "recorded_at"),
        where=f"{SENDABLE} AND task = 'job'",
    ),
    partial("operations_overdue", "recorded_at", where=f"{SENDABLE} AND first_started_at IS NULL"),
    partial("operations_waiting", "waiting_for", where="waiting_for IS NOT NULL"),
    partial(
        "operations_heartbeat_stale",
        "heartbeat_at",
        where="state = 'running' AND heartbeat_at IS NOT NULL",
    ),
    partial("operations_one_running", "overlap_key", where="state = 'running'", unique=True),
    partial("operations_unstarted", "action_uid", "occurrence_at", where=UNSTARTED),
    sa.Index("operations_of_action", "action_uid", "occurrence_at"),
    sa.Index("operations_recent", "recorded_at"),
    sa.Index("operations_of_app", "small_app_id", "recorded_at"),
    partial("operations_finished", "finished_at", where="finished_at IS NOT NULL"),
    partial(
        "operations_troubled",
        "finished_at",
        where="state IN ('failed', 'missed', 'partial') AND finished_at IS NOT NULL",
    ),
)

sa.Table(
    "operation_logs",
    metadata,
    sa.Column("operation_id", sa.ForeignKey("operations.id"), primary_key=True, type_=UUID),
    sa.Column("lines", LIST, nullable=False),
)

sa.Table(
    "attempts",
    metadata,
    sa.Column("operation_id", sa.ForeignKey("operations.id"), primary_key=True, type_=UUID),
    sa.Column("attempt", sa.Integer, primary_key=True),
    text("worker"),
    at("started_at", optional=False),
    at("finished_at"),
    text("state"),
    text("error", optional=True),
    text("secret", optional=True),
)

sa.Table(
    "missed_spans",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("action_uid", UUID, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    at("first_at", optional=False),
    at("last_at", optional=False),
    sa.Column("count", BIG, nullable=False),
    text("reason"),
    at("recorded_at", optional=False),
    at("decided_at"),
    sa.CheckConstraint("count >= 1", name="count"),
    sa.CheckConstraint(
        "first_at > '1970-01-01 00:00:00.000000+00' AND first_at <= last_at "
        "AND last_at < '2200-01-01 00:00:00+00'",
        name="span",
    ),
    sa.Index("missed_spans_of_action", "action_uid", "last_at"),
    sa.Index("missed_spans_recorded", "recorded_at"),
)

sa.Table(
    "backfills",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    app(),
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), nullable=False, type_=UUID),
    at("since", optional=False),
    at("until", optional=False),
    text("mode"),
    text("state"),
    text("actor"),
    at("not_before", optional=False),
    count("recorded"),
    count("repeated"),
    count("passed_over"),
    at("requested_at", optional=False),
    at("finished_at"),
    text("error", optional=True),
    one_of("state", ("active", "done", "cancelled", "failed")),
    one_of("mode", ("missing", "failed", "all")),
    sa.CheckConstraint("since < until", name="range"),
    partial("backfills_to_send", "not_before", where="state = 'active'"),
    sa.Index("backfills_of_action", "action_uid", "requested_at"),
)

sa.Table(
    "notices",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    sa.Column("action_uid", UUID),
    sa.Column("operation_id", UUID),
    sa.Column("finding_id", UUID),
    text("kind"),
    sa.Column("target", OBJECT, nullable=False),
    sa.Column("payload", OBJECT, nullable=False),
    text("state"),
    count("tries"),
    at("not_before", optional=False),
    at("created_at", optional=False),
    at("finished_at"),
    text("error", optional=True),
    one_of("kind", ("run_started", "run_ended", "finding_began", "finding_ended")),
    one_of("state", ("owed", "done", "failed")),
    partial("notices_owed", "not_before", where="state = 'owed'"),
    sa.Index("notices_of_operation", "operation_id"),
    partial("notices_of_finding", "finding_id", where="finding_id IS NOT NULL"),
    sa.Index("notices_finished", "finished_at"),
)

sa.Table(
    "findings",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    sa.Column("action_uid", UUID),
    text("kind"),
    text("about"),
    text("text"),
    text("remedy"),
    at("began_at", optional=False),
    at("ended_at"),
    at("told_at"),
    partial("findings_open", "action_uid", where="ended_at IS NULL"),
)

sa.Table(
    "users",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    text("email", optional=True),
    text("name", optional=True),
    sa.Column("active", FLAG, nullable=False),
    at("created_at", optional=False),
    at("activated_at"),
    at("last_seen_at"),
    flag("created_silent"),
    flag("activated_silent"),
    flag("last_seen_silent"),
    sa.Index("users_created", "small_app_id", "created_at"),
    sa.Index("users_activated", "small_app_id", "activated_at"),
    sa.Index("users_last_seen", "small_app_id", "last_seen_at"),
)

sa.Table(
    "groups",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
)

sa.Table(
    "group_members",
    metadata,
    sa.Column("small_app_id", sa.Integer, primary_key=True),
    sa.Column("group_name", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.ForeignKeyConstraint(["small_app_id", "group_name"], ["groups.small_app_id", "groups.name"]),
    sa.ForeignKeyConstraint(["small_app_id", "user_id"], ["users.small_app_id", "users.id"]),
    sa.Index("group_members_of_user", "small_app_id", "user_id"),
)

sa.Table(
    "events",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("event", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    text("subject"),
    at("occurred_at", optional=False),
    sa.Index("events_due", "small_app_id", "event", "occurred_at"),
)

sa.Table(
    "action_ends",
    metadata,
    sa.Column("action_uid", UUID, primary_key=True),
    sa.Column("operation_id", UUID, primary_key=True),
    sa.Column("state", sa.Text, primary_key=True),
    app(),
    text("subject", optional=True),
    at("ended_at", optional=False),
    sa.Index("action_ends_due", "action_uid", "ended_at"),
    sa.Index("action_ends_old", "small_app_id", "ended_at"),
    one_of("state", STATES),
)

sa.Table(
    "ticks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    text("daemon"),
    at("now", optional=False),
    at("finished_at", optional=False),
    sa.Column("duration_ms", FLOAT, nullable=False),
    sa.Column("report", OBJECT, nullable=False),
    sa.Index("ticks_recent", "finished_at"),
)

sa.Table(
    "workers",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    text("queues"),
    sa.Column("pid", sa.Integer, nullable=False),
    at("started_at", optional=False),
    at("seen_at", optional=False),
    at("stopped_at"),
    sa.Column("slots", sa.Integer),
    sa.Column("skew_s", FLOAT),
    sa.Column("follows", LIST),
    sa.Column("signatures", OBJECT),
    sa.Column("step_failures", OBJECT),
)

sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    at("at", optional=False),
    text("actor"),
    text("verb"),
    text("object"),
    sa.Column("details", OBJECT),
    sa.Index("audit_recent", "at"),
)

sa.Table(
    "pauses",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    text("kind"),
    text("name"),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    text("by"),
    text("reason", optional=True),
    at("began_at", optional=False),
    at("until"),
    at("ended_at"),
    text("ended_by", optional=True),
    one_of("kind", ("all", "app", "queue")),
    partial("pauses_open", "kind", "name", where="ended_at IS NULL", unique=True),
)

sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    text("role"),
    one_of("role", ("viewer", "operator", "editor", "worker", "admin")),
    text("hash"),
    at("created_at", optional=False),
    text("created_by"),
    at("expires_at"),
    at("last_used_at"),
    at("revoked_at"),
    text("kind", default="token"),
    one_of("kind", ("token", "link")),
    sa.Column("parent", sa.ForeignKey("tokens.id")),
    text("name", optional=True),
    sa.Column("tasks", LIST),
)

sa.Table(
    "installation",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    text("value"),
)

guard(metadata)
