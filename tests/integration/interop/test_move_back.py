"""docs/how-to/move-back.md, carried out with the real schedulers of Celery.

Each runs in a process of its own, which is this file: only the clock of its application and its
waits are ours.
"""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, signals
from celery.schedules import crontab

from cron import CronSchedule
from tests.servers import Broker

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "move-back.md"
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
FORGET = {
    "beat": next(text for kind, text in BLOCKS if "celerybeat-schedule" in text),
    "django": next(text for kind, text in BLOCKS if "PeriodicTask" in text),
    "redbeat": next(text for kind, text in BLOCKS if "redbeat" in text),
}
SCHEDULE = {
    "half hours": {"task": "shop.half_hours", "schedule": crontab(minute="*/30")},
    "daily": {"task": "shop.daily", "schedule": crontab(minute="0", hour="7")},
    "weekly": {"task": "shop.weekly", "schedule": crontab("15", "9", day_of_week="mon")},
}
RULES = {
    "shop.half_hours": "*/30 * * * *",
    "shop.daily": "0 7 * * *",
    "shop.weekly": "15 9 * * mon",
}
# The old scheduler has run until then; Minutebook has run since, until the cut-over.
BEFORE, CUT_OVER = "2026-10-01T03:50:00+00:00", "2026-11-25T08:10:00+00:00"
HOURS = 2


class Old:
    def __init__(self, kind: str, folder: Path, redis: str) -> None:
        self.kind, self.folder, self.redis = kind, folder, redis
        self.runs(BEFORE)

    def runs(self, begin: str, step: str = "") -> list[tuple[str, datetime]]:
        """Return what it sends in two hours, to the minute."""
        asked = {
            "kind": self.kind, "begin": begin, "hours": HOURS, "folder": str(self.folder),
            "redis": self.redis, "step": step,
        }  # fmt: skip
        ran = subprocess.run(
            [sys.executable, __file__, json.dumps(asked)],
            cwd=self.folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return [
            (task, datetime.fromisoformat(at).replace(second=0, microsecond=0))
            for task, at in json.loads(ran.stdout)
            if task in RULES
        ]

    def forget(self) -> str:
        """Carry out the step of the page; return what is left for the scheduler's process."""
        step = FORGET[self.kind]
        if self.kind == "beat":
            subprocess.run(step, shell=True, cwd=self.folder, check=True)
            return ""
        return re.sub(r"redis://[^\"]+", self.redis, step)


@pytest.fixture(params=["beat", "django", "redbeat"])
def old(request: pytest.FixtureRequest, tmp_path: Path, broker: Broker) -> Old:
    return Old(request.param, tmp_path, broker.url)


def due() -> list[tuple[str, datetime]]:
    """Return what is due in the two hours after the cut-over."""
    begin = datetime.fromisoformat(CUT_OVER)
    end = begin.replace(hour=begin.hour + HOURS)
    return sorted(
        ((task, at) for task, rule in RULES.items()
         for at in CronSchedule(rule, "Europe/Paris").between(begin, end)),
        key=lambda one: one[1],
    )  # fmt: skip


def test_the_steps_of_the_page_leave_no_gap_and_send_nothing_twice(old: Old) -> None:
    sent = old.runs(CUT_OVER, old.forget())

    assert sent == due()


SCHEDULERS = {
    "beat": "celery.beat:PersistentScheduler",
    "django": "django_celery_beat.schedulers:DatabaseScheduler",
    "redbeat": "redbeat.schedulers:RedBeatScheduler",
}
MOST_S = 60.0


class Clocked(Celery):
    """An application whose clock stands still between the ticks."""

    at: datetime

    def now(self) -> datetime:
        return self.at.astimezone(self.timezone)


def main(asked: dict[str, Any]) -> None:
    """Make the asked scheduler, and let it tick: print what it sends, as JSON."""
    folder = Path(asked["folder"])
    app = Clocked("shop", broker="memory://", set_as_current=True)
    app.at = datetime.fromisoformat(asked["begin"])
    app.conf.update(
        timezone="Europe/Paris",
        beat_schedule_filename=str(folder / "celerybeat-schedule"),
        redbeat_redis_url=asked["redis"],
        redbeat_lock_key=None,
        beat_max_loop_interval=MOST_S,
    )
    if asked["kind"] == "django":
        _set_up_django(folder, app)
    app.conf.beat_schedule = SCHEDULE
    if asked.get("step"):
        exec(asked["step"], {"app": app, "folder": folder})
    sent: list[tuple[str, str]] = []

    @signals.before_task_publish.connect(weak=False)
    def _note(sender: Any = None, **_rest: Any) -> None:
        sent.append((sender, app.at.astimezone(UTC).isoformat()))

    _tick(app, asked["kind"], app.at + timedelta(hours=asked["hours"]))
    sys.stdout.write(json.dumps(sent))


def _set_up_django(folder: Path, app: Clocked) -> None:
    import django
    from django.conf import settings

    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "django.sqlite3")}
    settings.configure(
        DATABASES={"default": database},
        INSTALLED_APPS=["django_celery_beat"],
        USE_TZ=True,
        TIME_ZONE="Europe/Paris",
        CELERY_TIMEZONE="Europe/Paris",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    )
    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    timezone.now = lambda: app.at
    from django_celery_beat import schedulers
    from django_celery_beat.tzcrontab import TzAwareCrontab

    class Shown(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            at = app.now()
            return at.astimezone(tz) if tz else at.replace(tzinfo=None)

    schedulers.datetime = SimpleNamespace(datetime=Shown, timedelta=timedelta)
    TzAwareCrontab.nowfunc = lambda self: app.at.astimezone(self.tz)
    call_command("migrate", verbosity=0)


def _tick(app: Clocked, kind: str, until: datetime) -> None:
    from celery.utils.imports import symbol_by_name

    given = {"schedule_filename": app.conf.beat_schedule_filename} if kind == "beat" else {}
    scheduler = symbol_by_name(SCHEDULERS[kind])(app=app, **given)
    while app.at < until:
        waits = scheduler.tick()
        app.at += timedelta(seconds=min(max(1.0, float(waits or 0)), MOST_S))
    scheduler.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
