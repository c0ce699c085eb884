"""Delete actions: one, many, all of a small app.

Many are deleted in batches: short transactions do not delay ticks, and a repeated call continues
after a kill.
"""

from collections.abc import Sequence
from uuid import UUID

import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.errors import NotFound
from models.sql import parts_of, read_clock
from models.store import audit, tenants
from models.store.actions import cursors, deletion
from models.store.operations import backfills, refusals
from runtime.database import give_way, reading
from scheduler.changes import Change, Done, audit_changes, in_run, keep_out_others
from scheduler.changes.batch import check_dependants
from scheduler.changes.revisions import by_right_clock, decide_until
from scheduler.changes.validation import ChangeContext, check_revision

AT_ONCE = 200
GONE = "the action was deleted"


def delete(engine: sa.Engine, uid: UUID, author: ChangeContext, *, dry_run: bool = False) -> Change:
    """Delete an action softly.

    Occurrences due before are recorded and cancelled as well; running operations go on. Raises
    Refused if another action depends on it.
    """

    def without_dependants(connection: sa.Connection) -> tuple[list[Change], tuple[()]]:
        keep_out_others(connection, author.small_app.id)
        made = delete_locked(connection, [uid], author)
        for one in made:
            check_dependants(connection, author.small_app.id, one.name, "deleted")
        return made, ()

    deleted = in_run(engine, without_dependants, dry_run=dry_run)
    if not deleted:
        raise NotFound(f"action {uid} was deleted")
    return deleted[0]


def delete_locked(
    connection: sa.Connection, uids: Sequence[UUID], author: ChangeContext
) -> list[Change]:
    """Delete existing actions among `uids`, with their backfills, in the caller's transaction.

    Other changes of the small app are kept out.
    """
    if not uids:
        return []
    # Before the actions: a backfill worker locks its backfill first, then the action.
    backfills.cancel_active(connection, uids, GONE)
    rows = [row for row in cursors.lock_all(connection, uids) if row.deleted_at is None]
    now = read_clock(connection)
    for locked in rows:
        check_revision(locked, author)
        decide_until(connection, by_right_clock(connection, locked, now), now)
    names = {row.action_uid: row.name for row in rows}
    if not names:
        return []
    deletion.mark_deleted(connection, list(names), now)
    audit_changes(connection, author, "delete", names)
    alerts = settings_in_use().alert
    cancelled = refusals.end_deleted(connection, list(names), GONE, alerts)
    return [
        Change(
            row.action_uid,
            row.name,
            Done.DELETED,
            row.revision,
            cancelled=cancelled[row.action_uid],
        )
        for row in sorted(rows, key=lambda row: str(row.name))
    ]


def delete_many(
    engine: sa.Engine, uids: Sequence[UUID], author: ChangeContext, *, dry_run: bool = False
) -> list[Change]:
    """Delete those of these actions of the author's small app that still exist."""
    deleted: list[Change] = []
    for some in parts_of(uids, AT_ONCE):

        def gone(
            connection: sa.Connection, some: Sequence[UUID] = some
        ) -> tuple[list[Change], tuple[()]]:
            keep_out_others(connection, author.small_app.id)
            return delete_locked(connection, some, author), ()

        deleted += in_run(engine, gone, dry_run=dry_run)
        give_way(engine)
    return deleted


def delete_app(engine: sa.Engine, author: ChangeContext) -> list[Change]:
    """Delete the author's small app with all of its actions; history, people and data stay.

    The app is deleted last: after a kill it still exists, with fewer actions.
    """
    app = author.small_app
    with reading(engine) as connection:
        uids = list(deletion.owned(connection, app.id))
    before = delete_many(engine, uids, author)

    def close(connection: sa.Connection) -> tuple[list[Change], tuple[()]]:
        keep_out_others(connection, app.id)
        # Those that came in between.
        late = list(deletion.owned(connection, app.id))
        deleted = [*before, *delete_locked(connection, late, author)]
        tenants.mark_deleted(connection, app.id)
        details = {"actions": len(deleted), "cancelled": cancelled_by(deleted)}
        audit.write(
            connection,
            small_app_id=app.id,
            actor=author.name,
            verb="app.delete",
            objects={app.name: details},
        )
        return deleted, ()

    return in_run(engine, close)


def cancelled_by(deleted: Sequence[Change]) -> int:
    """Return how many operations deletions cancelled."""
    return sum(one.cancelled for one in deleted)
