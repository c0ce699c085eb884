"""The kinds of workers: how each is given work that it holds, and what shows how it goes."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import psutil

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, python, until
from tests.acceptance.shop import Shop

NONE: Mapping[str, str] = MappingProxyType({})
WORKER = Path(__file__).with_name("job_worker.py")


class OurSteps:
    """Workers of ours, which run the steps of an action; what they do is held until `go`."""

    queue = "minutebook.quick"
    # What a worker writes of a message that comes again, and of an operation that it has lost.
    passed_over, lost = "not started, taken", "nothing more is written"

    def __init__(self, installation: Installation) -> None:
        self.installation = installation

    def due(self, **policy: Any) -> UUID:
        """Record an operation for these workers."""
        return self.installation.held("trace_one", "trace_two", policy=policy)

    def send(self) -> None:
        """Send what may be sent, as a tick does."""
        self.installation.send()
        self._kept = self.installation.kept_messages(self.queue)

    def daemon(self) -> Process:
        return self.installation.daemon()

    def worker(self, settings: Mapping[str, str] = NONE) -> Process:
        return self.installation.worker(settings=settings)

    def kill(self, worker: Process) -> None:
        children = psutil.Process(worker.pid).children(recursive=True)
        worker.kill()
        until(lambda: not psutil.wait_procs(children, 0)[1], "its children end with it")

    def begun(self, id: UUID) -> int:
        """Return how often the work was begun."""
        return self._noted(id).count("start")

    def ended(self, id: UUID) -> int:
        """Return how often the work was carried to its end, on record or not."""
        return self._noted(id).count("end")

    def begins(self, id: UUID, times: int = 1) -> None:
        until(lambda: self.begun(id) == times, lambda: f"{self.begun(id)} of {times} beginnings")

    def ends(self, id: UUID) -> None:
        """Wait until one worker has carried the work to its end, which it may say after the row."""
        until(lambda: self.ended(id) == 1, lambda: f"{self.ended(id)} ends, not one")

    def repeat(self, worker: Process) -> None:
        """Let the message or the report come again; return once it was passed over."""
        self.installation.put_messages(self._kept, self.queue)
        worker.said(self.passed_over)

    def _noted(self, id: UUID) -> list[str]:
        story = self.installation.trace.story(id)
        return [what for _, step, what in story if step == "trace_two"]


class Followed(OurSteps):
    """The workers of another Celery application, which `minutebook.follow` follows."""

    queue = "shop"
    passed_over, lost = "does not start here: taken", "ignored"

    @cached_property
    def shop(self) -> Shop:
        return Shop(self.installation)

    def due(self, **policy: Any) -> UUID:
        step = {"kwargs": {"list_": str(self.installation.go)}}
        return self.shop.due("count_stock", step=step, policy=policy)

    def send(self) -> None:
        self.shop.tick()
        self._kept = self.installation.kept_messages(self.queue)

    def daemon(self) -> Process:
        return self.installation.daemon(self.shop.settings)

    def worker(self, settings: Mapping[str, str] = NONE) -> Process:
        return self.shop.worker(settings=settings)

    def kill(self, worker: Process) -> None:
        processes = [psutil.Process(worker.pid), *self.shop.pool(worker)]
        for one in processes:
            one.suspend()
        for one in processes:
            one.kill()
        worker.popen.wait()

    def begun(self, id: UUID) -> int:
        return self.shop.said().count("count_stock begins")

    def ended(self, id: UUID) -> int:
        return self.shop.said().count("count_stock ends")


class OverHttp(OurSteps):
    """Workers in any language, which ask for jobs over HTTP."""

    lost = "complete 409"

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation)
        self._workers: list[Process] = []
        self._says: list[str] = []

    def due(self, **policy: Any) -> UUID:
        job = {"url": "https://example.com/feed", "meta": {"gate": str(self.installation.go)}}
        return self.installation.operation(
            self.installation.action(operations={"job": job}, policy=policy)
        )

    def worker(self, settings: Mapping[str, str] = NONE) -> Process:
        if not self._says:
            self._says = [self.installation.web(settings)[1], self.installation.token("worker")]
        command = python("-P", str(WORKER), *self._says)
        self._workers.append(self.installation.processes.start("job-worker", command))
        return self._workers[-1]

    def begun(self, id: UUID) -> int:
        return sum(one.text().count(f"begins {id}") for one in self._workers)

    def ended(self, id: UUID) -> int:
        # Each worker reports twice.
        return sum(one.text().count("complete 204") for one in self._workers) // 2

    def repeat(self, worker: Process) -> None:
        worker.said("complete 204", times=2)
