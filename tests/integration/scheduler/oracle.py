"""What must become of every occurrence of a year, by brute force: nothing here is the product's.

Occurrences come from walking the minutes of the year by Debian's loop, restated, and from adding
intervals up; what becomes of them from a list of them that is looked through at every step.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from tests.unit.cron import debian

YEAR = datetime(2027, 1, 1, tzinfo=UTC)
END = datetime(2028, 1, 1, tzinfo=UTC)
AFTER = END + timedelta(days=40)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Rule:
    """The occurrences of one trigger, and how far back they are still sent."""

    occurrences: frozenset[datetime]
    look_back: timedelta


@dataclass(frozen=True)
class Revision:
    """What an action says from one change on."""

    rules: tuple[Rule, ...]
    catch_up: str = "latest"
    overlap: str = "skip"
    active: bool = True

    @cached_property
    def occurrences(self) -> list[datetime]:
        """All its occurrences, active or not, in order."""
        return sorted({at for rule in self.rules for at in rule.occurrences})

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until]."""
        first, end = (bisect_right(self.occurrences, at) for at in (since, until))
        return self.occurrences[first:end]


@dataclass(frozen=True)
class OnEvents(Revision):
    """What an action says that events make due; `due` grows with the events that happen."""

    due: frozenset[datetime] | set[datetime] = frozenset()

    @property
    def occurrences(self) -> list[datetime]:
        """The due instants of the events so far, ascending."""
        return sorted(self.due)


class Change(NamedTuple):
    """What an action became: from when, and its number."""

    since: datetime
    revision: Revision
    number: int


@dataclass
class Action:
    """An action's year: its revisions, and the outcome of each occurrence so far."""

    revision: Revision
    watermark: datetime
    uid: UUID
    outcomes: dict[datetime, str] = field(default_factory=dict)
    waiting: set[datetime] = field(default_factory=set)
    history: list[Change] = field(default_factory=list)
    deleted_at: datetime | None = None

    def __post_init__(self) -> None:
        self.history.append(Change(self.watermark, self.revision, 1))

    @property
    def number(self) -> int:
        """The number of its newest revision."""
        return self.history[-1].number

    def change(self, revision: Revision, now: datetime) -> None:
        """Make `revision` the next; the old one is decided up to `now` first."""
        self.decide(now)
        self.history.append(Change(now, revision, self.number + 1))
        self.revision = revision

    def delete(self, now: datetime) -> None:
        """End it: what has not started is cancelled."""
        self.decide(now)
        self.deleted_at = now
        self._end(self.waiting, "cancelled")

    def decide(self, now: datetime) -> None:
        """Record what lies in (watermark, now]."""
        if self.deleted_at is None and self.revision.active:
            self._record(now)
        self.watermark = now

    def set_back(self, now: datetime) -> None:
        """The clock was ahead: only what was sent stays, and changes hold from `now` on."""
        if self.watermark <= now:
            return
        self.watermark = now
        self.outcomes = {
            at: one for at, one in self.outcomes.items() if at <= now or one != "missed"
        }
        ahead = [one for one in self.history if one.since > now]
        self.history = [one for one in self.history if one.since <= now]
        self.history += [one._replace(since=now) for one in ahead]
        if self.deleted_at is not None:
            self.deleted_at = min(self.deleted_at, now)

    def work(self) -> None:
        """Let a worker take all that has not started, in order."""
        self._end(self.waiting, "success" if self.revision.active else "skipped")

    def verdict(self, instant: datetime) -> str:
        """Return what an explanation must say of `instant` at the end of the year."""
        if instant in self.outcomes:
            return self.outcomes[instant]
        if instant <= self.history[0].since:
            return "not_an_occurrence"
        if self.deleted_at is not None and instant > self.deleted_at:
            return "deleted"
        in_force = [one for one in self.history if one.since < instant][-1].revision
        if instant not in in_force.occurrences:
            return "not_an_occurrence"
        return "not_due_yet" if in_force.active else "paused"

    def _record(self, now: datetime) -> None:
        new = self.revision.between(self.watermark, now)
        in_time = {
            at
            for at in new
            for rule in self.revision.rules
            if at in rule.occurrences and at > now - rule.look_back
        }
        due = in_time if self.revision.catch_up == "all" else set(sorted(in_time)[-1:])
        # What was sent while the clock was ahead is not sent again.
        sent = {at for at in new if self.outcomes.get(at, "missed") != "missed"}
        self.outcomes |= {at: "queued" if at in due else "missed" for at in new if at not in sent}
        self.waiting |= due - sent
        if due - sent and self.revision.catch_up == "latest":
            self._overtake(max(due))

    def _overtake(self, newest: datetime) -> None:
        waiting = sorted(self.waiting)
        if self.revision.overlap == "skip":
            over = [at for at in waiting if at < newest]
        elif self.revision.overlap == "queue":
            over = waiting[:-2]
        else:
            over = []
        self._end(over, "skipped")

    def _end(self, instants: Iterable[datetime], outcome: str) -> None:
        ended = list(instants)
        self.outcomes |= dict.fromkeys(ended, outcome)
        self.waiting -= set(ended)


@cache
def _wakeups(zone: str, until: datetime) -> debian.Wakeups:
    clock = debian.wheel_zone(zone)
    day = 86_400
    return debian.look_out(
        lambda second: debian.offset(clock, second),
        int(YEAR.timestamp()) - day,
        int(until.timestamp()) + day,
    )


@cache
def cron(rule: str, zone: str, until: datetime) -> frozenset[datetime]:
    """Return the occurrences of a rule in the year, up to `until` and some hours more."""
    seconds = debian.occurrences(rule, _wakeups(zone, until))
    return frozenset(_within(datetime.fromtimestamp(second, UTC) for second in seconds))


def interval(
    uid: UUID, starting_at: datetime, every: timedelta, jitter: timedelta
) -> frozenset[datetime]:
    """Return the grid's points, moved by the action's own offset."""
    offset = timedelta(0)
    if jitter:
        number = int(sha256(uid.bytes).hexdigest()[:16], 16)
        offset = timedelta(seconds=number % int(jitter.total_seconds()))
    points = []
    at = starting_at + offset
    while at < AFTER:
        points.append(at)
        at += every
    return frozenset(_within(points))


def bounded(
    occurrences: frozenset[datetime], starts_at: datetime, ends_at: datetime
) -> frozenset[datetime]:
    """Return the occurrences in [starts_at, ends_at)."""
    return frozenset(at for at in occurrences if starts_at <= at < ends_at)


def next_minute(actions: Iterable[Action], after: datetime, end: datetime) -> datetime:
    """Return the first full minute after `after` at which something is due, or the end."""
    found = [end]
    for action in actions:
        occurrences = action.revision.occurrences
        # What is due in the minute that `after` lies in is due at its end.
        for at in occurrences[bisect_right(occurrences, after - MINUTE) :]:
            minute = at.replace(second=0) + (MINUTE if at.second else timedelta(0))
            if minute > after:
                found.append(minute)
                break
    return min(found)


def _within(instants: Iterable[datetime]) -> list[datetime]:
    return [at for at in instants if YEAR <= at < AFTER]
