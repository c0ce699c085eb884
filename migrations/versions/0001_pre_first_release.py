"""The schema of 0.9.0, the first release: tables, the refusal of edits by SQL, one small app.

Frozen: a later change of `models/tables.py` is a migration of its own.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001_pre_first_release"
down_revision = None
branch_labels = None
depends_on = None

# SQLite's strict tables know four types.
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
UUID = sa.Uuid().with_variant(sa.Text(), "sqlite")
FLAG = sa.Boolean().with_variant(sa.Integer(), "sqlite")
FLOAT, FRACTION = (sa.Float().with_variant(sa.REAL(), "sqlite") for _ in range(2))
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OBJECT, LIST = (sa.JSON().with_variant(sa.Text(), "sqlite") for _ in range(2))
DOCUMENT = sa.Text()

FORM = f"{'[0-9]' * 4}-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9].{'[0-9]' * 6}"
HEX = "-".join("[0-9a-f]" * digits for digits in (8, 4, 4, 4, 12))
FIRST, LAST = "0001-01-02 00:00:00", "9999-12-30 00:00:00"
FINITE = "{0} BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"
IS_JSON = "{0} IS NULL OR json_valid({0}) AND json_type({0})"
# What the type of a column does not refuse by itself.
CHECKS: dict[object, dict[str, str]] = {
    INSTANT: {
        "sqlite": f"{{0}} GLOB '{FORM}' AND datetime(substr({{0}}, 1, 19)) IS substr({{0}}, 1, 19)"
        f" AND {{0}} BETWEEN '{FIRST}' AND '{LAST}'"
    },
    UUID: {"sqlite": f"{{0}} GLOB '{HEX}'"},
    FLAG: {"sqlite": "{0} IN (0, 1)"},
    FLOAT: {"sqlite": FINITE, "postgresql": FINITE},
    FRACTION: {"sqlite": "{0} BETWEEN 0 AND 1", "postgresql": "{0} BETWEEN 0 AND 1"},
    OBJECT: {"sqlite": f"{IS_JSON} = 'object'", "postgresql": "json_typeof({0}) = 'object'"},
    LIST: {"sqlite": f"{IS_JSON} = 'array'", "postgresql": "json_typeof({0}) = 'array'"},
    DOCUMENT: {
        "sqlite": f"{IS_JSON} = 'object'",
        "postgresql": "json_typeof(CAST({0} AS json)) = 'object'",
    },
}
STATES = (
    *("pending", "queued", "running", "success", "partial", "failed"),
    *("cancelled", "skipped", "dropped", "missed", "handed_over"),
)

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


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


def _guard() -> None:
    for table in metadata.tables.values():
        table.dialect_kwargs["sqlite_strict"] = True
        for column in table.columns:
            for dialect, condition in CHECKS.get(column.type, {}).items():
                _check(table, f"{column.name}_form", dialect, condition.format(f'"{column.name}"'))
        instants = ", ".join(f'"{one.name}"' for one in table.columns if one.type is INSTANT)
        if instants:
            in_range = f"least({instants}) >= '{FIRST}+00' AND greatest({instants}) <= '{LAST}+00'"
            _check(table, "instants", "postgresql", in_range)


def _check(table: sa.Table, name: str, dialect: str, condition: str) -> None:
    table.append_constraint(sa.CheckConstraint(condition, name=name).ddl_if(dialect=dialect))


def _app() -> sa.Column[int]:
    return sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), nullable=False)


def _at(name: str, *, optional: bool = True) -> sa.Column[object]:
    return sa.Column(name, INSTANT, nullable=optional)


def _text(name: str, *, optional: bool = False, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=optional, server_default=default)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default="0")


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, FLAG, nullable=False, server_default=sa.false())


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    only = sa.text(where)
    return sa.Index(name, *columns, unique=unique, sqlite_where=only, postgresql_where=only)


def _one_of(column: str, values: tuple[str, ...]) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{column} IN ({', '.join(repr(v) for v in values)})", name=column)


UNSTARTED = "state IN ('pending', 'queued')"
SENDABLE = f"{UNSTARTED} AND waiting_for IS NULL"
THERE = "deleted_at IS NULL"


WANTS_MAIL = (
    """(document LIKE '%"send_email"%' OR document LIKE '%"send_execsum"%'"""
    f""" OR document LIKE '%"mail"%') AND {THERE}"""
)


def _naming(key: str) -> str:
    return f"""document LIKE '%"{key}"%' AND {THERE}"""


sa.Table(
    "small_apps",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _text("name"),
    _text("zone"),
    sa.Column("document", DOCUMENT, nullable=False),
    _at("created_at", optional=False),
    _at("deleted_at"),
    _at("maintained_at"),
    sa.Column("trust", OBJECT, nullable=True),
    sa.UniqueConstraint("name"),
)

sa.Table(
    "domains",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("source", DOCUMENT, nullable=False),
    sa.Column("staging_id", UUID, sa.ForeignKey("snapshots.id")),
    sa.Column("production_id", UUID, sa.ForeignKey("snapshots.id")),
    _at("staging_begun_at"),
    _at("refreshed_at"),
    _at("published_at"),
    sa.Column("published_by", UUID),
)

sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    _app(),
    _text("domain"),
    _text("path"),
    sa.Column("row_count", BIG, nullable=False),
    sa.Column("byte_count", BIG, nullable=False),
    _text("digest"),
    sa.Column("validators", OBJECT, nullable=False),
    sa.Column("figures", OBJECT, nullable=False),
    sa.Column("operation_id", UUID),
    _at("created_at", optional=False),
    sa.Index("snapshots_of_domain", "small_app_id", "domain", "created_at"),
)

sa.Table(
    "app_documents",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("staging", DOCUMENT),
    sa.Column("production", DOCUMENT),
    _at("published_at"),
    sa.Column("published_by", UUID),
    _one_of("kind", ("design", "permissions")),
)

sa.Table(
    "actions",
    metadata,
    sa.Column("uid", UUID, primary_key=True),
    _app(),
    _text("name"),
    _text("owner", optional=True),
    sa.Column("active", FLAG, nullable=False),
    sa.Column("document", DOCUMENT, nullable=False),
    _text("document_hash"),
    sa.Column("plan", DOCUMENT, nullable=False),
    _text("event", optional=True),
    _count("look_back_s"),
    _text("job_id", optional=True),
    sa.Column("revision", sa.Integer, nullable=False),
    _text("quarantined", optional=True),
    _at("created_at", optional=False),
    _at("updated_at", optional=False),
    _at("deleted_at"),
    _partial("actions_named", "small_app_id", "name", where=THERE, unique=True),
    sa.Index("actions_by_name", "name", "uid"),
    _partial("actions_counted", "small_app_id", "active", where=THERE),
    _partial("actions_refreshing", "small_app_id", where=_naming("refresh")),
    _partial("actions_wanting_mail", "active", where=WANTS_MAIL),
    sa.Index("actions_owned", "owner"),
    _partial("actions_on_events", "small_app_id", "event", where="event IS NOT NULL"),
    sa.Index("actions_look_back", "look_back_s"),
    _partial("actions_quarantined", "updated_at", where="quarantined IS NOT NULL"),
    _partial(
        "actions_jobs", "small_app_id", "job_id", "name", where=f"job_id IS NOT NULL AND {THERE}"
    ),
    _partial(
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
    _text("author"),
    _at("effective_from", optional=False),
    _at("holds_from"),
    _at("ended_at"),
    _text("end_reason", optional=True),
)

sa.Table(
    "action_cursor",
    metadata,
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), primary_key=True, type_=UUID),
    _at("watermark", optional=False),
    _at("next_occurrence_at"),
    _at("effective_from", optional=False),
    _at("ended_at"),
    sa.Index("action_cursor_due", "next_occurrence_at"),
    sa.Index("action_cursor_ahead", "watermark"),
)

sa.Table(
    "action_state",
    metadata,
    sa.Column("action_uid", UUID, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True, server_default=""),
    _text("last_state", optional=True),
    _at("last_run_at"),
    _at("last_success_at"),
    _count("run_number"),
    _count("failures_in_row"),
    _count("bad_runs_in_a_row"),
    sa.Column("checkpoint", OBJECT),
    _one_of("last_state", STATES),
)

sa.Table(
    "operations",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    sa.Column("small_app_id", sa.Integer, nullable=False),
    sa.Column("action_uid", UUID, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    _at("occurrence_at", optional=False),
    _text("subject", optional=True),
    _text("event_id", optional=True),
    _at("event_at"),
    _text("state"),
    _text("reason", optional=True),
    sa.Column("cause", sa.Text, nullable=False, server_default="schedule"),
    _text("triggerer"),
    sa.Column("backfill_id", UUID),
    _text("queue"),
    _text("task"),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="1"),
    _count("failures"),
    _count("losses"),
    _count("sendings"),
    _at("send_started_at"),
    _text("overlap_key", optional=True),
    sa.Column("waiting_for", UUID),
    sa.Column("notify", FLAG),
    _at("recorded_at", optional=False),
    _at("not_before", optional=False),
    _at("sent_at"),
    _at("first_started_at"),
    _at("started_at"),
    _at("heartbeat_at"),
    _at("finished_at"),
    _at("cancel_requested_at"),
    _text("worker", optional=True),
    _text("secret", optional=True),
    sa.Column("steps", LIST),
    _text("phase", optional=True),
    _text("message", optional=True),
    sa.Column("progress", FRACTION),
    sa.Column("processed", BIG),
    sa.Column("total", BIG),
    sa.Column("is_blocking", FLAG),
    _text("run_type", optional=True),
    _text("rewrites", optional=True),
    _at("eta_at"),
    sa.Column("result", OBJECT),
    _text("error", optional=True),
    _one_of("state", STATES),
    _one_of("cause", ("schedule", "event", "manual", "retry", "backfill")),
    sa.CheckConstraint("attempt >= 1", name="attempt"),
    sa.CheckConstraint(
        "state <> 'running' OR (worker IS NOT NULL AND heartbeat_at IS NOT NULL)", name="owner"
    ),
    _partial("operations_to_send", "not_before", where=SENDABLE),
    _partial(
        "operations_jobs",
        *("small_app_id", "queue", "recorded_at"),
        where=f"{SENDABLE} AND task = 'job'",
    ),
    _partial("operations_overdue", "recorded_at", where=f"{SENDABLE} AND first_started_at IS NULL"),
    _partial("operations_waiting", "waiting_for", where="waiting_for IS NOT NULL"),
    _partial(
        "operations_heartbeat_stale",
        "heartbeat_at",
        where="state = 'running' AND heartbeat_at IS NOT NULL",
    ),
    _partial("operations_one_running", "overlap_key", where="state = 'running'", unique=True),
    _partial("operations_unstarted", "action_uid", "occurrence_at", where=UNSTARTED),
    sa.Index("operations_of_action", "action_uid", "occurrence_at"),
    sa.Index("operations_recent", "small_app_id", "recorded_at"),
    _partial("operations_finished", "finished_at", where="finished_at IS NOT NULL"),
    _partial(
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
    _text("worker"),
    _at("started_at", optional=False),
    _at("finished_at"),
    _text("state"),
    _text("error", optional=True),
    _text("secret", optional=True),
)

sa.Table(
    "missed_spans",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("action_uid", UUID, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    _at("first_at", optional=False),
    _at("last_at", optional=False),
    sa.Column("count", BIG, nullable=False),
    _text("reason"),
    _at("recorded_at", optional=False),
    _at("decided_at"),
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
    _app(),
    sa.Column("action_uid", sa.ForeignKey("actions.uid"), nullable=False, type_=UUID),
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
    _text("error", optional=True),
    _one_of("state", ("active", "done", "cancelled", "failed")),
    _one_of("mode", ("missing", "failed", "all")),
    sa.CheckConstraint("since < until", name="range"),
    _partial("backfills_to_send", "not_before", where="state = 'active'"),
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
    _text("kind"),
    sa.Column("target", OBJECT, nullable=False),
    sa.Column("payload", OBJECT, nullable=False),
    _text("state"),
    _count("tries"),
    _at("not_before", optional=False),
    _at("created_at", optional=False),
    _at("finished_at"),
    _text("error", optional=True),
    _one_of("kind", ("run_started", "run_ended", "finding_began", "finding_ended")),
    _one_of("state", ("owed", "done", "failed")),
    _partial("notices_owed", "not_before", where="state = 'owed'"),
    sa.Index("notices_of_operation", "operation_id"),
    _partial("notices_of_finding", "finding_id", where="finding_id IS NOT NULL"),
    sa.Index("notices_finished", "finished_at"),
)

sa.Table(
    "findings",
    metadata,
    sa.Column("id", UUID, primary_key=True),
    sa.Column("action_uid", UUID),
    _text("kind"),
    _text("about"),
    _text("text"),
    _text("remedy"),
    _at("began_at", optional=False),
    _at("ended_at"),
    _at("told_at"),
    _partial("findings_open", "action_uid", where="ended_at IS NULL"),
)

sa.Table(
    "users",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    _text("email", optional=True),
    _text("name", optional=True),
    sa.Column("active", FLAG, nullable=False),
    _at("created_at", optional=False),
    _at("activated_at"),
    _at("last_seen_at"),
    _flag("created_silent"),
    _flag("activated_silent"),
    _flag("last_seen_silent"),
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
    _text("subject"),
    _at("occurred_at", optional=False),
    sa.Index("events_due", "small_app_id", "event", "occurred_at"),
)

sa.Table(
    "action_ends",
    metadata,
    sa.Column("action_uid", UUID, primary_key=True),
    sa.Column("operation_id", UUID, primary_key=True),
    sa.Column("state", sa.Text, primary_key=True),
    _app(),
    _text("subject", optional=True),
    _at("ended_at", optional=False),
    sa.Index("action_ends_due", "action_uid", "ended_at"),
    sa.Index("action_ends_old", "small_app_id", "ended_at"),
    _one_of("state", STATES),
)

sa.Table(
    "templates",
    metadata,
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    _text("subject"),
    _text("text"),
    _text("html", optional=True),
)

sa.Table(
    "deliveries",
    metadata,
    sa.Column("operation_id", sa.ForeignKey("operations.id"), primary_key=True, type_=UUID),
    sa.Column("step", sa.Text, primary_key=True),
    sa.Column("recipient", sa.Text, primary_key=True),
    _text("address"),
    _text("message_id"),
    _text("state"),
    _text("error", optional=True),
    _flag("is_permanent"),
    _at("updated_at", optional=False),
    _one_of("state", ("sending", "sent", "failed")),
    sa.Index("deliveries_recent", "updated_at"),
)

sa.Table(
    "ticks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _text("daemon"),
    _at("now", optional=False),
    _at("finished_at", optional=False),
    sa.Column("duration_ms", FLOAT, nullable=False),
    sa.Column("report", OBJECT, nullable=False),
    sa.Index("ticks_recent", "finished_at"),
)

sa.Table(
    "workers",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    _text("queues"),
    sa.Column("pid", sa.Integer, nullable=False),
    _at("started_at", optional=False),
    _at("seen_at", optional=False),
    _at("stopped_at"),
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
    _at("at", optional=False),
    _text("actor"),
    _text("verb"),
    _text("object"),
    sa.Column("details", OBJECT),
    sa.Index("audit_recent", "at"),
)

sa.Table(
    "pauses",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _text("kind"),
    _text("name"),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    _text("by"),
    _text("reason", optional=True),
    _at("began_at", optional=False),
    _at("until"),
    _at("ended_at"),
    _text("ended_by", optional=True),
    _one_of("kind", ("all", "app", "queue")),
    _partial("pauses_open", "kind", "name", where="ended_at IS NULL", unique=True),
)

sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("small_app_id", sa.ForeignKey("small_apps.id")),
    _text("role"),
    _one_of("role", ("viewer", "operator", "editor", "worker", "admin")),
    _text("hash"),
    _at("created_at", optional=False),
    _text("created_by"),
    _at("expires_at"),
    _at("last_used_at"),
    _at("revoked_at"),
    _text("kind", default="token"),
    _one_of("kind", ("token", "session", "link")),
    sa.Column("parent", sa.ForeignKey("tokens.id")),
    _text("name", optional=True),
    sa.Column("tasks", LIST),
)

sa.Table(
    "installation",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    _text("value"),
)

_guard()
