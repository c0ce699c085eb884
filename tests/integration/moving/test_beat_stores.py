"""`python -m minutebook export` of applications with django-celery-beat or RedBeat."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.beat import PersistentScheduler
from celery.schedules import crontab, schedule
from redbeat import RedBeatSchedulerEntry
from redbeat.schedules import rrule
from redis import Redis

from minutebook.beat.entries import NOT_STORED, OTHERWISE
from minutebook.beat.stores import stored_entries
from models.action.document import ParseContext
from moving import django_beat
from moving.beat_file import entries_of
from moving.django_beat.tables import read_tables
from moving.foreign_database import foreign_database
from moving.outcomes import Outcome, outcomes
from moving.phases import UNKNOWN
from moving.redbeat import keys as redbeat
from tasks.built_in import built_in_steps
from tests.integration.moving.test_django_beat import filled
from tests.servers import Broker

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)
ROOT = Path(__file__).parents[3]
DJANGO = """
import json, os
import django
from celery import Celery
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_celery_beat"],
    USE_TZ=os.environ["USE_TZ"] == "1",
    TIME_ZONE="Europe/Paris",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
)
django.setup()
from zoneinfo import ZoneInfo
from django_celery_beat.tzcrontab import TzAwareCrontab

app = Celery("shop")


class Once(app.Task):
    def apply_async(self, *args, **kwargs):
        return super().apply_async(*args, **kwargs)


def run(*_args, **_options):
    return None


app.task(name="shop.tasks.run", base=Once if "ONCE" in os.environ else None)(run)
app.conf.update(
    beat_scheduler="django_celery_beat.schedulers:DatabaseScheduler",
    task_default_queue="shop",
    beat_schedule={
        "set here": {"task": "shop.tasks.run", "schedule": 60.0},
        "daily": {"task": "shop.tasks.other", "schedule": 60.0, "kwargs": {"dry": False}},
        "work days": {
            "task": "shop.tasks.run",
            "schedule": TzAwareCrontab([0], "9", "1-5", tz=ZoneInfo("Asia/Tokyo")),
        },
    },
)
"""
REDBEAT = """
import os
from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker="memory://")
app.conf.update(
    beat_scheduler="redbeat.RedBeatScheduler",
    redbeat_redis_url=os.environ["REDIS"],
    redbeat_key_prefix="shop[1]:",
    timezone="Europe/Paris",
    task_routes={"shop.tasks.routed": {"queue": "orders", "priority": 7}},
    beat_schedule={
        "set here": {"task": "shop.tasks.run", "schedule": 60.0},
        "often": {"task": "shop.tasks.run", "schedule": 60.0},
        "routed": {"task": "shop.tasks.routed", "schedule": crontab([5], 0)},
    },
)
"""


def run(folder: Path, code: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "shop.py").write_text(code)
    command = [sys.executable, "-P", "-m", "minutebook", "export", "-A", "shop"]
    environment = {"PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, timeout=60
    )


def exported(folder: Path, code: str, **settings: str) -> dict[str, Outcome]:
    """Return what becomes of the entries of an application, by their names."""
    done = run(folder, code, **settings)
    assert done.returncode == 0, done.stderr.decode()
    made = json.loads(done.stdout)
    if "DATABASE" in settings:
        # Its rows are those of that instant.
        made["written_at"] = NOW.isoformat()
        for one in made["entries"]:
            one.pop("next_at", None)
    entries = entries_of(made, "beat.json", NOW)
    return {one.name: one for one in outcomes(entries, CONTEXT)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("django") / "shop.db"
    filled({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)})
    return path


def test_the_rows_of_django_celery_beat_become_what_its_tables_become(
    database: Path, tmp_path: Path
) -> None:
    before = database.read_bytes()
    found = exported(tmp_path, DJANGO, DATABASE=str(database), USE_TZ="1")
    with foreign_database(f"sqlite:///{database}") as connection:
        tables = read_tables(connection)
    read = outcomes(django_beat.entries_of(tables, NOW, "shop"), CONTEXT)

    assert found.pop("set here").remarks == (UNKNOWN, NOT_STORED)
    assert found.pop("daily").remarks == (OTHERWISE.format("task, args, schedule"),)
    assert not found["work days"].remarks
    by_name = {one.name: one for one in read if one.name != "daily"}
    assert found == {name: _read_by(one, found[name]) for name, one in by_name.items()}
    assert database.read_bytes() == before


def _read_by(one: Outcome, other: Outcome) -> Outcome:
    """Return what the tables become, with the place and the instant at which it was read."""
    document = _of_beat(one.document)
    return replace(one, where=other.where, document=document, upcoming=other.upcoming)


def _of_beat(document: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if document is None else {**document, "owner": "import:beat"}


def test_a_row_whose_task_has_a_class_of_its_own_says_so(database: Path, tmp_path: Path) -> None:
    found = exported(tmp_path, DJANGO, DATABASE=str(database), USE_TZ="1", ONCE="1")

    assert found["work days"].kind == "differs"
    (remark,) = [one for one in found["work days"].remarks if "class" in one]
    assert remark.startswith("its class shop.Once overrides apply_async, which Minutebook does not")


def test_the_next_instants_are_those_of_the_entries_of_django_celery_beat(
    database: Path, tmp_path: Path
) -> None:
    before = database.read_bytes()

    done = run(tmp_path, DJANGO, DATABASE=str(database), USE_TZ="1")

    written = {one["name"]: one.get("next_at") for one in json.loads(done.stdout)["entries"]}
    assert {name for name, instants in written.items() if not instants} == {
        "paused", "expired", "has run", "broken", "set here",
    }  # fmt: skip
    assert {len(instants) for name, instants in written.items() if instants} == {1, 5}
    assert database.read_bytes() == before


def test_times_without_a_zone_are_those_of_django(database: Path, tmp_path: Path) -> None:
    aware, naive = (
        exported(tmp_path, DJANGO, DATABASE=str(database), USE_TZ=use)["from then on"].document
        for use in "10"
    )

    assert aware is not None
    assert naive is not None
    starts = [datetime.fromisoformat(str(one["policy"]["starts_at"])) for one in (aware, naive)]
    assert starts[0] - starts[1] in {timedelta(hours=1), timedelta(hours=2)}


def test_a_database_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, DJANGO, DATABASE=str(tmp_path / "none" / "x.db"), USE_TZ="1")

    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(
        "error: the entries of django_celery_beat.schedulers:DatabaseScheduler cannot be read: Oper"
    )


@pytest.fixture
def app(broker: Broker) -> Iterator[Celery]:
    """The application, as RedBeat's own process has it."""
    app = Celery("shop", broker=broker.url, set_as_current=False)
    app.conf.update(
        timezone="Europe/Paris", redbeat_redis_url=broker.url, redbeat_key_prefix="shop[1]:"
    )
    yield app
    app.close()


def everything(client: Redis) -> Mapping[str, object]:
    return {key: client.dump(key) for key in client.scan_iter("*")}


def test_the_keys_of_redbeat_are_read_with_the_routes_of_the_application(
    app: Celery, broker: Broker, tmp_path: Path
) -> None:
    def save(name: str, schedule: object, task: str = "run", **rest: Any) -> None:
        RedBeatSchedulerEntry(name, f"shop.tasks.{task}", schedule, app=app, **rest).save()

    save("daily", crontab("5", 0), args=["Paris"], options={"priority": 3})
    save("often", schedule(timedelta(minutes=15)), enabled=False)
    save("routed", crontab("5", 0), task="routed")
    save("by rule", rrule("WEEKLY", NOW, byweekday=[0, 2]))
    save("at an instant", crontab("5", 0), kwargs={"day": NOW})
    with Redis.from_url(broker.url) as client:
        client.hset("shop[1]:broken", "definition", "{")
        before = everything(client)
        found = exported(tmp_path, REDBEAT, REDIS=broker.url)
        assert everything(client) == before

    kinds = {name: one.kind for name, one in found.items()}
    assert kinds == {
        "daily": "same", "often": "differs", "routed": "same", "set here": "differs",
        "by rule": "same",
        "at an instant": "cannot", "broken": "cannot",
    }  # fmt: skip
    assert found["often"].remarks == (OTHERWISE.format("schedule"),)
    routed = found["routed"].document or {}
    step = {"task": "shop.tasks.routed", "queue": "orders", "priority": 7}
    assert routed["operations"]["celery_task"] == step
    definitions = redbeat.read_definitions(broker.url, "shop[1]:")
    shop = redbeat.Application("Europe/Paris", "celery", {}, NOW)
    read = outcomes(redbeat.entries_of(definitions, shop), CONTEXT)
    daily = next(one for one in read if one.name == "daily")
    assert found["daily"].document == _of_beat(daily.document)


class Elsewhere(PersistentScheduler):
    """A scheduler that keeps entries where nothing of ours can look."""


def test_another_scheduler_is_named_beside_what_is_set_here() -> None:
    (only,) = stored_entries(Celery("shop", set_as_current=False), Elsewhere)

    assert only["broken"] == (
        f"what the scheduler {__name__}.Elsewhere keeps or changes itself is not read"
    )
    assert not list(stored_entries(Celery("shop", set_as_current=False), PersistentScheduler))
