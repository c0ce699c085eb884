"""Make django-celery-beat's tables, and forty periodic tasks in them; print what each becomes."""

import json
import os
from datetime import UTC, datetime
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop_settings")
django.setup()

from django.core.management import call_command
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

kinds: dict[str, str] = {}


def task(name: str, kind: str, **fields: Any) -> None:
    kinds[name] = kind
    PeriodicTask.objects.create(name=name, task="shop.run", args=json.dumps([name]), **fields)


def crontab(minute: str, hour: str = "*", zone: str = "Europe/Paris", **fields: str) -> Any:
    fields = {"day_of_month": "*", "month_of_year": "*", "day_of_week": "*", **fields}
    return CrontabSchedule.objects.get_or_create(minute=minute, hour=hour, timezone=zone, **fields)[
        0
    ]


def every(number: int, period: str) -> Any:
    return IntervalSchedule.objects.get_or_create(every=number, period=period)[0]


def at(year: int) -> Any:
    clocked_time = datetime(year, 12, 24, 18, tzinfo=UTC)
    return ClockedSchedule.objects.get_or_create(clocked_time=clocked_time)[0]


call_command("migrate", verbosity=0)

# What runs each minute, over the cut.
for number in range(4):
    task(f"each minute {number}", "same", crontab=crontab("*"), priority=number, queue="urgent")
task(
    "each minute in Tokyo",
    "same",
    crontab=crontab("*/1", zone="Asia/Tokyo"),
    exchange="media",
    routing_key="video.short",
)
task("each 60 seconds", "same", interval=every(60, "seconds"), headers='{"tenant": "a"}')

zones = ["Europe/Paris", "America/New_York", "Asia/Tokyo", "UTC", "Australia/Sydney"]
for number, zone in enumerate(zones):
    task(f"daily {zone}", "same", crontab=crontab(str(number), "7", zone))
    task(f"at night {zone}", "same", crontab=crontab("30", "2", zone))
for number, hours in enumerate(["8-18", "*/4", "0,12", "22"]):
    task(
        f"work days {hours}",
        "same",
        crontab=crontab("15", hours, day_of_week="mon-fri", zone="UTC"),
    )
    task(
        f"monthly {hours}", "same", crontab=crontab(str(number), "9", day_of_month=str(number + 1))
    )
task("quarters", "same", crontab=crontab("*/15", "*"))
task("january", "same", crontab=crontab("0", "9", month_of_year="1"))
task("first monday", "same", crontab=crontab("0", "9", day_of_month="1-7", day_of_week="1"))
task("second monday", "same", crontab=crontab("0", "9", day_of_month="8-14", day_of_week="1"))
task("hourly", "same", interval=every(1, "hours"), queue="shop", expire_seconds=600)
task("each 45 days", "same", interval=every(45, "days"))
task("half a second", "cannot", interval=every(500_000, "microseconds"), enabled=False)
task(
    "sunset",
    "differs",
    solar=SolarSchedule.objects.create(event="sunset", latitude=48.85, longitude=2.35),
)
task("christmas", "same", clocked=at(2190), one_off=True)
task("last christmas", "cannot", clocked=at(2019), one_off=True, enabled=False)
task("once", "same", crontab=crontab("0", "3", zone="UTC"), one_off=True)
task("paused", "same", crontab=crontab("*"), enabled=False)
task(
    "from 2100",
    "same",
    crontab=crontab("0", "9", zone="UTC"),
    start_time=datetime(2100, 1, 1, tzinfo=UTC),
)
task(
    "until 2100",
    "differs",
    crontab=crontab("1", "9", zone="UTC"),
    expires=datetime(2100, 1, 1, tzinfo=UTC),
)
task("expired", "cannot", crontab=crontab("*"), expires=datetime(2020, 1, 1, tzinfo=UTC))
task("routed", "same", crontab=crontab("0", "9"), exchange="media", routing_key="video")

print(json.dumps(kinds))
