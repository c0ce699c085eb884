"""Notices: enqueued in the transaction that records what they report, delivered at least once.

A message is (id, try), and one conditional update begins a try.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.notices import NoticeKind, Target, backoff, notice_id
from models.sql import database_now, dicts, in_many, in_unindexed, insert_ignoring
from models.store.conditions import IS_OWED
from models.store.operations import RESERVED_FOR
from models.store.operations.reserve import reserve_rows
from models.tables import notices, small_apps
from models.trust import TRUSTED, Trust

# Longer than a try may take; then another one may begin.
TRY_FOR = timedelta(minutes=5)
SENT_FOR = timedelta(minutes=5)
LONGEST_WAIT = timedelta(days=1)
# A tick sends each minute what is owed, unless the broker is down, or the daemon.
LEFT_FOR = timedelta(minutes=2)
OVER = "over before it could be delivered"
_TRUST = (
    sa.select(small_apps.c.trust)
    .where(small_apps.c.id == notices.c.small_app_id)
    .scalar_subquery()
    .label("trust")
)
_IS_STILL_OWED = in_unindexed(notices.c.state, {"owed"})


@dataclass(frozen=True, slots=True)
class Owed:
    """A notice to send now, and the number of its tries so far."""

    id: UUID
    tries: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice in the try number `tries`, which this worker delivers."""

    id: UUID
    tries: int
    kind: NoticeKind
    target: Target
    payload: dict[str, Any]
    created_at: datetime
    # The small app that it is about, and how far that is trusted; None for the installation.
    small_app_id: int | None = None
    trust: Trust = TRUSTED


@dataclass(frozen=True, slots=True)
class Origin:
    """What a notice is about, and the earliest instant to send it; None for at once.

    A notice to the admins about the installation has neither a small app nor an action.
    """

    small_app_id: int | None = None
    action_uid: UUID | None = None
    operation_id: UUID | None = None
    finding_id: UUID | None = None
    not_before: datetime | None = None


def enqueue(
    connection: sa.Connection,
    origin: Origin,
    end: object,
    targets: Collection[Target],
    payload: dict[str, Any],
) -> list[Owed]:
    """Enqueue a notice of the payload's kind for each target; return those to send now, reserved.

    `end` distinguishes the ends of what it is about. An existing notice is left alone, so that two
    daemons enqueue it once.
    """
    earliest, kind = origin.not_before, payload["kind"]
    shown = {key: one for key, one in payload.items() if key != "small_app_id"}
    about = f"{origin.finding_id or origin.operation_id} | {origin.action_uid}"
    rows = [
        {
            "id": notice_id(about, str(end), kind, target),
            "small_app_id": origin.small_app_id,
            "action_uid": origin.action_uid,
            "operation_id": origin.operation_id,
            "finding_id": origin.finding_id,
            "kind": kind,
            "target": asdict(target),
            "payload": shown,
            "state": "owed",
        }
        for target in targets
    ]
    if not rows:
        return []
    first = insert_ignoring(connection, notices).values(
        not_before=database_now(RESERVED_FOR) if earliest is None else earliest,
        created_at=database_now(),
    )
    connection.execute(first, rows)
    return [Owed(row["id"], 0) for row in rows] if earliest is None else []


def send_soon(connection: sa.Connection, owed: Sequence[Owed]) -> None:
    """Release the reservation: the next sweep sends them."""
    _change(connection, owed, {"not_before": database_now()})


def mark_sent(connection: sa.Connection, owed: Sequence[Owed]) -> None:
    """Record that the broker accepted them: they are not sent again for five minutes."""
    _change(connection, owed, {"not_before": database_now(SENT_FOR)})


def _change(connection: sa.Connection, owed: Sequence[Owed], values: dict[str, Any]) -> None:
    if owed:
        changed = sa.update(notices).where(
            notices.c.id == sa.bindparam("its_id"),
            notices.c.tries == sa.bindparam("its_tries"),
            _IS_STILL_OWED,
        )
        rows = [{"its_id": one.id, "its_tries": one.tries} for one in owed]
        connection.execute(changed.values(values), rows)


def reserve(connection: sa.Connection, limit: int, by: datetime) -> list[Owed]:
    """Reserve up to `limit` notices for 30 s, oldest first, that were sendable at `by`."""
    shown = (notices.c.id, notices.c.tries)
    return [Owed(*row) for row in reserve_rows(connection, shown, [IS_OWED], limit, by)]


def sendable_anywhere(connection: sa.Connection, limit: int = 100) -> Sequence[Owed]:
    """Return those that a process delivers by itself: of the installation, or sent by no tick."""
    is_left = notices.c.not_before <= database_now(-LEFT_FOR)
    is_sendable = notices.c.not_before <= database_now()
    its = (IS_OWED, is_left | (is_sendable & notices.c.action_uid.is_(None)))
    query = sa.select(notices.c.id, notices.c.tries).where(*its).order_by(notices.c.not_before)
    return [Owed(*row) for row in connection.execute(query.limit(limit))]


def begin(connection: sa.Connection, id: UUID, number: int) -> Notice | None:
    """Begin the try of that number; None if it was begun before or the notice is not pending."""
    begun = (
        sa.update(notices)
        .where(notices.c.id == id, notices.c.tries == number - 1, _IS_STILL_OWED)
        .values(tries=number, not_before=database_now(TRY_FOR))
        .returning(notices, _TRUST)
    )
    row = connection.execute(begun).one_or_none()
    if row is None:
        return None
    its_app = (row.small_app_id, row.trust)
    kind, target = NoticeKind(row.kind), Target(**row.target)
    return Notice(row.id, row.tries, kind, target, row.payload, row.created_at, *its_app)


def finish(connection: sa.Connection, notice: Notice) -> None:
    """Record that the notice was delivered."""
    _write(connection, notice, _ended("done"))


def put_off(connection: sa.Connection, notice: Notice, error: str) -> None:
    """Schedule the next try after the notice's backoff."""
    later = database_now(backoff(notice.tries))
    _write(connection, notice, {"not_before": later, "error": error})


def give_up(connection: sa.Connection, notice: Notice, error: str) -> None:
    """Record that the notice cannot be delivered, and why."""
    _write(connection, notice, _ended("failed", error))


def _ended(state: str, error: str | None = None) -> dict[str, Any]:
    return {"state": state, "finished_at": database_now(), "error": error}


def _write(connection: sa.Connection, notice: Notice, values: dict[str, Any]) -> None:
    # A try that took too long may have a successor, whose result counts.
    fenced = (notices.c.id == notice.id, notices.c.tries == notice.tries, _IS_STILL_OWED)
    connection.execute(sa.update(notices).where(*fenced).values(values))


def withdraw(
    connection: sa.Connection, finding_id: UUID, kind: NoticeKind, *, is_quiet: bool
) -> set[Target]:
    """End a finding's notices of that kind that wait: the opposite holds now.

    Delivered later, one that was tried would look like the newer one. In quiet hours, those that
    wait for their end were told to nobody: returns their targets, which need no notice of the
    opposite.
    """
    its = (notices.c.finding_id == finding_id, notices.c.kind == kind, IS_OWED)
    which = sa.true() if is_quiet else notices.c.tries > 0
    waiting = sa.update(notices).where(*its, notices.c.not_before > database_now(), which)
    ended = waiting.values(_ended("done", OVER)).returning(notices.c.tries, notices.c.target)
    return {Target(**row.target) for row in connection.execute(ended) if row.tries == 0}


def withdraw_start(connection: sa.Connection, operation_id: UUID) -> None:
    """End the pings of a run's start that are not delivered: a monitor would wait for its end."""
    kind = NoticeKind.RUN_STARTED
    its = (notices.c.operation_id == operation_id, notices.c.kind == kind, IS_OWED)
    connection.execute(sa.update(notices).where(*its).values(_ended("done", OVER)))


def of_operations(connection: sa.Connection, ids: Collection[UUID]) -> list[dict[str, Any]]:
    """Return the notices about these operations, oldest first."""
    query = sa.select(notices).where(in_many(connection, notices.c.operation_id, ids))
    return dicts(connection, query.order_by(notices.c.created_at, notices.c.id))
