"""Notices of runs and findings: their kinds, ids and delays."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, UUID, uuid5
from zoneinfo import ZoneInfo

from models.operation import OperationState
from models.values.references import is_reference

TIME_BOX = "time box"
# Of which failures a hook hears: each, or the first of several in a row.
EACH, FIRST = "each", "first"
TargetKind = Literal["mail", "webhook", "notify", "GET", "POST"]
# Pings, by the method of their request.
PINGS = frozenset({"GET", "POST"})
# Pauses between the attempts of one delivery; the last repeats.
BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 120, 240))


@dataclass(frozen=True, slots=True)
class Target:
    """Where a notice goes: an address, a URL (of a webhook or a ping), or the name of a channel."""

    kind: TargetKind
    to: str


class Moment(StrEnum):
    """The moments of a run at which hooks are called; at its start, pings alone."""

    START = "start"
    SUCCESS = "success"
    FAILURE = "failure"


class NoticeKind(StrEnum):
    """What a notice reports: a run, or a finding."""

    # To pings alone.
    RUN_STARTED = "run_started"
    RUN_ENDED = "run_ended"
    FINDING_BEGAN = "finding_began"
    FINDING_ENDED = "finding_ended"

    @property
    def opposite(self) -> "NoticeKind":
        """The kind that makes a notice of a finding untrue."""
        is_begin = self is NoticeKind.FINDING_BEGAN
        return NoticeKind.FINDING_ENDED if is_begin else NoticeKind.FINDING_BEGAN


class FindingKind(StrEnum):
    """The findings about an action, and those that the tick itself causes."""

    # The first of several failures in a row, for hooks that hear of that alone.
    FAILING = "action_failing"
    # As many in a row as raise an alert.
    FAILED = "action_failed"
    OVERDUE = "action_overdue"
    MISSED = "action_missed"
    # The verdict's alone: no rows.
    QUARANTINED = "quarantined"
    NEVER_RAN = "never_ran"
    # Found by the tick itself.
    BROKER_DOWN = "broker_down"
    APPLICATION_BROKER_DOWN = "application_broker_down"


# What to do about brokers that do not work.
BROKERS: Mapping[str, str] = {
    FindingKind.BROKER_DOWN: "start the broker, or correct SCHED_BROKER_URL",
    FindingKind.APPLICATION_BROKER_DOWN: "start that broker, or correct SCHED_CELERY_BROKER_URL",
}


def moment_of(state: OperationState, reason: str | None) -> Moment | None:
    """Return the moment that an end is: a success, a failure (failed, partial), or None.

    A stop at the time limit is none, for the next operation continues; nor is a cancel.
    """
    if state is OperationState.SUCCESS:
        return Moment.SUCCESS
    is_partial = state is OperationState.PARTIAL and reason != TIME_BOX
    return Moment.FAILURE if state is OperationState.FAILED or is_partial else None


def notice_id(about: str, end: str, kind: NoticeKind, target: Target) -> UUID:
    """Return the id of a notice: the same for the same end of a run, or begin of a finding."""
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
    at, local_zone = now.replace(second=0, microsecond=0), ZoneInfo(zone)
    while _is_within(at.astimezone(local_zone).time(), start, end):
        # Minute by minute, so that a clock change is what the clock shows.
        at += timedelta(minutes=1)
    return at if at > now else None


def _is_within(clock: time, start: time, end: time) -> bool:
    return start <= clock < end if start < end else clock >= start or clock < end
