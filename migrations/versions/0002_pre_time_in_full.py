"""Events, ends of revisions, backfills, notices, skews: columns and tables of 0.2.0."""

import json
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op
from pydantic import TypeAdapter

from models.column_types import HyphenatedUuid, UTCDateTime

revision = "0002_pre_time_in_full"
down_revision = "0001_pre_first_schema"
branch_labels = None
depends_on = None

BATCH = 1_000


def upgrade() -> None:
    """Add what 0.2.0 needs; rows written by 0.1.0 stay complete."""
    _widen_actions()
    added: dict[str, tuple[sa.Column[Any], ...]] = {
        "revisions": (_at("ended_at"), sa.Column("end_reason", sa.Text())),
        "action_state": (_at("alerted_at"), _at("overdue_alerted_at")),
        "operations": (_at("event_at"),),
        "users": (_flag("created_silent"), _flag("activated_silent"), _flag("last_seen_silent")),
        "workers": (sa.Column("skew_s", sa.Float()),),
    }
    for table, columns in added.items():
        for column in columns:
            op.add_column(table, column)
    _index_overdue()
    _create_backfills()
    _create_notices()


def _at(name: str, *, optional: bool = True) -> sa.Column[object]:
    return sa.Column(name, UTCDateTime(), nullable=optional)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False)


def _count(name: str, default: str = "0") -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default=default, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _widen_actions() -> None:
    op.add_column("actions", sa.Column("event", sa.Text(), nullable=True))
    op.add_column("actions", _count("look_back_s"))
    _note_look_backs()
    _note_hooks()
    only = sa.text("event IS NOT NULL")
    op.create_index(
        "actions_on_events",
        "actions",
        ["small_app_id", "event"],
        sqlite_where=only,
        postgresql_where=only,
    )
    op.create_index("actions_look_back", "actions", ["look_back_s"])


def _note_look_backs() -> None:
    """Store the longest look-back of each stored plan."""
    connection = op.get_bind()
    actions = sa.table("actions", sa.column("uid"), sa.column("plan"), sa.column("look_back_s"))
    every = sa.select(actions.c.uid, actions.c.plan).order_by(actions.c.uid).limit(BATCH)
    rows = connection.execute(every).all()
    while rows:
        changes = [{"its_uid": row.uid, "its_span": _look_back_s(row.plan)} for row in rows]
        connection.execute(
            sa.update(actions)
            .where(actions.c.uid == sa.bindparam("its_uid"))
            .values(look_back_s=sa.bindparam("its_span")),
            changes,
        )
        rows = connection.execute(every.where(actions.c.uid > rows[-1].uid)).all()


def _note_hooks() -> None:
    """Write the hooks of stored documents into their plans: 0.1.0 did not call them."""
    connection = op.get_bind()
    actions = sa.table("actions", *map(sa.column, ("uid", "revision", "document", "plan")))
    revisions = sa.table("revisions", *map(sa.column, ("action_uid", "number", "plan")))
    with_hooks = actions.c.document.like('%"hooks"%')
    for row in connection.execute(sa.select(actions).where(with_hooks)).all():
        plan = _with_hooks(row.document, row.plan)
        if plan is None:
            continue
        connection.execute(sa.update(actions).where(actions.c.uid == row.uid).values(plan=plan))
        connection.execute(
            sa.update(revisions)
            .where(revisions.c.action_uid == row.uid, revisions.c.number == row.revision)
            .values(plan=plan)
        )


def _with_hooks(document: str, plan: str) -> str | None:
    try:
        hooks, planned = json.loads(document)["hooks"], json.loads(plan)
        targets = {
            key: [
                {"kind": kind, "to": to} for hook in hooks.get(key, ()) for kind, to in hook.items()
            ]
            for key in ("on_success", "on_failure")
        }
        after = hooks.get("alert_after")
        # The release writes it without blanks.
        text = {**planned, "hooks": {**targets, "alert_after": after}}
        return json.dumps(text, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, KeyError, TypeError, AttributeError):
        # Broken by hand; the repair writes the hooks too.
        return None


def _look_back_s(plan: str) -> int:
    span = TypeAdapter(timedelta)
    try:
        spans = [span.validate_python(one["look_back"]) for one in json.loads(plan)["triggers"]]
        return max((int(one.total_seconds()) for one in spans), default=0)
    except (ValueError, KeyError, TypeError):
        # Broken by hand; the repair writes the span too.
        return 0


def _index_overdue() -> None:
    only = sa.text(
        "state IN ('pending', 'queued') AND waiting_for IS NULL AND first_started_at IS NULL"
    )
    op.create_index(
        "operations_overdue",
        "operations",
        ["recorded_at"],
        sqlite_where=only,
        postgresql_where=only,
    )


def _create_backfills() -> None:
    op.create_table(
        "backfills",
        sa.Column("id", HyphenatedUuid(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("action_uid", HyphenatedUuid(), nullable=False),
        _at("since", optional=False),
        _at("until", optional=False),
        _text("mode"),
        _at("cursor", optional=False),
        sa.Column("pace", sa.Integer(), nullable=True),
        _text("state"),
        _text("actor"),
        _count("attempt", "1"),
        _at("not_before", optional=False),
        _count("recorded"),
        _count("repeated"),
        _count("passed_over"),
        _at("requested_at", optional=False),
        _at("finished_at"),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('active', 'done', 'cancelled', 'failed')",
            name=op.f("backfills_state_check"),
        ),
        sa.CheckConstraint(
            "mode IN ('missing', 'failed', 'all')", name=op.f("backfills_mode_check")
        ),
        sa.CheckConstraint("pace >= 1", name=op.f("backfills_pace_check")),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("backfills_small_app_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("backfills_action_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("backfills_pkey")),
    )
    only = sa.text("state = 'active'")
    op.create_index(
        "backfills_to_work_off",
        "backfills",
        ["not_before"],
        sqlite_where=only,
        postgresql_where=only,
    )
    op.create_index("backfills_of_action", "backfills", ["action_uid", "requested_at"])


def _create_notices() -> None:
    op.create_table(
        "notices",
        sa.Column("id", HyphenatedUuid(), nullable=False),
        sa.Column("small_app_id", sa.Integer(), nullable=False),
        sa.Column("action_uid", HyphenatedUuid(), nullable=True),
        sa.Column("operation_id", HyphenatedUuid(), nullable=True),
        _text("kind"),
        sa.Column("target", sa.JSON(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        _text("state"),
        _count("tries"),
        _at("not_before", optional=False),
        _at("created_at", optional=False),
        _at("finished_at"),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('success', 'failure', 'alert', 'recovered', 'overdue', 'seen')",
            name=op.f("notices_kind_check"),
        ),
        sa.CheckConstraint("state IN ('owed', 'done', 'failed')", name=op.f("notices_state_check")),
        sa.ForeignKeyConstraint(
            ["small_app_id"], ["small_apps.id"], name=op.f("notices_small_app_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["action_uid"], ["actions.uid"], name=op.f("notices_action_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("notices_pkey")),
    )
    only = sa.text("state = 'owed'")
    op.create_index(
        "notices_owed", "notices", ["not_before"], sqlite_where=only, postgresql_where=only
    )
    op.create_index("notices_of_operation", "notices", ["operation_id"])
    op.create_index("notices_finished", "notices", ["finished_at"])
