"""Make the dependants of a renamed action follow its name."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.action.plan import Plan
from models.action.rule import RuleModel
from models.action.when import WhenModel
from models.errors import Refused
from models.parsing import Reading
from models.store import actions
from models.store.actions import cursors
from models.store.actions.cursors import Start
from models.stored import document_in
from scheduler.changes.revisions import close_revision, open_revisions, restated, state_of
from scheduler.changes.validation import ChangeContext, Stored
from scheduler.forecast import on_its_way_since
from scheduler.record import Recorded

# Each is decided by itself, in the transaction of the rename.
MOST_FOLLOWING = 500


def follow_name(
    connection: sa.Connection, row: Stored, name: str, author: ChangeContext, now: datetime
) -> Recorded:
    """Make the dependants of an action that gets the name `name` follow it.

    Each gets a new revision with that name, and no end on its way is lost. Raises Refused if there
    are too many for one transaction.
    """
    recorded = Recorded()
    found = actions.dependants(connection, row.small_app_id, row.name, limit=MOST_FOLLOWING + 1)
    if len(found) > MOST_FOLLOWING:
        raise Refused(
            f"more than {MOST_FOLLOWING} actions depend on {row.name!r}; add an action of the new "
            "name, and apply the documents of the others with it"
        )
    uids = sorted(one.uid for one in found)
    for one in cursors.lock_all(connection, uids) if uids else ():
        recorded += _follow(connection, one, name, author, now)
    return recorded


def _follow(
    connection: sa.Connection, row: Stored, name: str, author: ChangeContext, now: datetime
) -> Recorded:
    plan = row.plan
    is_gone = row.deleted_at is not None or row.quarantined is not None
    if is_gone or not isinstance(plan, Plan):
        return Recorded()
    when = _renamed(document_in(row.document)["when"], name)
    renamed = replace(plan, rules=_resolved(when))
    following = close_revision(
        connection, row, restated(row, renamed, author.name, author.steps, when=when), now
    )
    open_revisions(connection, [following], now)
    if plan.active:
        on_its_way = on_its_way_since(connection, state_of(row, plan), now)
        start = Start(min(now, on_its_way))
        cursors.restart(connection, {row.action_uid: start}, now)
    return following.recorded


def _renamed(when: dict[str, Any], name: str) -> dict[str, Any]:
    (key,) = {"on", "after"} & when.keys()
    return {**when, key: {**when[key], "action": name}}


def _resolved(when: dict[str, Any]) -> tuple[RuleModel, ...]:
    return WhenModel.model_validate(when, context=Reading(tolerant=True)).resolved
