"""Claim an operation by changing exactly one row, or return why it does not start."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import NOTHING_PLANNED, UnreadablePlan
from models.bulk_sql import given
from models.operation import UNSTARTED, AttemptKey, OperationState, new_secret
from models.sql import in_literals, in_many, in_unindexed
from models.store.conditions import IS_LIVE, ITS_REVISION
from models.store.notices import Origin, Owed
from models.store.notices.alerting import enqueue_start
from models.store.operations.end import Outcome, end
from models.store.operations.start_checks import (
    FOREIGN,
    TAKEN,
    NotClaimed,
    NotStarted,
    OperationFacts,
    check_start,
)
from models.store.operations.transitions import move
from models.store.pauses import is_paused
from models.tables import actions, operations, revisions, small_apps
from models.worker_kinds import WorkerKind
from runtime.sections import AlertSettings

# Takes the document and the earlier attempts' steps; returns the columns to write at the start.
Begin = Callable[[str, list[dict[str, Any]]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """An attempt that a worker asks for, with a random secret: asking twice is one claim."""

    id: UUID
    attempt: int
    worker: str
    secret: str = field(default_factory=new_secret)

    @property
    def key(self) -> AttemptKey:
        """The key of the attempt, once it is claimed."""
        return AttemptKey(self.id, self.attempt, self.secret)


@dataclass(frozen=True, kw_only=True)
class Claim(OperationFacts):
    """An attempt that this worker owns, what it runs, and the notices of its start to send."""

    key: AttemptKey
    owed: Sequence[Owed] = ()


def _nothing(_document: str, _steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {}


def claim(
    connection: sa.Connection,
    wanted: ClaimRequest,
    alerts: AlertSettings,
    worker_kind: WorkerKind | None = None,
    begin: Begin = _nothing,
    known: OperationFacts | None = None,
) -> Claim | NotStarted:
    """Start this attempt for its worker, or apply what keeps it from starting.

    Whoever may write to the broker can name any operation: one that workers of another kind than
    the worker's run is left as it is. `known` are the recorded facts of the attempt, if they were
    read in this transaction.

    The caller commits in any case: on a refusal, the transaction holds its consequences (skipped,
    waiting, a cancel requested of the running one). Raises sqlalchemy.exc.IntegrityError
    (operations_one_running) if another operation of the action starts at the same moment; the
    caller then tries again in a new transaction, by `runtime.db_retry.start`.
    """
    # Read anew if it moved between the reading and the start.
    for recorded in (known, None):
        facts = recorded or recorded_of(connection, wanted.id, wanted.attempt)
        if facts is None:
            return TAKEN
        if worker_kind not in {None, facts.worker_kind}:
            return FOREIGN
        if facts.is_held_by(wanted.secret):
            return Claim(**vars(facts), key=wanted.key)
        kept = check_start(connection, facts, alerts)
        found = kept or _begin(connection, facts, wanted, begin, alerts)
        if found is not None:
            return found
    return TAKEN


def _begin(
    connection: sa.Connection,
    recorded: OperationFacts,
    wanted: ClaimRequest,
    begin: Begin,
    alerts: AlertSettings,
) -> Claim | NotStarted | None:
    """Start an attempt that nothing keeps back, None if it moved; one with a broken plan fails."""
    shown = {}
    if recorded.broken is None:
        shown = begin(recorded.document, recorded.steps or [])
    if not _start(connection, wanted, shown):
        return None
    if recorded.broken is not None:
        fault = Outcome(OperationState.FAILED, recorded.broken, "broken plan", is_failure=True)
        return NotStarted(NotClaimed.BROKEN, end(connection, wanted.key, fault, alerts=alerts))
    return Claim(**vars(recorded), key=wanted.key, owed=_owe_start(connection, recorded))


def start_free(
    connection: sa.Connection, recorded: OperationFacts, wanted: ClaimRequest, shown: dict[str, Any]
) -> Claim | None:
    """Start an attempt that is free, by one statement; None if it has moved since it was read."""
    if not (recorded.is_free and _start(connection, wanted, shown)):
        return None
    return Claim(**vars(recorded), key=wanted.key)


def _owe_start(connection: sa.Connection, started: OperationFacts) -> Sequence[Owed]:
    """Enqueue the pings of the first start of an operation; return those to send now."""
    if started.first_started_at is not None or not started.pings_at_start:
        return ()
    origin = Origin(started.small_app_id, started.action_uid, started.id)
    return enqueue_start(connection, origin, started.app_name, started.plan)


# Its action is active.
IS_WANTED = sa.exists().where(actions.c.uid == operations.c.action_uid, IS_LIVE)


# The facts that are columns of its row, under the same names.
_FACTS = {one.name for one in fields(OperationFacts)} - {"attempt"}
_OWN = [one for one in operations.c if one.name in _FACTS]
_other = operations.alias("other")
_UNWANTED = sa.case(
    (IS_LIVE, None), (actions.c.deleted_at.is_not(None), "the action was deleted"), else_="paused"
).label("unwanted")


def _recorded(attempt: sa.ColumnElement[int]) -> sa.Select[Any]:
    running = (
        sa.select(_other.c.id)
        .where(_other.c.overlap_key == operations.c.overlap_key)
        .where(in_literals(_other.c.state, {OperationState.RUNNING}))
        .scalar_subquery()
    )
    query = sa.select(
        attempt.label("attempt"),
        *_OWN,
        operations.c.attempt.label("last_attempt"),
        operations.c.error.label("last_error"),
        small_apps.c.name.label("app_name"),
        small_apps.c.zone.label("app_zone"),
        small_apps.c.trust,
        _UNWANTED,
        running.label("running"),
        is_paused(operations.c).label("is_paused"),
        revisions.c.document,
        revisions.c.plan,
    )
    in_app = query.join(small_apps, small_apps.c.id == operations.c.small_app_id)
    in_app = in_app.outerjoin(actions, actions.c.uid == operations.c.action_uid)
    return in_app.join(revisions, ITS_REVISION)


_ITS_ID = sa.bindparam("its_id", type_=operations.c.id.type)
_ITS_ATTEMPT = sa.bindparam("its_attempt", type_=operations.c.attempt.type)
_RECORDED = _recorded(_ITS_ATTEMPT).where(operations.c.id == _ITS_ID)


def recorded_of(
    connection: sa.Connection, operation_id: UUID, attempt: int
) -> OperationFacts | None:
    """Return the recorded facts about an operation, None if the id is unknown."""
    asked = {"its_id": operation_id, "its_attempt": attempt}
    row = connection.execute(_RECORDED, asked).one_or_none()
    return None if row is None else _read(row)


def _read(row: sa.Row[Any]) -> OperationFacts:
    if isinstance(row.plan, UnreadablePlan):
        # It waits like any other, and fails at its start.
        return OperationFacts(**{**row._mapping, "plan": NOTHING_PLANNED, "broken": row.plan.text})
    return OperationFacts(**row._mapping)


_START = move(
    OperationState.RUNNING,
    operations.c.id == _ITS_ID,
    operations.c.attempt == _ITS_ATTEMPT,
    IS_WANTED,
    worker=sa.bindparam("its_worker"),
    secret=sa.bindparam("its_secret"),
)


def _start(connection: sa.Connection, wanted: ClaimRequest, shown: dict[str, Any]) -> bool:
    its = {"its_id": wanted.id, "its_attempt": wanted.attempt}
    by = {"its_worker": wanted.worker, "its_secret": wanted.secret}
    return connection.execute(_START, {**its, **by, **shown}).rowcount == 1


def lock_unstarted(
    connection: sa.Connection, wanted: Sequence[ClaimRequest]
) -> list[OperationFacts]:
    """Return the recorded facts of those that are unstarted, in this order, locked for the caller.

    What another process holds is left out: it is being claimed or changed there.
    """
    attempts = {one.id: one.attempt for one in wanted}
    query = _recorded(operations.c.attempt).where(
        in_many(connection, operations.c.id, attempts), in_unindexed(operations.c.state, UNSTARTED)
    )
    locked = query.with_for_update(of=operations, skip_locked=True, key_share=True)
    found = {(row.id, row.attempt): row for row in connection.execute(locked)}
    return [_read(found[its]) for its in attempts.items() if its in found]


_STARTS = given(operations, "id", "worker", "secret")


def start_all(
    connection: sa.Connection, wanted: Sequence[ClaimRequest], shown: Mapping[str, Any]
) -> set[UUID]:
    """Start attempts that the caller has locked and found free; return those that started.

    `shown` are columns to write at the start. At most one of an overlap key may be among them.
    Raises IntegrityError as `claim` does: then none has started.
    """
    its_own = operations.c.id == _STARTS.c.id
    by: dict[str, Any] = {"worker": _STARTS.c.worker, "secret": _STARTS.c.secret, **shown}
    started = move(OperationState.RUNNING, its_own, IS_WANTED, **by)
    rows = [{"id": one.id, "worker": one.worker, "secret": one.secret} for one in wanted]
    ids = connection.execute(started.returning(operations.c.id), {"given": rows}).scalars()
    return set(ids)
