"""All tables of the first release, the small app `default`, and the trigger for plain SQL edits."""

import sqlalchemy as sa
from alembic import op

from models.column_types import HyphenatedUuid, UTCDateTime

revision = "0001_pre_first_schema"
down_revision = None
branch_labels = None
depends_on = None

# The next tick schedules a row edited by plain SQL again and makes the revision. The instant of the
# edit separates the occurrences of the old document from those of the new one.
SQLITE_TRIGGER = """
CREATE TRIGGER actions_edited AFTER UPDATE OF document, active ON actions
WHEN new.document IS NOT old.document OR new.active IS NOT old.active
BEGIN
  UPDATE action_cursor
  SET next_occurrence_at = '1970-01-01 00:00:00.000000',
      edited_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
  WHERE action_uid = new.uid;
END
"""
POSTGRESQL_FUNCTION = """
CREATE FUNCTION actions_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE action_cursor
  SET next_occurrence_at = '1970-01-01T00:00:00Z', edited_at = clock_timestamp()
  WHERE action_uid = new.uid;
  RETURN NULL;
END $$
"""
POSTGRESQL_TRIGGER = """
CREATE TRIGGER actions_edited AFTER UPDATE OF document, active ON actions FOR EACH ROW
WHEN (new.document IS DISTINCT FROM old.document OR new.active IS DISTINCT FROM old.active)
EXECUTE FUNCTION actions_edited()
"""


def upgrade() -> None:
    """Create the tables, the trigger and the default small app."""
    for create in (
        _create_installation,
        _create_small_apps,
        _create_ticks,
        _create_workers,
        _create_actions,
        _create_audit,
        _create_events,
        _create_groups,
        _create_snapshots,
        _create_templates,
        _create_tokens,
        _create_users,
        _create_action_cursor,
        _create_action_state,
        _create_domains,
        _create_group_members,
        _create_missed_spans,
        _create_operations,
        _create_revisions,
        _create_attempts,
        _create_deliveries,
        _create_operation_logs,
    ):
        create()
    _create_trigger()
    op.execute(
        sa.text(
            "INSERT INTO small_apps (name, zone, document, created_at)"
            """ VALUES ('default', 'UTC', '{"name": "default", "zone": "UTC"}', CURRENT_TIMESTAMP)"""
        )
    )


def _create_trigger() -> None:
    # op.execute would read the colons as parameters.
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(SQLITE_TRIGGER)
    else:
        connection.exec_driver_sql(POSTGRESQL_FUNCTION)
        connection.exec_driver_sql(POSTGRESQL_TRIGGER)


def _create_installation() -> None:
    op.create_table(
        "installation",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("installation_pkey")),
    )


def _create_small_apps() -> None:
    op.create_table(
        "small_apps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("deleted_at", UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("small_apps_pkey")),
        sa.UniqueConstraint("name", name=op.f("small_apps_name_key")),
    )


def _create_ticks() -> None:
    op.create_table(
        "ticks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("daemon", sa.Text(), nullable=False),
        sa.Column("now", UTCDateTime(), nullable=False),
        sa.Column("finished_at", UTCDateTime(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("ticks_pkey")),
    )
    with op.batch_alter_table("ticks", schema=None) as batch_op:
        batch_op.create_index("ticks_recent", ["finished_at"], unique=False)


def _create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", UTCDateTime(), nullable=False),
        sa.Column("seen_at", UTCDateTime(), nullable=False),
        sa.Column("stopped_at", UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("workers_pkey")),
    )


def _create_actions() -> None:
    op.create_table(
        "actions",
        sa.Column("uid", HyphenatedUuid(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("document_hash", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("set_aside", sa.Text(), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.Column("deleted_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("actions_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("actions_pkey")),
    )
    with op.batch_alter_table("actions", schema=None) as batch_op:
        batch_op.create_index(
            "actions_named",
            ["small_app_id", "name"],
            unique=True,
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )
        batch_op.create_index("actions_owned", ["owner"], unique=False)
        batch_op.create_index(
            "actions_set_aside",
            ["updated_at"],
            unique=False,
            sqlite_where=sa.text("set_aside IS NOT NULL"),
            postgresql_where=sa.text("set_aside IS NOT NULL"),
        )


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=True),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("audit_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_pkey")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("audit_recent", ["at"], unique=False)


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("occurred_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("events_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("small_app_id", "event", "id", name=op.f("events_pkey")),
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index("events_due", ["small_app_id", "event", "occurred_at"], unique=False)


def _create_groups() -> None:
    op.create_table(
        "groups",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("groups_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("small_app_id", "name", name=op.f("groups_pkey")),
    )


def _create_snapshots() -> None:
    op.create_table(
        "snapshots",
        sa.Column("id", HyphenatedUuid(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("validators", sa.JSON(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("operation_id", HyphenatedUuid(), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("snapshots_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("snapshots_pkey")),
    )
    with op.batch_alter_table("snapshots", schema=None) as batch_op:
        batch_op.create_index(
            "snapshots_of_domain", ["small_app_id", "domain", "created_at"], unique=False
        )


def _create_templates() -> None:
    op.create_table(
        "templates",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("templates_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("small_app_id", "name", name=op.f("templates_pkey")),
    )


def _create_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", HyphenatedUuid(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("used_at", UTCDateTime(), nullable=True),
        sa.Column("revoked_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint(
            "role IN ('admin', 'operator', 'viewer', 'worker')", name=op.f("tokens_role_check")
        ),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("tokens_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("tokens_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("tokens_token_hash_key")),
    )


def _create_users() -> None:
    op.create_table(
        "users",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("activated_at", UTCDateTime(), nullable=True),
        sa.Column("last_seen_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("users_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("small_app_id", "id", name=op.f("users_pkey")),
    )
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.create_index("users_activated", ["small_app_id", "activated_at"], unique=False)
        batch_op.create_index("users_created", ["small_app_id", "created_at"], unique=False)
        batch_op.create_index("users_last_seen", ["small_app_id", "last_seen_at"], unique=False)


def _create_action_cursor() -> None:
    op.create_table(
        "action_cursor",
        sa.Column("action_uid", HyphenatedUuid(), nullable=False),
        sa.Column("watermark", UTCDateTime(), nullable=False),
        sa.Column("next_occurrence_at", UTCDateTime(), nullable=True),
        sa.Column("effective_from", UTCDateTime(), nullable=False),
        sa.Column("edited_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("action_cursor_action_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("action_uid", name=op.f("action_cursor_pkey")),
    )
    with op.batch_alter_table("action_cursor", schema=None) as batch_op:
        batch_op.create_index("action_cursor_ahead", ["watermark"], unique=False)
        batch_op.create_index("action_cursor_due", ["next_occurrence_at"], unique=False)


def _create_action_state() -> None:
    op.create_table(
        "action_state",
        sa.Column("action_uid", HyphenatedUuid(), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("last_state", sa.Text(), nullable=True),
        sa.Column("last_run_at", UTCDateTime(), nullable=True),
        sa.Column("last_success_at", UTCDateTime(), nullable=True),
        sa.Column("run_number", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failures_in_row", sa.Integer(), server_default="0", nullable=False),
        sa.Column("troubles_in_row", sa.Integer(), server_default="0", nullable=False),
        sa.Column("checkpoint", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("action_state_action_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("action_uid", "subject", name=op.f("action_state_pkey")),
    )


def _create_domains() -> None:
    op.create_table(
        "domains",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("staging_id", HyphenatedUuid(), nullable=True),
        sa.Column("production_id", HyphenatedUuid(), nullable=True),
        sa.Column("refreshed_at", UTCDateTime(), nullable=True),
        sa.Column("published_at", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["production_id"], ["snapshots.id"], name=op.f("domains_production_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("domains_small_app_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["staging_id"], ["snapshots.id"], name=op.f("domains_staging_id_fkey")
        ),
        sa.PrimaryKeyConstraint("small_app_id", "name", name=op.f("domains_pkey")),
    )


def _create_group_members() -> None:
    op.create_table(
        "group_members",
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["small_app_id", "group_name"],
            ["groups.small_app_id", "groups.name"],
            name=op.f("group_members_small_app_id_group_name_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["small_app_id", "user_id"],
            ["users.small_app_id", "users.id"],
            name=op.f("group_members_small_app_id_user_id_fkey"),
        ),
        sa.PrimaryKeyConstraint(
            "small_app_id", "group_name", "user_id", name=op.f("group_members_pkey")
        ),
    )
    with op.batch_alter_table("group_members", schema=None) as batch_op:
        batch_op.create_index("group_members_of_user", ["small_app_id", "user_id"], unique=False)


def _create_missed_spans() -> None:
    op.create_table(
        "missed_spans",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("action_uid", HyphenatedUuid(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("first_at", UTCDateTime(), nullable=False),
        sa.Column("last_at", UTCDateTime(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("recorded_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("count >= 1", name=op.f("missed_spans_count_check")),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("missed_spans_action_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("missed_spans_pkey")),
    )
    with op.batch_alter_table("missed_spans", schema=None) as batch_op:
        batch_op.create_index("missed_spans_of_action", ["action_uid", "last_at"], unique=False)


def _create_operations() -> None:
    op.create_table(
        "operations",
        sa.Column("id", HyphenatedUuid(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("action_uid", HyphenatedUuid(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("occurrence_at", UTCDateTime(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("event_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("triggerer", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("sendings", sa.Integer(), server_default="0", nullable=False),
        sa.Column("overlap_key", sa.Text(), nullable=True),
        sa.Column("waiting_for", HyphenatedUuid(), nullable=True),
        sa.Column("recorded_at", UTCDateTime(), nullable=False),
        sa.Column("not_before", UTCDateTime(), nullable=False),
        sa.Column("queued_at", UTCDateTime(), nullable=True),
        sa.Column("first_started_at", UTCDateTime(), nullable=True),
        sa.Column("started_at", UTCDateTime(), nullable=True),
        sa.Column("heartbeat_at", UTCDateTime(), nullable=True),
        sa.Column("finished_at", UTCDateTime(), nullable=True),
        sa.Column("cancel_requested_at", UTCDateTime(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("steps", sa.JSON(), nullable=True),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("progress", sa.Float(), nullable=True),
        sa.Column("processed", sa.BigInteger(), nullable=True),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("eta_at", UTCDateTime(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND heartbeat_at IS NOT NULL)",
            name=op.f("operations_owner_check"),
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'queued', 'running', 'success', 'partial', 'failed', 'cancelled', 'skipped', 'dropped', 'missed', 'handed_over')",
            name=op.f("operations_state_check"),
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("operations_attempt_check")),
        sa.CheckConstraint(
            "progress >= 0 AND progress <= 1", name=op.f("operations_progress_check")
        ),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("operations_action_uid_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("operations_small_app_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("operations_pkey")),
    )
    with op.batch_alter_table("operations", schema=None) as batch_op:
        batch_op.create_index("operations_finished", ["finished_at"], unique=False)
        batch_op.create_index(
            "operations_heartbeat_stale",
            ["heartbeat_at"],
            unique=False,
            sqlite_where=sa.text("state = 'running'"),
            postgresql_where=sa.text("state = 'running'"),
        )
        batch_op.create_index("operations_of_action", ["action_uid", "occurrence_at"], unique=False)
        batch_op.create_index(
            "operations_one_running",
            ["overlap_key"],
            unique=True,
            sqlite_where=sa.text("state = 'running'"),
            postgresql_where=sa.text("state = 'running'"),
        )
        batch_op.create_index("operations_recent", ["small_app_id", "recorded_at"], unique=False)
        batch_op.create_index(
            "operations_to_send",
            ["not_before"],
            unique=False,
            sqlite_where=sa.text("state IN ('pending', 'queued') AND waiting_for IS NULL"),
            postgresql_where=sa.text("state IN ('pending', 'queued') AND waiting_for IS NULL"),
        )
        batch_op.create_index(
            "operations_unstarted",
            ["action_uid", "occurrence_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('pending', 'queued')"),
            postgresql_where=sa.text("state IN ('pending', 'queued')"),
        )
        batch_op.create_index(
            "operations_waiting",
            ["waiting_for"],
            unique=False,
            sqlite_where=sa.text("waiting_for IS NOT NULL"),
            postgresql_where=sa.text("waiting_for IS NOT NULL"),
        )


def _create_revisions() -> None:
    op.create_table(
        "revisions",
        sa.Column("action_uid", HyphenatedUuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("effective_from", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("revisions_action_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("action_uid", "number", name=op.f("revisions_pkey")),
    )


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("operation_id", HyphenatedUuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("started_at", UTCDateTime(), nullable=False),
        sa.Column("finished_at", UTCDateTime(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["operation_id"], ["operations.id"], name=op.f("attempts_operation_id_fkey")
        ),
        sa.PrimaryKeyConstraint("operation_id", "attempt", name=op.f("attempts_pkey")),
    )


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("operation_id", HyphenatedUuid(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint(
            "state IN ('sending', 'sent', 'failed')", name=op.f("deliveries_state_check")
        ),
        sa.ForeignKeyConstraint(
            ["operation_id"], ["operations.id"], name=op.f("deliveries_operation_id_fkey")
        ),
        sa.PrimaryKeyConstraint("operation_id", "step", "recipient", name=op.f("deliveries_pkey")),
    )


def _create_operation_logs() -> None:
    op.create_table(
        "operation_logs",
        sa.Column("operation_id", HyphenatedUuid(), nullable=False),
        sa.Column("lines", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["operation_id"], ["operations.id"], name=op.f("operation_logs_operation_id_fkey")
        ),
        sa.PrimaryKeyConstraint("operation_id", name=op.f("operation_logs_pkey")),
    )
