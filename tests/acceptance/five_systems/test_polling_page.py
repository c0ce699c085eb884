"""stop_sync_osm_atlas: a page that polls how fresh the data are, through every kind of run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.acceptance.five_systems.readers import published
from tests.acceptance.five_systems.table import Table
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.web_door import client, start_web
from tests.polling_page import PollingPage
from tests.web_source import Page, WebSource, web_source

# Long enough for a busy machine to renew, short enough to wait for its end.
LEASE_S = 4.0
SETTINGS = {
    "SCHED_SCHEDULER_TICK_SECONDS": "1",
    "SCHED_FETCH_ALLOW_PRIVATE": "true",
    "SCHED_STEP_MODULES": "steps_for_tests,pipeline_steps",
    "SCHED_WORKER_LEASE_S": str(LEASE_S),
}
DOMAINS = ("atlas", "osm")
DAY = timedelta(days=1)


class Pipeline:
    """The pipeline of a small app with two permalinks, its worker, and a page that polls."""

    def __init__(self, installation: Installation, source: WebSource) -> None:
        self.installation, self.source = installation, source
        before = installation.processes.environment
        path = f"{Path(__file__).parent}:{before['PYTHONPATH']}"
        installation.processes.environment = {**before, **SETTINGS, "PYTHONPATH": path}
        domains = {one: {"source": {"url": f"{source.url}/{one}.csv"}} for one in DOMAINS}
        steps = {"refresh": True, "publish": {"data": True}}
        update = {"name": "update", "operations": steps, "when": {"every": "PT24H"}}
        # Its source is a private address, and one of its steps is the users' own.
        installation.cli("app", "add", "stops", "--trusted")
        self.cli("app", "add", self.file({"name": "stops", "domains": domains}))
        self.added_at = installation.now()
        self.cli("action", "add", self.file({**update, "policy": {"expected": "PT150S"}}))
        _, self.address = start_web(installation)
        self.worker = installation.worker("heavy", is_awaited=True)

    def cli(self, *arguments: str) -> Any:
        """Run a command for the small app."""
        return self.installation.cli(*arguments, "--app", "stops")

    def file(self, document: dict[str, Any]) -> str:
        """Write a document; return its path."""
        path = self.installation.file(f"{document['name']}.json")
        path.write_text(json.dumps(document))
        return str(path)

    def serve(self, name: str, version: int, trickle_s: float = 0) -> None:
        """Serve a permalink in a version, which its ETag names."""
        body = f"version\n{version}\n".encode()
        tag = {"ETag": f'"{version}"'}
        self.source.pages[f"/{name}.csv"] = Page(body, headers=tag, trickle_s=trickle_s)

    def take_away(self, *names: str) -> None:
        """Let permalinks lead nowhere."""
        for name in names:
            del self.source.pages[f"/{name}.csv"]

    def downloads(self) -> list[int]:
        """Return how often each permalink was downloaded."""
        return [self.source.downloads(f"/{name}.csv") for name in DOMAINS]

    def begin(self, name: str = "update") -> UUID:
        """Run the pipeline by hand."""
        return UUID(self.cli("action", "run", name)["id"])

    def ends(self, id: UUID | None = None) -> str:
        """Wait for the end of a run, of a new one without `id`; return its state."""
        return self.installation.all_end([id or self.begin()])[0]

    def versions(self) -> list[int]:
        """Return the versions that readers see."""
        found = [published(self.installation, "stops", name) for name in DOMAINS]
        return [row["version"] for rows in found for row in rows]

    @contextmanager
    def held_in_import(self) -> Iterator[None]:
        """Let whoever imports wait at the end of it."""
        with self.installation.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE snapshots IN SHARE MODE")
            yield


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_page_that_polls_sees_every_kind_of_run(installation: Installation, table: Table) -> None:
    with web_source() as source:
        pipeline = Pipeline(installation, source)
        for name in DOMAINS:
            pipeline.serve(name, 1)
        with client(installation, pipeline.address, role="viewer") as (api,):
            page = PollingPage(api, "stops")
            is_complete(pipeline, page, table)
            is_cached_and_bootstrapped(pipeline, page, table)
            takes_long_and_is_killed(pipeline, page, table)
            fails(pipeline, page, table)


def is_complete(pipeline: Pipeline, page: PollingPage, table: Table) -> None:
    pipeline.installation.tick()
    table.tell("A30, A38: a page polls, every 10 s when idle", "before the first run",
               page.overlay(), ("empty", None, False))  # fmt: skip
    due = datetime.fromisoformat(page.shown["next_run_at"])
    table.tell("A13: first due at T0 + 24 h (c4: null before the start; here never)", "next_run_at",
               abs(due - pipeline.added_at - DAY) < timedelta(seconds=5), True)  # fmt: skip
    pipeline.serve("osm", 1, trickle_s=1)
    with pipeline.held_in_import():
        first = pipeline.begin()
        until(lambda: page.poll()["eta_s"] is not None, "an estimate")
        table.tell("A7, A8: a phase that changes nothing covers nothing",
                   "polled while it downloads",
                   page.overlay(), ("running", "download", False))  # fmt: skip
        table.tell("A34: a first run takes about 150 s", "`policy.expected`: PT150S; eta_s",
                   140 < page.shown["eta_s"] <= 150, True)  # fmt: skip
        table.tell("A33: a run shows the next fire already", "next_run_at, polled meanwhile",
                   datetime.fromisoformat(page.shown["next_run_at"]) == due, True)  # fmt: skip
        pipeline.source.pages["/osm.csv"].trickle_s = 0
        until(lambda: page.poll()["phase"] == "import", "it imports")
        table.tell("A8: `import` covers the page", "polled while it imports",
                   page.overlay(), ("running", "import", True))  # fmt: skip
    pipeline.ends(first)
    row = pipeline.installation.row(first)
    done = row["steps"][0]["details"]
    table.tell("A3, A29: `complete` rewrites all", "`operation show` of it",
               (row["state"], done["run_type"], done["rewritten"]),
               ("success", "complete", list(DOMAINS)))  # fmt: skip


def is_cached_and_bootstrapped(pipeline: Pipeline, page: PollingPage, table: Table) -> None:
    assert pipeline.ends() == "success"
    page.poll()
    table.tell("A4, A10, A11: equal validators: nothing is downloaded", "`action run`",
               (page.shown["run_type"], page.shown["reused"], pipeline.downloads()),
               ("cached", list(DOMAINS), [1, 1]))  # fmt: skip
    snapshots = pipeline.installation.home / "snapshots" / "stops" / "osm"
    for file in snapshots.rglob("*.*"):
        file.unlink()
    assert pipeline.ends() == "success"
    table.tell("A5: unchanged, but files are missing: `bootstrap`", "the files of osm removed",
               (*page.overlay(), page.shown["run_type"], page.shown["rewritten"]),
               ("ready", None, False, "bootstrap", ["osm"]))  # fmt: skip


def takes_long_and_is_killed(pipeline: Pipeline, page: PollingPage, table: Table) -> None:
    gate = pipeline.installation.file("go on")
    steps, once = {"match_import": {"until": str(gate)}}, {"cron_rule": "0 0 1 1 *"}
    document = {"name": "match-import", "operations": steps, "when": once}
    pipeline.cli("action", "add", pipeline.file({**document, "policy": {"expected": "PT1S"}}))
    id = pipeline.begin("match-import")
    until(lambda: page.poll()["is_longer_than_usual"], "it takes long")
    table.tell("A9, A31: `match-import`, a step of their own; elapsed and ETA",
               "held in `import`, expected to take a second: longer than usual",
               (*page.overlay(), page.shown["eta_s"]),
               ("running", "import", True, None))  # fmt: skip
    again = pipeline.installation.command("--app", "stops", "action", "run", "match-import")
    table.tell("A22, A37: `Another pipeline run is already active`, exit code 2",
               "`action run` meanwhile",
               pipeline.installation.processes.run(again).returncode, 2)  # fmt: skip
    pipeline.worker.kill()
    until(lambda: not page.poll()["blocking_maintenance"], "the page is uncovered")
    row = pipeline.installation.row(id)
    silent = pipeline.installation.now() - row["heartbeat_at"]
    table.tell("A26: a crash covers the page until the TTL of 4 h ends; here a lease long",
               f"SIGKILL of the worker, no daemon, a lease of {LEASE_S:g} s",
               (row["state"], row["attempt"], silent < timedelta(seconds=LEASE_S + 2)),
               ("running", 1, True))  # fmt: skip
    gate.touch()
    pipeline.installation.daemon()
    pipeline.installation.worker("heavy")
    table.tell("A27, c6: a crash blocks later runs; here another worker goes on",
               "a daemon, a worker",
               (pipeline.ends(id), pipeline.installation.row(id)["losses"]),
               ("success", 1))  # fmt: skip


def fails(pipeline: Pipeline, page: PollingPage, table: Table) -> None:
    before = page.poll()
    pipeline.take_away("osm")
    pipeline.serve("atlas", 2)
    table.tell("A41: nothing is destroyed before all downloads succeed",
               "one of two permalinks is gone: partial, `publish` is skipped",
               (pipeline.ends(), pipeline.versions()), ("partial", [1, 1]))  # fmt: skip
    pipeline.take_away("atlas")
    table.tell("A39: `failed`, with `last_error`; the page is uncovered", "both are gone",
               (pipeline.ends(), *page.overlay(), "atlas" in page.shown["last_error"]),
               ("failed", "failed", None, False, True))  # fmt: skip
    table.tell("A43: a failed run does not move `data_updated_at`, nor the next fire",
               "polled after it",
               [page.shown[key] == before[key] for key in ("data_updated_at", "next_run_at")],
               [True, True])  # fmt: skip
    for name in DOMAINS:
        pipeline.serve(name, 3)
    table.tell("A44: the next run starts afresh", "both are back",
               (pipeline.ends(), *page.overlay(), pipeline.versions()),
               ("success", "ready", None, False, [3, 3]))  # fmt: skip
