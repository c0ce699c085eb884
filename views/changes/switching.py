"""Pause and resume actions."""

from uuid import UUID

from pydantic import Field

from models.action.health import NOTHING_TO_COME
from models.errors import InvalidDocument, NotFound, Refused
from models.sql import read_clock
from models.store.actions.deletion import of_owner
from models.store.tenants.closing import closing
from runtime.database import reading
from scheduler.changes import editing
from scheduler.changes.validation import ChangeContext
from scheduler.occurrence import next_occurrences
from views.changes import Changed
from views.changes.deleting import Owner, nothing_of
from views.finding import app_of, find
from views.installation import Installation
from views.verbs import OPERATE, Verb
from views.view import Listing, View

ALL = 10_000_000


class Switched(Changed):
    """An action that was paused or resumed."""

    active: bool = Field(description="Whether it is enabled now.")


class NotSwitched(View):
    """An action that could not be paused or resumed."""

    uid: UUID = Field(description="Uid of the action.")
    refused: str = Field(description="Why.")


class SwitchedAll(Listing[Switched | NotSwitched]):
    """The actions of an owner, paused or resumed."""

    @property
    def exit_code(self) -> int:
        """1 if some were refused."""
        return int(bool(self.complaints))


@Verb("pause_action", "POST /api/actions/{action=name}:pause", OPERATE)
def pause(installation: Installation, name: str, expects: int | None = None) -> Switched:
    """Pause an action.

    Raises Outdated if it is not at the revision `expects`.
    """
    return _switch(installation, name, expects, active=False)


@Verb("resume_action", "POST /api/actions/{action=name}:resume", OPERATE)
def resume(installation: Installation, name: str, expects: int | None = None) -> Switched:
    """Resume an action.

    Raises Outdated if it is not at the revision `expects`.
    """
    return _switch(installation, name, expects, active=True)


@Verb("pause_actions", "POST /api/actions:pause", OPERATE)
def pause_all(installation: Installation, owner: Owner) -> SwitchedAll:
    """Pause all actions of an owner; a refused one does not stop the others."""
    return _switch_all(installation, owner, active=False)


@Verb("resume_actions", "POST /api/actions:resume", OPERATE)
def resume_all(installation: Installation, owner: Owner) -> SwitchedAll:
    """Resume all actions of an owner; a refused one does not stop the others."""
    return _switch_all(installation, owner, active=True)


def _switch(
    installation: Installation, name: str, expects: int | None, *, active: bool
) -> Switched:
    installation.publish()
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        author = installation.author_in(app_of(connection, installation, row), expects)
    return _switched(installation, row["uid"], author, active=active)


def _switch_all(installation: Installation, owner: str, *, active: bool) -> SwitchedAll:
    installation.publish()
    with reading(installation.engine) as connection:
        uids = of_owner(connection, installation.small_app.id, owner, ALL)
    if not uids:
        raise nothing_of(owner)
    author = installation.author

    def switched(uid: UUID) -> Switched | NotSwitched:
        try:
            return _switched(installation, uid, author, active=active)
        except (InvalidDocument, NotFound, Refused) as error:
            return NotSwitched(uid=uid, refused=str(error))

    return SwitchedAll(tuple(switched(uid) for uid in uids))


def _switched(
    installation: Installation, uid: UUID, author: ChangeContext, *, active: bool
) -> Switched:
    done = editing.set_active(installation.engine, uid, active=active, author=author)
    found: tuple[str, ...] = ()
    if active and done.plan.on_event is None:
        with reading(installation.engine) as connection:
            now = read_clock(connection)
            plan = closing(connection, done.plan, installation.small_app.id)
        if not (plan.from_end or next_occurrences(plan, uid, now, 1)):
            found = (NOTHING_TO_COME,)
    return Switched.of(done, warnings=found, active=active)
