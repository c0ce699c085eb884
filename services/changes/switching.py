"""Pause and resume actions."""

from uuid import UUID

from models.action.health import NOTHING_TO_COME
from models.errors import InvalidDocument, NotFound, Refused
from models.sql import read_clock
from models.store.actions.deletion import owned
from models.store.tenants.closing import closing
from runtime.database import reading
from scheduler import changes
from scheduler.changes import editing
from scheduler.changes.validation import ChangeContext
from scheduler.occurrence import next_occurrences
from services.changes import change_of
from services.changes.deleting import Owner, nothing_of
from services.changes.result import Change, Changes
from services.installation import Installation
from services.verbs import OPERATE, Verb


@Verb("pause_action", "POST /api/actions/{action=name}:pause", OPERATE)
def pause(installation: Installation, name: str, expects: int | None = None) -> Change:
    """Pause an action.

    Raises Outdated if it is not at the revision `expects`.
    """
    return _switch(installation, name, expects, active=False)


@Verb("resume_action", "POST /api/actions/{action=name}:resume", OPERATE)
def resume(installation: Installation, name: str, expects: int | None = None) -> Change:
    """Resume an action.

    Raises Outdated if it is not at the revision `expects`.
    """
    return _switch(installation, name, expects, active=True)


@Verb("pause_actions", "POST /api/actions:pause", OPERATE)
def pause_all(installation: Installation, owner: Owner) -> Changes:
    """Pause all actions of an owner; a refused one does not stop the others."""
    return _switch_all(installation, owner, active=False)


@Verb("resume_actions", "POST /api/actions:resume", OPERATE)
def resume_all(installation: Installation, owner: Owner) -> Changes:
    """Resume all actions of an owner; a refused one does not stop the others."""
    return _switch_all(installation, owner, active=True)


def _switch_all(installation: Installation, owner: str, *, active: bool) -> Changes:
    with reading(installation.engine) as connection:
        found = owned(connection, installation.small_app.id, owner)
    if not found:
        raise nothing_of(owner)

    def switched(uid: UUID, name: str) -> Change:
        try:
            return _switch(installation, str(uid), None, active=active)
        except (InvalidDocument, NotFound, Refused) as error:
            return Change(
                uid=uid, name=name, change="unchanged", revision=0, active=not active,
                refused=str(error),
            )  # fmt: skip

    return Changes(tuple(switched(uid, name) for uid, name in found.items()))


def _switch(installation: Installation, name: str, expects: int | None, *, active: bool) -> Change:
    ends: list[str] = []

    def switched(uid: UUID, author: ChangeContext) -> changes.Change:
        done = editing.set_active(installation.engine, uid, active=active, author=author)
        if active and not _has_more(installation, done, author):
            ends.append(NOTHING_TO_COME)
        return done

    return change_of(installation, name, expects, switched).model_copy(
        update={"warnings": tuple(ends)}
    )


def _has_more(installation: Installation, done: changes.Change, author: ChangeContext) -> bool:
    """Return whether an action may be due again."""
    if done.plan.on_event is not None or done.plan.from_end:
        return True
    with reading(installation.engine) as connection:
        plan = closing(connection, done.plan, author.small_app.id)
        return bool(next_occurrences(plan, done.uid, read_clock(connection), 1))
