"""A Django project with forty periodic tasks moves while it runs: none is lost or doubled.

Its libraries lie in an environment of their own, tables in PostgreSQL, messages in RabbitMQ;
beat, worker and daemon are real, and so are the minutes: it takes six. `make test-matrix` runs it.
"""

import json
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from minutebook.beat.entries import BY_THE_WALL
from models.values import format_instant
from runtime.clock import utc_now
from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.packages.environments import Environment, make_environment, python_of
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker, PostgreSQL

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1_500)]
FILES = Path(__file__).parent / "django_shop"
ROOT = Path(__file__).parents[2]
LIBRARIES = (
    "celery==5.3.6", "ephem~=4.1", "kombu~=5.3.7", "redis~=4.6.0", "Django~=4.2.20",
    "django-celery-beat==2.7.0", "psycopg[binary]~=3.1",
)  # fmt: skip
MINUTE = timedelta(minutes=1)
# Beat itself adds a task that cleans up results.
CLEANUP = "celery.backend_cleanup"
ALLOWED = {"SCHED_CELERY_TASKS": f"shop.*,{CLEANUP}"}
EACH_MINUTE = {*(f"each minute {n}" for n in range(4)), "each minute in Tokyo", "each 60 seconds"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("django") / "env", python_of("3.11"))
    made.install(*LIBRARIES, is_offline=False)
    return made


class Project:
    """The Django project, its tables and its journal."""

    def __init__(
        self, installation: Installation, environment: Environment, postgresql: PostgreSQL
    ) -> None:
        self.installation = installation
        self.python = str(environment.bin / "python")
        self.folder = installation.home / "django_shop"
        shutil.copytree(FILES, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.journal = self.folder / "journal.jsonl"
        database = postgresql.django_database("django_shop")
        self.settings = {
            "SHOP_BROKER_URL": installation.settings.effective_broker_url,
            "SHOP_JOURNAL": str(self.journal),
            "SHOP_DATABASE": json.dumps(database),
            "PYTHONPATH": "",
        }

    def fill(self) -> dict[str, str]:
        """Make the tables and the tasks; return what should become of each."""
        command = [self.python, "fill.py"]
        done = self.installation.processes.run(command, self.settings, self.folder)
        assert done.returncode == 0, done.stderr
        kinds: dict[str, str] = json.loads(done.stdout)
        return kinds

    def celery(self, *arguments: str) -> Process:
        """Start a process of Celery."""
        command = [self.python, "-m", "celery", "-A", "shop", *arguments, "-l", "INFO"]
        return self.installation.processes.start(
            arguments[0], command, self.settings, folder=self.folder
        )

    def lines(self) -> list[dict[str, Any]]:
        """Return what the tasks wrote, whole lines only."""
        if not self.journal.exists():
            return []
        lines = self.journal.read_text().splitlines(keepends=True)
        return [json.loads(one) for one in lines if one.endswith("\n")]

    def ran(self) -> Counter[tuple[str, datetime]]:
        """Return how often each task of each minute ran in it."""
        return Counter(
            (line["name"], datetime.fromtimestamp(line["at"] // 60 * 60, UTC))
            for line in self.lines()
            if line["name"] in EACH_MINUTE
        )

    def has_run(self, minute: datetime) -> bool:
        """Return whether all tasks of each minute have run in this one."""
        return all(self.ran()[name, minute] for name in EACH_MINUTE)

    def waits_for(self, minute: datetime) -> None:
        """Wait until all tasks of each minute have run in this one."""
        until(lambda: self.has_run(minute), lambda: f"{minute}: {self.ran()}", timeout_s=200)

    def exported(self) -> Path:
        """Let the application write its schedule; return the file."""
        file = self.folder / "beat.json"
        scheduler = "django_celery_beat.schedulers:DatabaseScheduler"
        command = [self.python, "-P", "-m", "minutebook", "export", "-A", "shop", "-S", scheduler]
        its = {**self.settings, "PYTHONPATH": str(ROOT)}
        done = self.installation.processes.run([*command, "-o", str(file)], its, self.folder)
        assert done.returncode == 0, done.stderr
        return file

    def cut_over(self, beat: Process) -> tuple[datetime, Any]:
        """Import the tasks, and stop beat in the last minute before; return cut and report."""
        # Two minutes ahead: time enough to import.
        cut = minute_of(utc_now()) + 2 * MINUTE
        file = self.exported()
        command = ("--json", "import", "beat", str(file), "--apply")
        arguments = self.installation.command(*command, "--cut-over", format_instant(cut))
        done = self.installation.processes.run(arguments, ALLOWED)
        assert done.returncode == 1, done.stderr
        self.waits_for(cut - MINUTE)
        beat.send(signal.SIGTERM)
        beat.ended()
        assert utc_now() < cut, "this machine was too slow to stop beat before the cut"
        return cut, json.loads(done.stdout)


@pytest.fixture
def installation(
    home_of: Callable[[str], Settings], rabbitmq: RabbitMQ, broker: Broker
) -> Iterator[Installation]:
    """An installation that shares the application's RabbitMQ."""
    its = {"broker_url": SecretStr(rabbitmq.url)}
    made = Installation("postgresql", home_of("postgresql").model_copy(update=its), broker)
    try:
        yield made
    finally:
        made.close()


def test_forty_periodic_tasks_are_cut_over_while_they_run(
    installation: Installation, environment: Environment, postgresql: PostgreSQL
) -> None:
    project = Project(installation, environment, postgresql)
    kinds = project.fill()
    assert len(kinds) == 40
    project.celery("worker", "-c", "2", "-Q", "shop,urgent,videos").said("ready.")
    beat = project.celery("beat", "-S", "django_celery_beat.schedulers:DatabaseScheduler")
    installation.daemon(ALLOWED)
    first = minute_of(utc_now()) + MINUTE
    project.waits_for(first)

    cut, report = project.cut_over(beat)
    last = cut + 2 * MINUTE
    project.waits_for(last)

    minutes = [first + number * MINUTE for number in range((last - first) // MINUTE + 1)]
    ran = project.ran()
    once = {(name, minute): 1 for name in EACH_MINUTE for minute in minutes}
    assert {pair: ran[pair] for pair in once} == once
    by_us = [line for line in project.lines() if line["at"] >= cut.timestamp()]
    assert {line["periodic_task_name"] == line["name"] for line in by_us} == {True}
    routes = {line["name"]: line["route"] for line in by_us}
    its = {name: routes[name] for name in ("each minute in Tokyo", "each minute 3")}
    assert [(one["exchange"], one["routing_key"], one["priority"]) for one in its.values()] == [
        ("media", "video.short", None), ("", "urgent", 3),
    ]  # fmt: skip
    reported_as(report, kinds)


def reported_as(report: Any, kinds: dict[str, str]) -> None:
    """Check what the report says of each task.

    This release of Celery counts intervals by the wall clock, which each of them says.
    """
    entries = [{**one, "remarks": _own_remarks(one)} for one in report["entries"]]
    same = {one["name"] for one in entries if not one["remarks"] and _goes_on_alike(one)}
    outcomes = {
        one["name"]: "same"
        if one["outcome"] == "differs" and one["name"] in same
        else one["outcome"]
        for one in entries
    }
    assert outcomes == {**kinds, CLEANUP: "same"}
    assert len([one for one in entries if one["next_in_original"]]) > 25


def _goes_on_alike(entry: Any) -> bool:
    """Return whether they differ by a run at once alone, and by what an interval counts from.

    Beat writes what ran every three minutes; until then a task seems overdue.
    """
    when = (entry["document"] or {}).get("when", {})
    later = (entry["next_in_original"] or [])[1:]
    return not entry["next_differing"] or "every" in when or later == entry["next_in_action"][:-1]


def _own_remarks(entry: Any) -> list[str]:
    return [one for one in entry["remarks"] if one != BY_THE_WALL.format("Europe/Paris")]


def minute_of(at: datetime) -> datetime:
    """Return the full minute that an instant lies in."""
    return at.replace(second=0, microsecond=0)
