"""Changes of actions, each in one transaction, which a dry run rolls back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_reserved
from models.action.document import ScheduledActionModel
from models.action.plan import NOTHING_PLANNED, Plan
from models.store import audit, tenants
from models.store.operations.reserve import Message
from runtime.db_retry import in_transaction
from scheduler.changes.validation import ChangeContext, Stored
from scheduler.tz_release import hold_release

T = TypeVar("T")


class Done(StrEnum):
    """What a change did to an action."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """An action after a change, and what the change did; `before` is its row until then."""

    uid: UUID
    name: str
    change: Done
    revision: int
    plan: Plan = NOTHING_PLANNED
    # None unless its document was validated.
    model: ScheduledActionModel | None = None
    before: Stored | None = None
    # The occurrences of the rule before that were sent, and how many were missed.
    sent: tuple[datetime, ...] = ()
    missed: int = 0
    # How many operations that had not started were cancelled.
    cancelled: int = 0

    @property
    def active(self) -> bool:
        """Whether it is enabled now."""
        return self.plan.active

    @property
    def old_name(self) -> str | None:
        """Its name until now, if that was another."""
        return None if self.before is None or self.before.name == self.name else self.before.name

    @property
    def switched(self) -> str | None:
        """`paused` or `resumed` if the change did that to an action that was there before."""
        if self.before is None or self.before.active == self.active:
            return None
        return "resumed" if self.active else "paused"

    @property
    def plan_before(self) -> Plan | None:
        """The plan until now; None if there was none that could be decided by."""
        if self.before is None or self.before.quarantined is not None:
            return None
        return self.before.plan if isinstance(self.before.plan, Plan) else None


def in_run(
    engine: sa.Engine,
    act: Callable[[sa.Connection], tuple[T, Sequence[Message]]],
    *,
    dry_run: bool = False,
) -> T:
    """Return what a change did in a transaction of its own, then send what it made due.

    A dry run is rolled back, and sends nothing.
    """
    result, messages = in_transaction(engine, act, _rolled_back if dry_run else sa.Engine.begin)
    if not dry_run:
        send_reserved(engine, messages)
    return result


@contextmanager
def _rolled_back(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def keep_out_others(connection: sa.Connection, small_app_id: int) -> None:
    """Let no other change of the small app's actions come between, until the transaction ends.

    Names, dependencies and revisions that are read from now on stay as they are. Raises NotFound
    for a deleted small app, and OtherRelease.
    """
    hold_release(connection)
    tenants.hold(connection, small_app_id)


def audit_changes(
    connection: sa.Connection, author: ChangeContext, verb: str, changed: Mapping[UUID, str]
) -> None:
    """Write that the author has done `verb` to these actions, by uid with their names."""
    audit.write(
        connection,
        small_app_id=author.small_app.id,
        actor=author.name,
        verb=f"action.{verb}",
        objects={str(uid): {"name": name} for uid, name in changed.items()},
    )
