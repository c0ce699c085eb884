"""When a rule runs in schedulers that follow the wall clock alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from cron import CronSchedule
from cron.fields import HOUR
from cron.zone import canonical_name
from moving.cron_text import values_of


@dataclass(frozen=True, slots=True)
class WallFires:
    """A cron rule at each minute whose time on the wall matches.

    A time that the clocks skip is left out. One that they repeat counts twice, or, with `once`, the
    first time only.
    """

    rule: str
    zone: str
    once: bool = False

    def between(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return the instants in (since, until]."""
        minute, hour, *days = self.rule.split(" ")
        hours, zone = values_of(HOUR, hour) or set(), ZoneInfo(canonical_name(self.zone))
        # A rule for each hour follows the clock on the wall.
        every_hour = CronSchedule(" ".join([minute, "*", *days]), self.zone)
        return [
            at
            for at in every_hour.between(since, until)
            if (wall := at.astimezone(zone)).hour in hours and not (self.once and wall.fold)
        ]
