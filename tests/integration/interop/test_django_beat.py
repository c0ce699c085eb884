"""Rows of django-celery-beat, made by Django itself and exported by the application."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from interop.beat import UNKNOWN
from interop.outcomes import Outcome
from minutebook.beat.entries import NOT_STORED, OTHERWISE
from tests.moved import ROOT, document, export, moved, names
from tests.tables import table

DJANGO = """
import json, os
import django
from celery import Celery
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_celery_beat"],
    USE_TZ=os.environ["USE_TZ"] == "1",
    TIME_ZONE="Europe/Paris",
    DATABASES={"default": json.loads(os.environ["DATABASE"])},
)
django.setup()
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
from django_celery_beat.schedulers import DatabaseScheduler
from django_celery_beat.tzcrontab import TzAwareCrontab

NOW = datetime(2026, 11, 22, 15, tzinfo=timezone.utc)


class Clocked(Celery):
    # Its clock stands still.

    def now(self):
        return NOW.astimezone(self.timezone)


app = Clocked("shop")
django.utils.timezone.now = lambda: NOW
TzAwareCrontab.nowfunc = lambda crontab: NOW.astimezone(crontab.tz)
DatabaseScheduler.Entry._default_now = lambda entry: entry.app.now()

def run(*_args, **_options):
    return None


app.task(name="shop.tasks.run")(run)


class Renaming(DatabaseScheduler.Entry):
    def __init__(self, model, app=None):
        super().__init__(model, app=app)
        self.task, self.args = "shop.tasks.renamed", ["of the entry"]
        self.options["queue"] = "of_the_entry"


class Renamed(DatabaseScheduler):
    Entry = Renaming


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


def filled(database: Mapping[str, Any]) -> None:
    """Let Django make and fill its tables in a database."""
    command = [sys.executable, "-P", "-m", "tests.django_beat", json.dumps(database)]
    subprocess.run(command, check=True, timeout=120, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})


def run(
    folder: Path, database: Mapping[str, Any], *options: str, **settings: str
) -> "subprocess.CompletedProcess[bytes]":
    (folder / "shop.py").write_text(DJANGO)
    return export(folder, *options, **{"USE_TZ": "1", **settings, "DATABASE": json.dumps(database)})


def exported(
    folder: Path, database: Mapping[str, Any], *options: str, **settings: str
) -> dict[str, Outcome]:
    """Return what becomes of the entries of the application, by their names."""
    done = run(folder, database, *options, **settings)
    assert done.returncode == 0, done.stderr.decode()
    return moved(json.loads(done.stdout))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("django") / "shop.db"


@pytest.fixture(scope="module")
def database(file: Path) -> Mapping[str, Any]:
    made = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(file)}
    filled(made)
    return made


@pytest.fixture(scope="module")
def found(
    database: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    return exported(tmp_path_factory.mktemp("shop"), database)


def test_each_kind_of_outcome(found: Mapping[str, Outcome]) -> None:
    assert names(found, "same") == {
        "work days", "at night", "first monday", "second monday", "second half", "often",
        "from then on",
        "paused", "christmas", "once", "routed",
    }  # fmt: skip
    assert names(found, "differs") == {"daily", "sunset", "set here", "until then"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("half a second", "0.5 s is not a whole number", id="half_a_second"),
        pytest.param("expired", "it expired at 2020-01-01T00:00:00Z", id="expired"),
        pytest.param("last christmas", "its time is past (2019-12-24", id="past"),
        pytest.param("has run", "it runs once, and has run", id="has_run"),
        pytest.param("broken", "its arguments are not JSON", id="broken"),
    ],
)
def test_what_is_refused(found: Mapping[str, Outcome], name: str, why: str) -> None:
    assert (found[name].kind, found[name].document) == ("cannot", None)
    assert why in found[name].why
    assert found[name].instead


def test_an_entry_of_beat_schedule_beside_the_rows_is_named(found: Mapping[str, Outcome]) -> None:
    assert (found["set here"].remarks, found["set here"].unknown) == ((NOT_STORED,), (UNKNOWN,))
    assert found["daily"].remarks == (OTHERWISE.format("task, args, schedule"),)
    assert not found["work days"].remarks


TASKS = "django_celery_beat_periodictask"


@pytest.mark.usefixtures("database")
def test_a_row_that_only_sqlite_takes_does_not_end_the_import(file: Path, tmp_path: Path) -> None:
    copied = tmp_path / "strange.db"
    copied.write_bytes(file.read_bytes())
    with closing(sqlite3.connect(copied)) as connection, connection:
        connection.execute(f"UPDATE {TASKS} SET start_time = 'soon' WHERE name = 'often'")
        connection.execute(f"UPDATE {TASKS} SET headers = '[' WHERE name = 'paused'")
        connection.execute(f"UPDATE {TASKS} SET crontab_id = NULL WHERE name = 'until then'")
    found = exported(tmp_path, {"ENGINE": "django.db.backends.sqlite3", "NAME": str(copied)})

    assert {found[name].kind for name in ("paused", "until then")} == {"cannot"}
    assert found["work days"].kind == "same"


def test_a_crontab_task(found: Mapping[str, Outcome]) -> None:
    headers = {"periodic_task_name": "daily"}
    step = {"args": ["Paris"], "kwargs": {"dry": False}, "queue": "orders", "headers": headers}

    assert document(found, "daily") == {
        "name": "daily",
        "owner": "import:beat",
        "operations": {"celery_task": {"task": "shop.tasks.run", **step}},
        "when": {"cron_rule": "30 7 * * *", "timezone": "Europe/Paris"},
        "policy": {"overlap": "allow"},
    }


@pytest.mark.parametrize(
    ("name", "when"),
    table(__file__, "rules_of_django_celery_beat"),
)
def test_rules(found: Mapping[str, Outcome], name: str, when: object) -> None:
    assert when == document(found, name)["when"]


def test_the_rest_of_a_row(found: Mapping[str, Outcome]) -> None:
    often = document(found, "often")["operations"]["celery_task"]
    paused = document(found, "paused")

    assert (often["queue"], often["priority"], often["expires"]) == ("shop", 5, 60)
    assert often["headers"] == {"tenant": "a", "periodic_task_name": "often"}
    assert (paused["active"], paused["description"]) == (False, "Not now.")
    assert document(found, "until then")["policy"]["ends_at"] == "2040-01-01T00:00:00Z"
    routed = document(found, "routed")["operations"]["celery_task"]
    assert (routed["exchange"], routed["routing_key"]) == ("media", "video")
    assert "queue" not in routed


def test_an_entry_of_the_application_decides_task_arguments_and_queue(
    database: Mapping[str, Any], tmp_path: Path
) -> None:
    found = exported(tmp_path, database, "-S", "shop:Renamed")

    assert found["at night"].kind == "same"
    step = document(found, "at night")["operations"]["celery_task"]
    assert (step["task"], step["args"], step["queue"]) == (
        "shop.tasks.renamed",
        ["of the entry"],
        "of_the_entry",
    )


def test_the_next_instants_are_those_of_the_entries_of_django_celery_beat(
    database: Mapping[str, Any], file: Path, tmp_path: Path
) -> None:
    before = file.read_bytes()

    done = run(tmp_path, database)

    written = {one["name"]: one.get("next_at") for one in json.loads(done.stdout)["entries"]}
    assert {name for name, instants in written.items() if not instants} == {
        "paused", "expired", "has run", "broken", "set here",
    }  # fmt: skip
    assert {len(instants) for name, instants in written.items() if instants} == {1, 5}
    assert file.read_bytes() == before


def test_times_without_a_zone_are_those_of_django(
    database: Mapping[str, Any], tmp_path: Path
) -> None:
    aware, naive = (
        exported(tmp_path, database, USE_TZ=use)["from then on"].document for use in "10"
    )

    assert aware is not None
    assert naive is not None
    starts = [datetime.fromisoformat(str(one["policy"]["starts_at"])) for one in (aware, naive)]
    assert starts[0] - starts[1] in {timedelta(hours=1), timedelta(hours=2)}


def test_a_database_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    nowhere = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "none" / "x.db")}
    done = run(tmp_path, nowhere)

    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(
        "error: the entries of django_celery_beat.schedulers.DatabaseScheduler cannot be read: Oper"
    )
