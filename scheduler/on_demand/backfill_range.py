"""Decide which occurrences of a range a backfill runs: pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from models.action.plan import Plan
from models.errors import Hint, Refused
from models.fingerprint import operation_id
from models.operation import OperationState
from models.values import format_instant
from scheduler.occurrence import next_occurrence, next_occurrences

# The most occurrences of a backfill: one transaction records them.
MOST = 1_000
# The reason of operations cancelled with their backfill: a later backfill runs them.
CALLED_OFF = "the backfill was cancelled"
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


class Mode(StrEnum):
    """Which occurrences of the range are wanted."""

    MISSING = "missing"
    FAILED = "failed"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A range of an action's past, both ends included, and which occurrences to run."""

    uid: UUID
    first: datetime
    last: datetime
    mode: Mode = Mode.ALL

    @property
    def since(self) -> datetime:
        """The open end of the range (since, last]."""
        return self.first - SECOND


@dataclass
class Share:
    """Occurrences, ascending, sorted into recorded, repeated and passed over."""

    record: list[datetime] = field(default_factory=list)
    repeat: list[Mapping[str, Any]] = field(default_factory=list)
    passed_over: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The counts, as columns of a backfill."""
        return {
            "recorded": len(self.record),
            "repeated": len(self.repeat),
            "passed_over": self.passed_over,
        }


def occurrences_in(plan: Plan, wanted: BackfillRequest, name: str) -> list[datetime]:
    """Return the occurrences of an action's range, ascending.

    Raises Refused if there are none, or more than one transaction records.
    """
    if plan.from_end is not None:
        raise Refused(
            f"{name!r} counts from the end of its last run: no occurrence is known to fill",
            Hint(
                "run it by `minutebook action run`, or what failed by `minutebook run retry`",
                "run it, or retry the runs that failed",
                "run the action, or retry the operations that failed",
            ),
        )
    found = next_occurrences(plan, wanted.uid, wanted.since, MOST + 1, wanted.last)
    ends = f"from {format_instant(wanted.first)} to {format_instant(wanted.last)}"
    if not found:
        following = next_occurrence(plan, wanted.uid, wanted.last)
        hint = f"; its next one is {format_instant(following)}" if following else ""
        raise Refused(f"{name!r} has no occurrence {ends}{hint}")
    if len(found) > MOST:
        to, rest = format_instant(found[-2]), format_instant(found[-1])
        raise Refused(
            f"{name!r} has more than {MOST:,} occurrences {ends}",
            Hint(
                f"write --to {to}, and start the next backfill --from {rest}",
                f"end at {to}, and start the next backfill at {rest}",
                f"send to={to}, and start the next backfill with from={rest}",
            ),
        )
    return found


def sort_out(
    uid: UUID, occurrences: Sequence[datetime], found: Mapping[UUID, Mapping[str, Any]], mode: Mode
) -> Share:
    """Return the share of occurrences.

    `found` are the existing operations by id; those done, running, waiting or skipped stay.
    """
    share = Share()
    for at in occurrences:
        row = found.get(operation_id(uid, at))
        if row is None and mode is not Mode.FAILED:
            share.record.append(at)
        elif row is not None and _is_wanted(row, mode):
            share.repeat.append(row)
        else:
            share.passed_over += 1
    return share


def _is_wanted(row: Mapping[str, Any], mode: Mode) -> bool:
    if row["state"] == OperationState.FAILED:
        return mode is not Mode.MISSING
    is_called_off = row["state"] == OperationState.CANCELLED and row["reason"] == CALLED_OFF
    return mode is not Mode.FAILED and (row["state"] == OperationState.MISSED or is_called_off)


def check_range(wanted: BackfillRequest, now: datetime, kept_for: timedelta) -> None:
    """Raise Refused, with the remedy, for a range that cannot be filled.

    Before the retained history it is unknown what has run.
    """
    earliest = next_minute(now - kept_for)
    if wanted.last > now:
        last, latest = format_instant(wanted.last), format_instant(now)
        raise Refused(f"the range ends at {last}, in the future; write {latest} or earlier")
    if wanted.first > wanted.last:
        first, last = format_instant(wanted.first), format_instant(wanted.last)
        raise Refused(f"the range begins at {first}, after {last}; write the earlier one first")
    if wanted.first < earliest:
        raise Refused(
            f"the range begins at {format_instant(wanted.first)}, before the retained history"
            f" (SCHED_RETENTION_OPERATIONS_DAYS, {kept_for.days}); write"
            f" {format_instant(earliest)} or later"
        )


def next_minute(at: datetime) -> datetime:
    """Return the first full minute after `at`."""
    return at.replace(second=0, microsecond=0) + MINUTE
