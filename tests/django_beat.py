"""A Django project with django-celery-beat: its tables, filled by its own models.

Run as a process of its own, because Django has one configuration a process.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)


def main(database: str) -> None:
    """Make the tables in a database (Django's settings as JSON), and fill them."""
    import django
    from django.conf import settings

    settings.configure(
        INSTALLED_APPS=["django_celery_beat"],
        DATABASES={"default": json.loads(database)},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        TIME_ZONE="Europe/Paris",
        USE_TZ=True,
    )
    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    # An interval that never ran counts from when it was changed.
    timezone.now = lambda: NOW
    call_command("migrate", verbosity=0)
    fill()


def fill() -> None:  # noqa: PLR0915 - a table
    """Store one periodic task of each kind."""
    from django_celery_beat.models import (
        ClockedSchedule,
        CrontabSchedule,
        IntervalSchedule,
        PeriodicTask,
        SolarSchedule,
    )

    def crontab(minute: str, hour: str, **fields: str) -> Any:
        return CrontabSchedule.objects.create(
            minute=minute, hour=hour, timezone=fields.pop("zone", "Europe/Paris"), **fields
        )

    def clocked(year: int) -> Any:
        return ClockedSchedule.objects.create(clocked_time=datetime(year, 12, 24, 18, tzinfo=UTC))

    def task(name: str, **fields: Any) -> None:
        if "interval" in fields and "start_time" not in fields:
            fields = {"last_run_at": NOW - timedelta(minutes=10), **fields}
        PeriodicTask.objects.create(name=name, task="shop.tasks.run", **fields)

    daily = crontab("30", "7")
    quarter = IntervalSchedule.objects.create(every=15, period="minutes")
    half = IntervalSchedule.objects.create(every=500_000, period="microseconds")
    task("daily", crontab=daily, args='["Paris"]', kwargs='{"dry": false}', queue="orders")
    task("work days", crontab=crontab("0", "9", day_of_week="mon-fri", zone="Asia/Tokyo"))
    task("at night", crontab=crontab("30", "2"))
    task("first monday", crontab=crontab("0", "9", day_of_month="1-7", day_of_week="1"))
    task("second monday", crontab=crontab("0", "9", day_of_month="8-14", day_of_week="1"))
    task("second half", crontab=crontab("0", "9", day_of_month="16-31", day_of_week="1"))
    task("often", interval=quarter, priority=5, headers='{"tenant": "a"}', expire_seconds=60)
    task("from then on", interval=quarter, start_time=datetime(2030, 1, 1, tzinfo=UTC))
    task("half a second", interval=half)
    task("until then", crontab=daily, expires=datetime(2040, 1, 1, tzinfo=UTC))
    task("expired", crontab=daily, expires=datetime(2020, 1, 1, tzinfo=UTC))
    task("paused", crontab=daily, enabled=False, description="Not now.")
    task("christmas", clocked=clocked(2190), one_off=True)
    task("last christmas", clocked=clocked(2019), one_off=True)
    task("once", crontab=daily, one_off=True)
    task("has run", crontab=daily, one_off=True, total_run_count=1)
    task("routed", crontab=daily, exchange="media", routing_key="video")
    sunset = SolarSchedule.objects.create(event="sunset", latitude=48.85, longitude=2.35)
    task("sunset", solar=sunset)
    task("broken", crontab=daily)
    PeriodicTask.objects.filter(name="broken").update(args="[")


if __name__ == "__main__":
    main(sys.argv[1])
