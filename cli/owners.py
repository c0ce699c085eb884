"""All actions of an owner at once: an application deletes, pauses and resumes what it made."""

from typing import Any
from uuid import UUID

import typer

from broker.app import configure
from cli.invocation import Invocation
from cli.output import print_error, print_json, print_line
from models.errors import NotFound, Refused
from models.store.actions import deletion
from runtime.database import reading
from scheduler.changes.change import Change, set_active
from scheduler.changes.deletion import delete_all

# Names that are printed; `--json` has all of them.
MOST_NAMED = 100
ALL = 10_000_000


def one_of(action: str | None, owner: str | None) -> None:
    """Raise Refused unless exactly one of an action and an owner is named."""
    if (action is None) == (owner is None):
        raise Refused("name either an action or --owner OWNER")


def delete(invocation: Invocation, owner: str) -> None:
    """Delete all actions of an owner, and print their names. Raises NotFound for none."""
    deleted = delete_all(invocation.engine, invocation.remover, owner)
    if not deleted.names:
        raise _nothing(owner)
    names = sorted(deleted.names)
    if invocation.as_json:
        print_json({"owner": owner, "deleted": names, "cancelled": deleted.cancelled})
        return
    print_line(f"deleted {len(names)} actions of {owner}, {deleted.cancelled} operations cancelled")
    for name in names[:MOST_NAMED]:
        print_line(f"  {name}")
    if len(names) > MOST_NAMED:
        print_line(f"  … and {len(names) - MOST_NAMED} more")


def switch(invocation: Invocation, owner: str, *, active: bool) -> None:
    """Pause or resume all actions of an owner; exit 1 when some could not be."""
    configure(invocation.settings)
    author = invocation.author
    with reading(invocation.engine) as connection:
        uids = deletion.of_owner(connection, author.small_app.id, owner, ALL)
    if not uids:
        raise _nothing(owner)
    shown = [_switched(invocation, uid, active=active) for uid in uids]
    changed = [one for one in shown if one.get("change") == Change.CHANGED]
    word = "resumed" if active else "paused"
    if invocation.as_json:
        print_json(shown)
    else:
        print_line(f"{word} {len(changed)} of {len(shown)} actions of {owner}")
    for one in shown:
        if "refused" in one:
            print_error(one["refused"])
    raise typer.Exit(int(any("refused" in one for one in shown)))


def _switched(invocation: Invocation, uid: UUID, *, active: bool) -> dict[str, Any]:
    try:
        done = set_active(invocation.engine, uid, active=active, author=invocation.author)
    except (NotFound, Refused) as error:
        # The others are not to stay as they are for it.
        return {"uid": uid, "refused": str(error)}
    return {"uid": uid, "name": done.name, "change": done.change, "revision": done.revision}


def _nothing(owner: str) -> NotFound:
    return NotFound(f"no action has the owner {owner!r}; see `minutehand action list`")
