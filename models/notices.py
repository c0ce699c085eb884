"""What people are told of an action, when it is owed, and when it has to wait."""

import json
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, UUID, uuid5
from zoneinfo import ZoneInfo

from models.action.plan import HookPlan, Target
from models.operation import OperationState
from models.references import is_reference

TIME_BOX = "time box"
# Pauses between the tries of one delivery; the last repeats.
BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 120, 240))


class NoticeKind(StrEnum):
    """What a notice tells: how an operation ended, or how its action stands."""

    SUCCESS = "success"
    FAILURE = "failure"
    ALERT = "alert"
    RECOVERED = "recovered"
    OVERDUE = "overdue"
    SEEN = "seen"


# What is no longer true when the other is told.
OPPOSITE = {
    NoticeKind.ALERT: NoticeKind.RECOVERED,
    NoticeKind.RECOVERED: NoticeKind.ALERT,
    NoticeKind.OVERDUE: NoticeKind.SEEN,
    NoticeKind.SEEN: NoticeKind.OVERDUE,
}


def is_trouble(state: OperationState, reason: str | None) -> bool:
    """Whether an end is one that somebody has to know of: a stop in time is none."""
    if state is OperationState.FAILED:
        return True
    return state is OperationState.PARTIAL and reason != TIME_BOX


def hook_kind(state: OperationState, reason: str | None) -> NoticeKind | None:
    """Return which hooks an end calls: a success its own, failed and partial those of failure.

    A stop at the time limit and a cancel call none: the one goes on, the other was asked for.
    """
    if state is OperationState.SUCCESS:
        return NoticeKind.SUCCESS
    return NoticeKind.FAILURE if is_trouble(state, reason) else None


def targets_of(
    kind: NoticeKind, hooks: HookPlan | None, installation: tuple[Target, ...]
) -> tuple[Target, ...]:
    """Return who is told, each once: alerts go to those of failure and to the installation's."""
    hooks = hooks or HookPlan()
    match kind:
        case NoticeKind.SUCCESS:
            return hooks.on_success
        case NoticeKind.FAILURE:
            return hooks.on_failure
    return tuple(dict.fromkeys((*hooks.on_failure, *installation)))


def notice_id(about: UUID, end: str, kind: NoticeKind, target: Target) -> UUID:
    """Return the id of a notice: the same for the same end of the same operation, always."""
    shown = json.dumps(asdict(target), sort_keys=True)
    return uuid5(NAMESPACE_OID, f"{about} | {end} | {kind} | {shown}")


def shown_target(target: Target) -> str:
    """Return where a notice goes, as people may see it: of a URL the host only, or the reference.

    The rest is often what lets one in.
    """
    if target.kind == "mail" or is_reference(target.to):
        return target.to
    parts = urlsplit(target.to)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def backoff(tries: int) -> timedelta:
    """Return the pause after that many tries in vain, at least one."""
    return BACKOFF[min(tries, len(BACKOFF)) - 1]


def quiet_until(now: datetime, hours: tuple[time, time] | None, zone: str) -> datetime | None:
    """Return the end of the quiet hours that `now` lies in, None when it lies in none.

    They are [start, end) on the clock of `zone`, over midnight when the start is the later one.
    """
    if hours is None:
        return None
    start, end = hours
    local = now.astimezone(ZoneInfo(zone))
    clock = local.time().replace(microsecond=0)
    is_over_midnight = start > end
    is_quiet = clock >= start or clock < end if is_over_midnight else start <= clock < end
    if not is_quiet:
        return None
    day = local.date() + timedelta(days=1 if is_over_midnight and clock >= start else 0)
    first, last = _shown_at(datetime.combine(day, end, ZoneInfo(zone)))
    return first if first > now else last


def _shown_at(wall: datetime) -> tuple[datetime, datetime]:
    """Return when the clock of a zone shows `wall` first and last; the end of a gap it lies in."""
    first, last = (wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    if first <= last:
        return first, last
    while last.astimezone(wall.tzinfo).replace(tzinfo=None) < wall.replace(tzinfo=None):
        last += timedelta(minutes=1)
    return last, last
