"""Decide whether an operation may start: tolerance, order, overlap, pause."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hmac import compare_digest
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.action.plan import Plan
from models.events import LAST_SEEN
from models.notices import Moment
from models.operation import REQUESTED, TICKED, UNSTARTED, Cause, OperationState
from models.sql import database_now, read_clock
from models.store.conditions import IS_RUNNING, IS_UNSTARTED, LIES_AHEAD
from models.store.operations import OVERLAP, is_requested, put_back, refusals
from models.store.operations.causes import with_cause
from models.store.operations.end import EndResult
from models.store.operations.heartbeat import last_starts
from models.store.operations.record import keep_newest
from models.store.operations.transitions import fenced, move
from models.store.people import users
from models.tables import operations
from models.trust import Trust
from models.worker_kinds import WorkerKind, worker_kind_of
from runtime.sections import AlertSettings

# The message waited for longer than its task's `expires`.
EXPIRED = "expired"
NEWER_STARTED = "a newer occurrence has started"


class NotClaimed(StrEnum):
    """Why a worker did not get an attempt."""

    # Claimed by another message, pending under another attempt, ended, or never recorded.
    TAKEN = "taken"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    WAITS = "waits"
    # It failed because its plan is unreadable.
    BROKEN = "broken"
    # The message names an operation that workers of another kind run.
    FOREIGN = "foreign"
    # A pause covers it: it is sent again when the pause ends.
    PUT_BACK = "put back"


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Why a worker did not get an attempt, and its end, if that is how it was kept back."""

    why: str
    ended: EndResult | None = None


TAKEN = NotStarted(NotClaimed.TAKEN)
WAITS = NotStarted(NotClaimed.WAITS)
FOREIGN = NotStarted(NotClaimed.FOREIGN)
PUT_BACK = NotStarted(NotClaimed.PUT_BACK)


@dataclass(frozen=True)
class OperationFacts:
    """The recorded facts about an operation, and the revision that it runs."""

    id: UUID
    # The one that was asked about, whether or not the operation is in it.
    attempt: int
    small_app_id: int
    app_name: str
    app_zone: str
    trust: Trust
    action_uid: UUID
    task: str
    occurrence_at: datetime
    subject: str | None
    event_at: datetime | None
    overlap_key: UUID | None
    cause: Cause
    triggerer: str
    # The user's choice about the mail that a step leaves to them.
    notify: bool | None
    first_started_at: datetime | None
    # How many of its attempts failed and were lost, and the error of the last one.
    failures: int
    losses: int
    last_error: str | None
    steps: list[dict[str, Any]] | None
    # What its worker brought with its claim; None before.
    secret: str | None
    # The attempt that it is in, and its state.
    last_attempt: int
    state: OperationState
    recorded_at: datetime
    started_at: datetime | None
    cancel_requested_at: datetime | None
    # Why its action lets nothing start: paused or deleted; None if it does.
    unwanted: str | None
    # The operation that runs under the same overlap key.
    running: UUID | None
    # Whether a pause in force covers it.
    is_paused: bool
    document: str
    plan: Plan
    # Why the plan is unreadable; `plan` is then empty.
    broken: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether a worker runs this attempt."""
        return self.attempt == self.last_attempt and self.state == OperationState.RUNNING

    @property
    def is_unstarted(self) -> bool:
        """Whether this attempt has not started."""
        return self.attempt == self.last_attempt and self.state in UNSTARTED

    def is_held_by(self, secret: str) -> bool:
        """Return whether the worker that brought this secret runs this attempt."""
        return self.is_running and compare_digest((self.secret or "").encode(), secret.encode())

    @property
    def small_app(self) -> SmallApp:
        return SmallApp(self.small_app_id, self.app_name, self.app_zone)

    @property
    def worker_kind(self) -> WorkerKind:
        """Which workers run it; read from the row, since the plan may be unreadable."""
        return worker_kind_of(self.task)

    @property
    def is_requested(self) -> bool:
        """Whether a retry or a backfill caused it."""
        return self.cause in REQUESTED

    @property
    def can_start(self) -> bool:
        """Whether this attempt may start, apart from other operations."""
        return self.is_unstarted and self.unwanted is None

    @property
    def may_come_too_soon(self) -> bool:
        """Whether the interval's tolerance decides about it."""
        is_scheduled = self.cause in TICKED and self.first_started_at is None
        return is_scheduled and any(getattr(one, "tolerance", None) for one in self.plan.rules)

    @property
    def expires(self) -> timedelta | None:
        """How long after its sending its message may start a task; None for no limit."""
        return None if self.plan.hand_over is None else self.plan.hand_over.expires

    @property
    def pings_at_start(self) -> bool:
        """Whether a monitor is told of its start."""
        return self.plan.hooks is not None and bool(self.plan.hooks.at(Moment.START))

    @property
    def is_in_order(self) -> bool:
        """Whether it waits for earlier operations of its action."""
        has_order = self.plan.policy.catch_up == "all" or self.is_requested
        return has_order and self.overlap_key is not None

    @property
    def is_retry_in_turn(self) -> bool:
        """Whether it is a retry that a newer occurrence overtakes.

        Under the overlap policy `allow`, and for events, operations have nothing to do with each
        other.
        """
        is_retry = self.failures > 0 and self.cause == Cause.SCHEDULE
        return is_retry and self.overlap_key is not None

    @property
    def is_free(self) -> bool:
        """Whether it may start, and no rule of `check_start` has to look at anything else."""
        has_rule = (
            self.subject is not None
            or self.may_come_too_soon
            or self.is_in_order
            or self.is_retry_in_turn
            or self.expires is not None
            or self.pings_at_start
        )
        is_plain = self.running is None and self.broken is None and not self.is_paused
        return self.can_start and is_plain and not has_rule


def check_start(
    connection: sa.Connection, recorded: OperationFacts, alerts: AlertSettings
) -> NotStarted | None:
    """Apply pause, subject's filter, expiry, tolerance, order and overlap; None if it may start."""
    if not recorded.is_unstarted:
        return TAKEN
    if recorded.can_start and recorded.is_paused:
        _put_back(connection, recorded)
        return PUT_BACK
    reason = _ruled_out(connection, recorded)
    if reason is not None:
        return refuse(connection, recorded, reason, alerts)
    return _kept_in_order(connection, recorded, alerts)


def _kept_in_order(
    connection: sa.Connection, recorded: OperationFacts, alerts: AlertSettings
) -> NotStarted | None:
    """Apply tolerance, order and overlap; None if the attempt may start."""
    if _comes_too_soon(connection, recorded):
        return refuse(connection, recorded, "tolerance", alerts, OperationState.DROPPED)
    earlier = _earlier_in_order(connection, recorded)
    if earlier is not None:
        _wait(connection, recorded, earlier)
        return WAITS
    if recorded.running is not None:
        return _yield_to_running(connection, recorded, alerts)
    return None


def refuse(
    connection: sa.Connection,
    recorded: OperationFacts,
    reason: str,
    alerts: AlertSettings,
    state: OperationState = OperationState.SKIPPED,
) -> NotStarted:
    """End an operation that may not start: so, or failed if an attempt of it has failed."""
    its = (recorded.id, recorded.attempt)
    if recorded.failures:
        ended = refusals.fail(connection, its, reason, recorded.last_error, alerts)
    else:
        ended = refusals.skip(connection, *its, reason, state)
    return TAKEN if ended is None else NotStarted(NotClaimed(state), ended)


def why_not(connection: sa.Connection, recorded: OperationFacts) -> str | None:
    """Return why its action or its subject lets an operation not start now; None if they do.

    The action is paused or deleted; the filter excludes the user, the user is gone, or was seen
    again since the event.
    """
    if recorded.unwanted is not None or recorded.subject is None:
        return recorded.unwanted
    user = users.find(connection, recorded.small_app_id, recorded.subject)
    rule = recorded.plan.on_event
    if user is None or (rule is not None and not recorded.plan.counts(user)):
        return "recipient"
    if rule is None or rule.event != LAST_SEEN or recorded.event_at is None:
        return None
    return None if user.last_seen_at == recorded.event_at else "seen again"


def _ruled_out(connection: sa.Connection, recorded: OperationFacts) -> str | None:
    reason = why_not(connection, recorded)
    if reason is not None:
        return reason
    if _has_expired(connection, recorded):
        return with_cause(connection, EXPIRED, recorded.id)
    if _is_overtaken_retry(connection, recorded):
        return with_cause(connection, NEWER_STARTED, recorded.id)
    return None


def _is_overtaken_retry(connection: sa.Connection, recorded: OperationFacts) -> bool:
    """Return whether this is a retry, and a newer occurrence of its action has started."""
    if not recorded.is_retry_in_turn:
        return False
    newer = (
        sa.select(sa.literal(1))
        .where(operations.c.action_uid == recorded.action_uid)
        .where(operations.c.occurrence_at > recorded.occurrence_at)
        .where(operations.c.first_started_at.is_not(None))
        .where(operations.c.cause == Cause.SCHEDULE, sa.not_(LIES_AHEAD))
    )
    return connection.execute(newer.limit(1)).first() is not None


def _has_expired(connection: sa.Connection, recorded: OperationFacts) -> bool:
    if recorded.expires is None:
        return False
    is_late = operations.c.send_started_at <= database_now(-recorded.expires)
    late = sa.select(sa.literal(1)).where(operations.c.id == recorded.id, is_late)
    return connection.execute(late).first() is not None


def _comes_too_soon(connection: sa.Connection, recorded: OperationFacts) -> bool:
    """Return whether the interval's tolerance drops this scheduled operation."""
    if not recorded.may_come_too_soon:
        return False
    now, starts = (
        read_clock(connection),
        last_starts(connection, recorded.action_uid, recorded.id),
    )
    # A start in the future comes from a clock that was ahead: ignore it.
    known = [at for at in starts if at is not None and at <= now]
    return bool(known) and recorded.plan.drops(max(known), now)


def _earlier_in_order(connection: sa.Connection, recorded: OperationFacts) -> UUID | None:
    """Return the unstarted operation that comes before this one.

    Operations of a schedule with catch-up `all` run in order, and so do requested ones; neither
    kind waits for the whole other kind.
    """
    if not recorded.is_in_order:
        return None
    is_other_requested = is_requested(operations.c)
    return connection.execute(
        sa.select(operations.c.id)
        .where(operations.c.action_uid == recorded.action_uid)
        .where(IS_UNSTARTED, operations.c.id != recorded.id)
        .where(operations.c.occurrence_at < recorded.occurrence_at)
        .where(is_other_requested if recorded.is_requested else sa.not_(is_other_requested))
        .order_by(operations.c.occurrence_at.desc())
        .limit(1)
    ).scalar_one_or_none()


def _yield_to_running(
    connection: sa.Connection, recorded: OperationFacts, alerts: AlertSettings
) -> NotStarted | None:
    """Apply the action's overlap policy; None if the running operation has ended meanwhile."""
    # What a clock that was ahead started is not newer.
    is_newer = (operations.c.occurrence_at > recorded.occurrence_at) & sa.not_(LIES_AHEAD)
    found = connection.execute(
        sa.select(operations.c.id, operations.c.cause, is_newer.label("is_newer"))
        .where(operations.c.overlap_key == recorded.overlap_key, IS_RUNNING)
        .with_for_update()
    ).one_or_none()
    if found is None:
        return None
    running, plan = found.id, recorded.plan
    # Requested and scheduled operations wait for each other: overlap skips and replaces neither.
    if not (recorded.is_requested or found.cause in REQUESTED):
        if plan.policy.overlap == "skip" and plan.policy.catch_up == "latest":
            return refuse(connection, recorded, OVERLAP.format(running), alerts)
        if plan.policy.overlap == "replace" and not found.is_newer:
            put_back.ask_to_cancel(connection, running, f"replaced by {recorded.id}")
    _wait(connection, recorded, running)
    if plan.policy.catch_up == "latest":
        its = (recorded.action_uid, plan.policy.max_waiting)
        keep_newest(connection, *its, is_one_running=True)
    return WAITS


def _put_back(connection: sa.Connection, recorded: OperationFacts) -> None:
    """Let a paused operation wait for the end of the pause.

    A task of the user's application is sent once in an attempt: its next one begins.
    """
    attempt = recorded.attempt + (0 if recorded.worker_kind.is_ours else 1)
    its_attempt = fenced(recorded.id, recorded.attempt)
    kept = move(OperationState.PENDING, its_attempt, attempt=attempt, not_before=database_now())
    connection.execute(kept.values(reason=None))


def _wait(connection: sa.Connection, recorded: OperationFacts, running: UUID) -> None:
    """Let an operation wait for another one; as it has not begun, its attempt stays the same.

    Its message is gone. If it comes once more, it starts the operation, or lets it wait again.
    """
    its_attempt = fenced(recorded.id, recorded.attempt)
    waits = move(OperationState.PENDING, its_attempt, attempt=recorded.attempt)
    reason = f"waits for {running}"
    connection.execute(waits.values(waiting_for=running, reason=reason))
