"""Cron rules, IANA time zones and the sun to instants: pure, independent of all else."""

from cron.blackout import Blackout
from cron.daylight import ClockChange, clock_changes
from cron.errors import InvalidRule
from cron.rule import oversized_steps, parse_rule
from cron.schedule import CronSchedule, WallClock
from cron.sun import SolarEvent, SolarSchedule
from cron.words import in_words
from cron.zone import tz_release

# Increase it when a schedule may answer differently than before: stored next occurrences are then
# computed again.
KERNEL_VERSION: int = 1

__all__ = [
    "KERNEL_VERSION",
    "Blackout",
    "ClockChange",
    "CronSchedule",
    "InvalidRule",
    "SolarEvent",
    "SolarSchedule",
    "WallClock",
    "clock_changes",
    "in_words",
    "oversized_steps",
    "parse_rule",
    "tz_release",
]
