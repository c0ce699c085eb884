"""Run a scheduler of Celery on a clock that is given: print what it sends, as JSON.

    python old_beat.py '{"kind": "beat", "begin": "…", "hours": 2, "folder": "…", "redis": "…"}'

It is the real scheduler: only the clock of its application and its waits are ours.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from celery import Celery, signals

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
    """Make the asked scheduler, with `setup` of the folder's schedule.py, and let it tick."""
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
    names: dict[str, Any] = {}
    exec((folder / "schedule.py").read_text(), names)
    app.conf.beat_schedule = names["beat_schedule"]
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
