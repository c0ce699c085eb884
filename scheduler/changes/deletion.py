"""Delete actions: one, all of an owner, all of a small app.

Many are deleted in batches: short transactions do not delay ticks, and a repeated call continues
after a kill.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.errors import NotFound, Refused
from models.sql import parts_of, read_clock
from models.store import actions, audit, tenants
from models.store.actions import cursors, deletion
from models.store.operations import backfills, refusals
from runtime.database import give_way
from runtime.db_retry import in_transaction
from scheduler.changes.revisions import decide_until, not_ahead
from scheduler.changes.validation import ChangeContext, check_revision
from scheduler.tz_release import hold_release

AT_ONCE = 200
MOST_IN_VAIN = 3
MOST_NAMED = 3
GONE = "the action was deleted"


@dataclass(frozen=True, slots=True)
class Deleted:
    """The names of deleted actions, and the number of their cancelled operations."""

    names: tuple[str, ...] = ()
    cancelled: int = 0

    def __add__(self, other: "Deleted") -> "Deleted":
        return Deleted(self.names + other.names, self.cancelled + other.cancelled)


def delete(engine: sa.Engine, uid: UUID, author: ChangeContext) -> int:
    """Delete an action softly; return how many unstarted operations were cancelled.

    Occurrences due before are recorded and cancelled as well; running operations go on. Raises
    Refused if another action depends on it.
    """

    def without_dependants(connection: sa.Connection) -> Deleted:
        _check_dependants(connection, uid)
        return _delete(connection, [uid], author)

    deleted = in_transaction(engine, without_dependants)
    if not deleted.names:
        raise NotFound(f"action {uid} was deleted")
    return deleted.cancelled


def _check_dependants(connection: sa.Connection, uid: UUID) -> None:
    row = cursors.read(connection, uid)
    if row is None or row.deleted_at is not None:
        return
    found = actions.dependants(connection, row.small_app_id, row.name, limit=MOST_NAMED)
    if found:
        names = ", ".join(repr(one.name) for one in found)
        raise Refused(
            f"{row.name!r} cannot be deleted: {names} would never be due again; change or delete "
            "what depends on it first"
        )


def _delete(connection: sa.Connection, uids: Sequence[UUID], author: ChangeContext) -> Deleted:
    """Delete existing actions among `uids`, with their backfills, in the caller's transaction."""
    hold_release(connection)
    # Before the actions: a backfill worker locks its backfill first, then the action.
    backfills.cancel_active(connection, uids, GONE)
    rows = [row for row in cursors.lock_all(connection, uids) if row.deleted_at is None]
    now = read_clock(connection)
    for locked in rows:
        check_revision(locked, author)
        row = not_ahead(connection, locked, now)
        if row.set_aside is None:
            decide_until(connection, row, now)
    names = {row.action_uid: row.name for row in rows}
    if not names:
        return Deleted()
    deletion.mark_deleted(connection, list(names), now)
    audit.write(
        connection,
        small_app_id=author.small_app.id,
        actor=author.name,
        verb="action.delete",
        objects={str(uid): {"name": name} for uid, name in names.items()},
    )
    alerts = settings_in_use().alert
    return Deleted(
        tuple(names.values()), refusals.end_deleted(connection, list(names), GONE, alerts)
    )


def delete_all(engine: sa.Engine, author: ChangeContext, owner: str | None = None) -> Deleted:
    """Delete all actions of the author's small app or of one owner, also new ones."""
    app = author.small_app
    some = partial(deletion.of_owner, small_app_id=app.id, owner=owner, limit=AT_ONCE)
    deleted, is_done = _delete_while(engine, some, author)
    if not is_done:
        raise Refused(f"some actions of {app.name!r} cannot be deleted; try again")
    return deleted


def delete_each(engine: sa.Engine, uids: Sequence[UUID], author: ChangeContext) -> Deleted:
    """Delete these actions; one that is deleted already is left out."""
    deleted = Deleted()
    for part in parts_of(uids, AT_ONCE):
        some, _ = _delete_while(engine, partial(deletion.existing, uids=part), author)
        deleted += some
    return deleted


def _delete_while(
    engine: sa.Engine, some: Callable[[sa.Connection], Sequence[UUID]], author: ChangeContext
) -> tuple[Deleted, bool]:
    """Delete what `some` finds until it finds nothing; False if it keeps finding what stays."""

    def delete_some(connection: sa.Connection) -> Deleted | None:
        uids = some(connection)
        return _delete(connection, uids, author) if uids else None

    deleted, in_vain = Deleted(), 0
    while in_vain < MOST_IN_VAIN:
        done = in_transaction(engine, delete_some)
        if done is None:
            return deleted, True
        give_way(engine)
        deleted += done
        # Another process may have deleted them meanwhile.
        in_vain = 0 if done.names else in_vain + 1
    return deleted, False


def delete_app(engine: sa.Engine, author: ChangeContext) -> Deleted:
    """Delete the author's small app with all of its actions; history, people and data stay.

    The app is deleted last: after a kill it still exists, with fewer actions.
    """
    app = author.small_app
    deleted = Deleted()
    for _ in range(MOST_IN_VAIN):
        deleted += delete_all(engine, author)
        with engine.begin() as connection:
            if tenants.mark_deleted(connection, app.id):
                details = {"actions": len(deleted.names), "cancelled": deleted.cancelled}
                audit.write(
                    connection,
                    small_app_id=app.id,
                    actor=author.name,
                    verb="app.delete",
                    objects={app.name: details},
                )
                return deleted
    raise Refused(f"actions are being added to {app.name!r}; try again")
