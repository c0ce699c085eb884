"""The Go scheduler: jobs that workers in any language ask for over HTTP, with curl and Node."""

import json
import shutil
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from hashlib import sha1
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models import tables
from models.values import format_instant
from runtime.database import reading
from tests.acceptance.five_systems.table import Table
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, Process, until
from tests.acceptance.web_door import start_web
from tests.web_source import Page, WebSource, web_source

EXAMPLES = ROOT / "examples" / "jobs"
# A worker counts as lost soon, and an answer waits for a job only as long as a test should.
SETTINGS = {
    "SCHED_SCHEDULER_TICK_SECONDS": "1",
    "SCHED_WORKER_LEASE_S": "4",
    "SCHED_WORK_POP_TIMEOUT_S": "2",
    "SCHED_LOG_FORMAT": "json",
}
YEARLY = {"cron_rule": "0 0 1 1 *"}


class Scheduler:
    """The scheduler's processes, and curl as its client."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        installation.daemon(SETTINGS)
        self.web, self.url = start_web(installation, SETTINGS)
        self.token = installation.cli("token", "create", "--role", "worker")["token"]

    def served(self) -> int:
        """Return how many servers are asked for jobs."""
        with reading(self.installation.engine) as connection:
            query = sa.select(sa.func.count()).select_from(tables.workers)
            return int(connection.execute(query).scalar_one())

    def curl(self, path: str, said: Any = None) -> tuple[int, Any]:
        """Ask with curl; return the status and the JSON of the answer."""
        config = self.installation.file("curl.conf")
        config.write_text(f'header = "Authorization: Bearer {self.token}"\n')
        body = () if said is None else ("--data", json.dumps(said))
        command = ("curl", "-s", "--config", str(config), "-w", "\n%{http_code}", *body)
        done = self.installation.processes.run([*command, self.url + path])
        text, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text) if text else None

    def next(self) -> dict[str, Any]:
        """Return the next job."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            status, job = self.curl("/jobs/next")
            found.extend([job] if status == 200 else [])
            return bool(found)

        until(is_there, "a job")
        return found[0]

    def report(self, job: Mapping[str, Any], verb: str, **said: Any) -> int:
        """Report a job with curl; return the status."""
        return self.curl(f"/jobs/{job['id']}/{verb}", {"lease": job["lease"], **said})[0]

    def imported(self, *jobs: dict[str, Any]) -> str:
        """Import jobs from a file; return what the command says."""
        file = self.installation.file("jobs.json")
        file.write_text(json.dumps(jobs))
        command = self.installation.command("job", "import", "--file", str(file))
        return self.installation.processes.run(command).stdout.strip()

    def listed(self) -> dict[str, dict[str, Any]]:
        """Return the jobs that `job list` shows, by URL."""
        return {one["url"]: one for one in self.installation.cli("job", "list")}

    def next_after_end(self, url: str) -> datetime:
        """Return when a job that counts from its end is due next, as `action next` decides it."""
        first, *_ = self.installation.cli("action", "next", self.listed()[url]["id"])
        return datetime.fromisoformat(first["utc"])

    def add(self, url: str, when: dict[str, Any], **policy: Any) -> UUID:
        """Add a job as an action with a policy; return its uid."""
        document = {"name": f"of {url}", "operations": {"job": {"url": url}}, "when": when}
        file = self.installation.file("job.json")
        file.write_text(json.dumps({**document, "policy": policy}))
        [added] = self.installation.cli("action", "add", str(file))
        return UUID(added["uid"])

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the events of that name in the log of web."""
        lines = [json.loads(line) for line in self.web.text().splitlines() if line[:1] == "{"]
        return [one for one in lines if one.get("event") == event]


@pytest.fixture
def scheduler(installation: Installation) -> Scheduler:
    return Scheduler(installation)


@pytest.mark.parametrize("store", ["postgresql"])
def test_curl_is_handed_jobs_and_reports_each_once(scheduler: Scheduler, table: Table) -> None:
    unread = scheduler.add("https://example.com/unread", {"every": "PT5S"}, queue="nobody")
    is_imported(scheduler, table)
    is_handed_out_and_reported(scheduler, table)
    counts_from_the_end(scheduler, table)
    rows = scheduler.installation.rows
    until(lambda: len(rows(unread)) > 1, "one more is due")
    waiting = [row for row in rows(unread) if row["finished_at"] is None]
    table.tell("S31, c1: the queue fills up if nobody works; here a job has one open run",
               "a job every 5 s that no worker asks for, until the next is due",
               len(waiting), 1)  # fmt: skip
    stops(scheduler, table)


def is_imported(scheduler: Scheduler, table: Table) -> None:
    urls = [f"https://example.com/{name}" for name in "abc"]
    jobs = [{"url": url, "interval_s": 300, "meta": {"depth": "2"}} for url in urls]
    table.tell("S13: bulk import of `url`, `interval_s`, `meta`", "`job import --file jobs.json`",
               scheduler.imported(*jobs), "3 jobs created, 0 changed, 0 unchanged")  # fmt: skip
    listed = scheduler.listed()
    due = [datetime.fromisoformat(listed[url]["next_run_at"]) for url in urls]
    table.tell("S14: first runs are spread over the interval", "`job list`, in seconds",
               [int((one - due[0]).total_seconds()) for one in due], [0, 100, 200])  # fmt: skip
    table.tell("S25: the id is the URL's SHA-1, cut to 12", "`job list`",
               [listed[url]["id"] for url in urls],
               [sha1(url.encode()).hexdigest()[:12] for url in urls])  # fmt: skip
    table.tell("S26: importing again overwrites no next run", "`job import` once more",
               (scheduler.imported(*jobs), scheduler.listed() == listed),
               ("0 jobs created, 0 changed, 3 unchanged", True))  # fmt: skip


def is_handed_out_and_reported(scheduler: Scheduler, table: Table) -> None:
    job = scheduler.next()
    table.tell("S17: 200 with id, url, interval_s, meta", "`curl /jobs/next`",
               [job[key] for key in ("url", "interval_s", "meta")],
               ["https://example.com/a", 300, {"depth": "2"}])  # fmt: skip
    table.tell("S24: a body over 4 KB is rejected", "`curl /complete` with 5,000 bytes",
               scheduler.report(job, "complete", result={"page": "x" * 5_000}), 413)  # fmt: skip
    clocks = {"scheduled_at": 1710423000, "picked_up_at": 1710423005}
    table.tell("S20: `complete` is answered with 204", "`curl /complete`",
               scheduler.report(job, "complete", **clocks), 204)  # fmt: skip
    table.tell("c8: a second report reschedules again; here it changes nothing",
               "the same once more, `/error` of it, and of an unknown job",
               (scheduler.report(job, "complete"), scheduler.report(job, "error", error="late"),
                scheduler.report({**job, "id": "0123456789ab"}, "error", error="?")),
               (409, 409, 404))  # fmt: skip
    table.tell("S18: 204 if there is none in time", "`curl /jobs/next`",
               scheduler.curl("/jobs/next"), (204, None))  # fmt: skip
    (logged,) = scheduler.logged("job_complete")
    begun = datetime.fromisoformat(job["scheduled_at"])
    after = format_instant(begun + timedelta(seconds=300))
    table.tell("S23, S27: `job_complete` with job_id, duration_ms, wait_ms, next_run_at",
               "web's log; the next run is on the grid (S20: now + interval + jitter)",
               [logged[key] for key in ("job_id", "wait_ms", "next_run_at")],
               [job["id"], 5_000, after])  # fmt: skip


def counts_from_the_end(scheduler: Scheduler, table: Table) -> None:
    url = "https://example.com/old"
    old = {"url": url, "interval_s": 300, "from_end": True, "jitter_s": 30, "jitter_each": True}
    later = format_instant(scheduler.installation.now() + timedelta(hours=1))
    scheduler.imported({**old, "next_run_at": later})
    scheduler.installation.cli("action", "run", scheduler.listed()[url]["id"])
    job = scheduler.next()
    table.tell("S22: `error` is answered with 204", "`curl /error`, connection timeout",
               scheduler.report(job, "error", error="connection timeout"), 204)  # fmt: skip
    ended_at = scheduler.installation.row(UUID(job["operation_id"]))["finished_at"]
    # The list shows when a tick looks next; a tick may have looked before this end.
    due = scheduler.next_after_end(url)
    table.tell("S20-S22: the next run is now + interval + jitter, also after an error",
               "a job `from_end` with `jitter_each` of 30 s: after 300 to 331 s",
               300 <= (due - ended_at).total_seconds() <= 331, True)  # fmt: skip
    (logged,) = scheduler.logged("job_error")
    table.tell("S28: `job_error` WARN with error", "web's log",
               (logged["level"], logged["error"]), ("WARNING", "connection timeout"))  # fmt: skip


def stops(scheduler: Scheduler, table: Table) -> None:
    scheduler.installation.cli("job", "delete", scheduler.listed()["https://example.com/a"]["id"])
    table.tell("S16: `job delete`", "`job list`",
               "https://example.com/a" in scheduler.listed(), False)  # fmt: skip
    # Another server, whose answer waits for as long as it takes.
    scheduler.web, scheduler.url = start_web(scheduler.installation)
    before = scheduler.served()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(scheduler.curl, "/jobs/next")
        until(lambda: scheduler.served() > before, "curl asks")
        scheduler.web.send(signal.SIGTERM)
    table.tell("S19: 503 while it shuts down", "SIGTERM while `curl /jobs/next` waits",
               waiting.result()[0], 503)  # fmt: skip


@pytest.fixture
def source() -> Iterator[WebSource]:
    with web_source() as made:
        yield made


@pytest.mark.parametrize("store", ["sqlite"])
@pytest.mark.parametrize("words", [
    pytest.param(("sh", "worker.sh"), id="curl"),
    pytest.param(("node", "worker.mjs"), id="node", marks=pytest.mark.skipif(
        shutil.which("node") is None, reason="there is no Node on this machine")),
])  # fmt: skip
def test_a_worker_in_another_language_that_dies_is_replaced(
    scheduler: Scheduler, source: WebSource, words: tuple[str, str], table: Table
) -> None:
    installation = scheduler.installation
    source.pages["/feed"] = Page(b"12345")
    source.pages["/slow"] = Page(b"12345", trickle_s=60)
    its = {"MINUTEBOOK_URL": scheduler.url, "MINUTEBOOK_TOKEN": scheduler.token}

    def worker(*queue: str) -> Process:
        return installation.processes.start("job-worker", [*words, *queue], its, EXAMPLES)

    def run(path: str, **policy: Any) -> UUID:
        scheduler.add(source.url + path, YEARLY, **policy)
        return UUID(installation.cli("action", "run", f"of {source.url}{path}")["id"])

    worker()
    row = installation.becomes(run("/feed"), "success")
    table.tell("S1: a worker long-polls, executes, reports success", f"examples/jobs/{words[1]}",
               row["result"], {"job": {"bytes": 5}})  # fmt: skip
    retry = {"max_attempts": 2, "backoff": ["PT1S"]}
    gone = run("/gone", retry=retry)
    installation.awaits(gone, lambda row: row["failures"] == 1)
    source.pages["/gone"] = Page(b"back")
    row = installation.becomes(gone, "success")
    table.tell("c3: after an error the next run comes at full rate; here `policy.retry` decides",
               "a URL that answers 404, then 200; two attempts",
               states(installation, gone), ["failed", "success"])  # fmt: skip
    slow = run("/slow", queue="slow")
    killed = worker("slow")
    installation.awaits(slow, lambda row: row["state"] == "running")
    killed.kill()
    source.pages["/slow"] = Page(b"12345")
    worker("slow")
    row = installation.becomes(slow, "success")
    table.tell("c2: the job of a worker that dies is never run again; here another one gets it",
               "SIGKILL of the worker at its URL, another worker",
               states(installation, slow), ["lost", "success"])  # fmt: skip


def states(installation: Installation, id: UUID) -> list[str]:
    """Return how the attempts of an operation ended."""
    return [state for _, state, _ in installation.attempts(id)]
