"""Notices of an action: their kinds, recipients, ids and delays."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, get_args
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, UUID, uuid5
from zoneinfo import ZoneInfo

from models.operation import OperationState
from models.references import is_reference

if TYPE_CHECKING:
    from models.action.hooks import HooksModel

TIME_BOX = "time box"
# Of which failures a hook hears: each, or the first of several in a row.
EACH, FIRST = "each", "first"
TargetKind = Literal["mail", "webhook", "notify", "GET", "POST"]
KINDS: tuple[str, ...] = get_args(TargetKind)
# Pings, by the method of their request.
PINGS = frozenset({"GET", "POST"})
# Pauses between the attempts of one delivery; the last repeats.
BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 120, 240))


@dataclass(frozen=True, slots=True)
class Target:
    """Where a notice goes: an address, a URL (of a webhook or a ping), or the name of a channel."""

    kind: TargetKind
    to: str


class Hook(Protocol):
    """One notice of an action, as its document has it."""

    @property
    def when(self) -> str: ...
    @property
    def target(self) -> Target: ...


def targets(hooks: Iterable[Hook], when: str | None = None) -> tuple[Target, ...]:
    """Return the targets of these hooks, each once; `when` is what they have to say, None any."""
    its = (hook for hook in hooks if when in {None, hook.when})
    return tuple(dict.fromkeys(hook.target for hook in its))


class NoticeKind(StrEnum):
    """What a notice reports: an end, the status of an action, what was missed, or a fault."""

    # Of pings alone.
    START = "start"
    SUCCESS = "success"
    FAILURE = "failure"
    # It succeeded after the failure that hooks of first failures heard of.
    RESTORED = "restored"
    ALERT = "alert"
    RECOVERED = "recovered"
    OVERDUE = "overdue"
    SEEN = "seen"
    MISSED = "missed"
    # Of the installation itself: what is broken, and that it is no longer.
    BROKEN = "broken"
    MENDED = "mended"


# The kinds for an operation; the others are alerts.
OF_HOOKS = frozenset(
    {NoticeKind.START, NoticeKind.SUCCESS, NoticeKind.FAILURE, NoticeKind.RESTORED}
)
# A notice makes its opposite untrue.
OPPOSITE = {
    NoticeKind.ALERT: NoticeKind.RECOVERED,
    NoticeKind.RECOVERED: NoticeKind.ALERT,
    NoticeKind.OVERDUE: NoticeKind.SEEN,
    NoticeKind.SEEN: NoticeKind.OVERDUE,
}


def is_failure(state: OperationState, reason: str | None) -> bool:
    """Return whether an end is failed or partial; a stop at the time limit is neither."""
    if state is OperationState.FAILED:
        return True
    return state is OperationState.PARTIAL and reason != TIME_BOX


def hook_kind(state: OperationState, reason: str | None) -> NoticeKind | None:
    """Return the kind of hooks that an end calls: success, failure (failed, partial), or None.

    A stop at the time limit calls none, for the next operation continues; nor does a cancel.
    """
    if state is OperationState.SUCCESS:
        return NoticeKind.SUCCESS
    return NoticeKind.FAILURE if is_failure(state, reason) else None


def targets_of(
    kind: NoticeKind, hooks: "HooksModel | None", installation: tuple[Target, ...]
) -> tuple[Target, ...]:
    """Return the targets, each once; alerts go to those of failure and of the installation.

    What was missed goes to those of `on_missed` in place of failure, if the action has that key.
    Hooks of first failures alone are apart: `first_targets`.
    """
    if hooks is None:
        return () if kind in OF_HOOKS else tuple(dict.fromkeys(installation))
    match kind:
        case NoticeKind.START:
            return hooks.pinged(kind)
        case NoticeKind.SUCCESS:
            return (*targets(hooks.on_success), *hooks.pinged(kind))
        case NoticeKind.FAILURE:
            return (*targets(hooks.on_failure, EACH), *hooks.pinged(kind))
        case NoticeKind.MISSED if hooks.on_missed is not None:
            return tuple(dict.fromkeys((*targets(hooks.on_missed), *installation)))
    return tuple(dict.fromkeys((*targets(hooks.on_failure, EACH), *installation)))


def first_targets(hooks: "HooksModel | None") -> tuple[Target, ...]:
    """Return the targets that hear of the first failure in a row, and of the recovery."""
    return () if hooks is None else targets(hooks.on_failure, FIRST)


def notice_id(about: UUID, end: str, kind: NoticeKind, target: Target) -> UUID:
    """Return the id of a notice, the same for the same end of the same operation."""
    shown = json.dumps(asdict(target), sort_keys=True)
    return uuid5(NAMESPACE_OID, f"{about} | {end} | {kind} | {shown}")


def shown_target(target: Target) -> str:
    """Return a target for display: an address, a reference, or only the host of a URL.

    The rest of a URL is often a secret.
    """
    if target.kind == "notify":
        return f"channel {target.to}"
    if target.kind == "mail" or is_reference(target.to):
        return target.to
    parts = urlsplit(target.to)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def backoff(tries: int) -> timedelta:
    """Return the pause after `tries` failed attempts, at least one."""
    return BACKOFF[min(tries, len(BACKOFF)) - 1]


def quiet_until(now: datetime, hours: tuple[time, time] | None, zone: str) -> datetime | None:
    """Return the end of the quiet hours around `now`; None outside of them.

    They are [start, end) on the clock of `zone`, and cross midnight if `start` is later than `end`.
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
    """Return the first and last instant that show `wall`; in a gap, twice the end of the gap."""
    first, last = (wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    if first <= last:
        return first, last
    while last.astimezone(wall.tzinfo).replace(tzinfo=None) < wall.replace(tzinfo=None):
        last += timedelta(minutes=1)
    return last, last
