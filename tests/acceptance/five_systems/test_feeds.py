"""GNAT: feeds that a reader factory reads since the last success.

The daemon runs all feeds at its start, a server fails and recovers, and all processes are killed.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from models.values import format_instant
from tests.acceptance.five_systems.readers import published
from tests.acceptance.five_systems.table import Table
from tests.acceptance.five_systems.taxii import Collection, taxii_server
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, python, until
from tests.factories import set_back

WATCHER = "ann@example.com"
HOUR = timedelta(hours=1)
RUNS = {"pending", "queued", "running", "success"}
UNAVAILABLE = "HTTPError: HTTP Error 503: Service Unavailable"
ROWS = [{"id": 1, "run": 1}, {"id": 2, "run": 2}]
STEPS = {"refresh": True, "publish": {"data": True}}


class Feeds:
    """A small app whose domain is a feed, and the action that fetches it."""

    def __init__(self, installation: Installation, collection: Collection) -> None:
        self.installation, self.collection = installation, collection
        processes = installation.processes
        processes.environment = {
            **processes.environment,
            "SCHED_SCHEDULER_TICK_SECONDS": "1",
            "SCHED_STEP_MODULES": "steps_for_tests,feed_readers",
            "PYTHONPATH": f"{Path(__file__).parent}:{processes.environment['PYTHONPATH']}",
        }
        source = {"reader": "indicators", "parameters": {"collection": collection.url}}
        domain = {"source": source, "mode": "append", "key": ["id"]}
        installation.cli("app", "add", "intel", "--trusted")
        app = {"name": "intel", "domains": {"indicators": domain}}
        installation.cli("app", "add", self.file("app", app))
        hooks = {"on_failure": [{"mail": WATCHER}], "alert_after": 3}
        # Due by the clock half an hour ago, and in half an hour: not while the test runs.
        begins = installation.now().replace(microsecond=0) - timedelta(hours=4, minutes=30)
        self.when = {"every": "PT1H", "starting_at": begins.isoformat()}
        self.uid = UUID(self.add("fetch", hooks=hooks))
        self.off = UUID(self.add("off", active=False))

    def file(self, name: str, document: dict[str, Any]) -> str:
        path = self.installation.file(f"{name}.json")
        path.write_text(json.dumps(document))
        return str(path)

    def add(self, name: str, **changes: Any) -> str:
        """Add a feed's action; return its uid."""
        document = {"name": name, "operations": STEPS, "when": self.when, **changes}
        [added] = self.installation.cli(
            "action", "add", self.file(name, document), "--app", "intel"
        )
        return str(added["uid"])

    def start(self, *options: str) -> None:
        """Start a daemon and a worker."""
        daemon = python(str(ROOT / "scheduler_server.py"), *options)
        self.installation.processes.start("daemon", daemon)
        self.installation.worker("quick,heavy,default")

    def kill(self) -> None:
        """Kill the daemon and the worker."""
        for one in self.installation.processes.started:
            one.kill()

    def check(self, when: dict[str, Any]) -> int:
        """Return the exit code of a check of a feed that is due so."""
        document = self.file("checked", {"name": "checked", "operations": STEPS, "when": when})
        command = self.installation.command("--app", "intel", "action", "check", document)
        return self.installation.processes.run(command).returncode

    def states(self, count: int) -> list[str]:
        """Return how the feed's runs ended, as soon as there are so many."""
        rows = self.installation.rows
        until(lambda: len(rows(self.uid)) >= count, f"{count} runs")
        return self.installation.all_end([row["id"] for row in rows(self.uid)])

    def run(self) -> str:
        """Run the feed by hand; return how that ended."""
        ran = self.installation.cli("action", "run", "fetch", "--app", "intel")
        return self.installation.all_end([UUID(ran["id"])])[0]

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.installation.cli("action", "show", "fetch", "--app", "intel")
        return shown

    def starts(self) -> list[str]:
        """Return when each run of the feed started, the oldest first."""
        rows = self.installation.rows(self.uid)
        return sorted(row["first_started_at"].isoformat().replace("+00:00", "Z") for row in rows)

    def data(self) -> list[dict[str, Any]]:
        """Return what readers of the small app see."""
        return published(self.installation, "intel", "indicators")

    def mails(self) -> int:
        return len(list((self.installation.home / "mail").glob("*.eml")))


@pytest.fixture
def feeds(installation: Installation) -> Iterator[Feeds]:
    with taxii_server() as collection:
        yield Feeds(installation, collection)


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_feed_is_read_since_its_last_success_whatever_fails_meanwhile(
    feeds: Feeds, table: Table
) -> None:
    reads_since_the_last_success(feeds, table)
    fails_and_recovers(feeds, table)
    keeps_to_its_grid(feeds, table)
    refuses_what_never_runs(feeds, table)


def reads_since_the_last_success(feeds: Feeds, table: Table) -> None:
    collection = feeds.collection
    collection.objects[1] = "2024-02-01T00:00:00Z"
    feeds.start("--run-now")
    table.tell("G26: `run_immediately` runs each job once", "`daemon --run-now`",
               feeds.states(1), ["success"])  # fmt: skip
    table.tell("G13: a disabled job is not run", "the same daemon",
               feeds.installation.rows(feeds.off), [])  # fmt: skip
    table.tell("G10, G12: never succeeded: a full backfill", "the server's log: `added_after`",
               collection.asked, ["2024-01-01T00:00:00Z"])  # fmt: skip
    collection.objects[2] = "2130-01-01T00:00:00Z"
    table.tell("G8, G17: the next run builds its reader anew", "`action run`",
               feeds.run(), "success")  # fmt: skip
    table.tell("G11: `last_success_iso` (c4: its end; here its start, so that no object is missed)",
               "the server's log: `added_after` is the first run's start",
               collection.asked[1:] == feeds.starts()[:1], True)  # fmt: skip
    table.tell("G9: the mapper has the context, too", "`app data`",
               feeds.data(), ROWS)  # fmt: skip


def fails_and_recovers(feeds: Feeds, table: Table) -> None:
    collection = feeds.collection
    collection.is_down = True
    table.tell("G15: the reader raises: failed", "the server answers 503; `action run` three times",
               [feeds.run() for _ in range(3)], ["failed"] * 3)  # fmt: skip
    shown = feeds.shown()
    table.tell("G19, G31: `consecutive_failures`, the error, `is_healthy`", "`action show`",
               (shown["failures_in_row"], shown["operations"][0]["error"], shown["is_healthy"]),
               (3, f"indicators: reader indicators: {UNAVAILABLE}", False))  # fmt: skip
    until(lambda: feeds.mails() == 4, lambda: f"{feeds.mails()} mails")
    table.tell("G15, G20: `on_failure` is called, and an alert is given at 3 in a row",
               "counted mails: three of failures, one alert", feeds.mails(), 4)  # fmt: skip
    second = feeds.starts()[1]
    table.tell("G18: only a success moves `last_success`",
               "the server's log: all three asked since the second run",
               collection.asked[2:] == [second] * 3, True)  # fmt: skip
    feeds.kill()
    feeds.start()
    collection.is_down = False
    collection.objects[3] = "2130-01-01T00:00:01Z"
    table.tell("c3: a restart forgets what was read; here nothing is forgotten",
               "SIGKILL of daemon and worker, start, `action run`; asked since the second run",
               (feeds.run(), collection.asked[5:] == [second]), ("success", True))  # fmt: skip
    shown = feeds.shown()
    until(lambda: feeds.mails() == 5, lambda: f"{feeds.mails()} mails")
    table.tell("G19: a success sets `consecutive_failures` to 0",
               "`action show`; a fifth mail tells of the recovery",
               (shown["failures_in_row"], shown["is_healthy"]), (0, True))  # fmt: skip
    table.tell("nothing is lost by the failure, nor is anything there twice", "`app data`",
               [row["id"] for row in feeds.data()], [1, 2, 3])  # fmt: skip


def keeps_to_its_grid(feeds: Feeds, table: Table) -> None:
    installation = feeds.installation
    begins = datetime.fromisoformat(feeds.when["starting_at"])
    table.tell("G21, G22: next is scheduled + interval (c2: until a run is late; here always)",
               "`action show` after six runs: the next grid point",
               feeds.shown()["next_occurrence_at"], format_instant(begins + 5 * HOUR))  # fmt: skip
    before = len(installation.rows(feeds.uid))
    set_back(installation.engine, feeds.uid, begins + HOUR + HOUR / 2)
    until(lambda: len(installation.rows(feeds.uid)) > before, "a tick looks back")
    late = [row for row in installation.rows(feeds.uid) if row["cause"] == "schedule"]
    table.tell("G23: down over three fires: one run when it is back; the others are `missed`",
               "the watermark set back by three hours, a tick",
               ["runs" if row["state"] in RUNS else row["state"] for row in late],
               ["missed", "missed", "runs"])  # fmt: skip


def refuses_what_never_runs(feeds: Feeds, table: Table) -> None:
    whens = ({"cron_rule": "not a cron"}, {"every": "PT0S"}, {"every": "-PT5S"})
    table.tell("c8: a bad cron rule, an interval of 0 or -5 s are accepted; here refused",
               "`action check`", [feeds.check(when) for when in whens], [2, 2, 2])  # fmt: skip
