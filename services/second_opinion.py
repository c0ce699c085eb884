"""What croniter, the engine of many other schedulers, makes of a rule around a clock change."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from cron import ClockChange, CronSchedule

if TYPE_CHECKING:
    from croniter import croniter

# Both are asked for the occurrences from this long before the change until this long after it.
AROUND = timedelta(hours=3)
_SECOND = timedelta(seconds=1)


class Differing(NamedTuple):
    """The instants, in order, at which only croniter or only Minutebook runs a rule."""

    only_croniter: tuple[datetime, ...] = ()
    only_ours: tuple[datetime, ...] = ()


@lru_cache(maxsize=10_000)
def second_opinion(rule: str, change: ClockChange) -> Differing:
    """Return where croniter and our kernel differ around a clock change.

    They do not differ on a rule that croniter refuses.
    """
    since, until = change.at - AROUND - _SECOND, change.at + AROUND
    ours = set(CronSchedule(rule, change.zone).between(since, until))
    theirs = _of_croniter(rule, change.zone, since, until)
    if theirs is None:
        return Differing()
    return Differing(tuple(sorted(theirs - ours)), tuple(sorted(ours - theirs)))


def _of_croniter(rule: str, zone: str, since: datetime, until: datetime) -> set[datetime] | None:
    """Return croniter's occurrences in (since, until], in UTC; None for a rule that it refuses."""
    from croniter import CroniterError, croniter

    try:
        # With what it calls a bug, it reads the two fields of days as Debian's cron does.
        asked = croniter(rule, since.astimezone(ZoneInfo(zone)), implement_cron_bug=True)
        return set(_until(asked, until))
    except CroniterError:
        return None


def _until(asked: "croniter", until: datetime) -> Iterator[datetime]:
    while (at := asked.get_next(datetime).astimezone(UTC)) <= until:
        yield at
