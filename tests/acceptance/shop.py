"""The example of a shop that comes from celery beat: its own worker, in its own folder."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from models.celery_task import CeleryRules
from models.store import workers
from runtime.database import reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, Process, python, until
from tests.factories import author, make_document, yearly
from tests.ticks import MINUTE

EXAMPLE = ROOT / "examples" / "from_celery_beat"
RULES = CeleryRules(("tasks.*",))
RAN_ONCE = ["close_day begins", "close_day ends"]


class Shop:
    """A copy of the example beside an installation that sends its tasks."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.folder = installation.home / "shop"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.journal = self.folder / "journal.jsonl"
        self._web: Process | None = None
        self.address = ""
        self.settings = {
            "SHOP_BROKER_URL": installation.broker.url,
            "SHOP_JOURNAL": str(self.journal),
            "SCHED_CELERY_TASKS": "tasks.*",
        }

    def worker(
        self,
        app: str = "followed",
        pool: str = "prefork",
        settings: Mapping[str, str] = {},
        *,
        name: str = "celery",
        slots: int = 2,
        is_served: bool = True,
    ) -> Process:
        """Start the shop's worker as the shop does; it is ready, and seen to follow, on return."""
        if is_served:
            self.web(settings)
        command = python("-m", "celery", "-A", app, "worker", "--pool", pool, "-c", str(slots))
        its_name = ("-n", f"{name}@%h", "-Q", "shop,orders")
        options = (*its_name, "-l", "INFO", "--without-gossip", "--without-mingle")
        processes = self.installation.processes
        its = {**self.settings, **settings}
        worker = processes.start("shop", [*command, *options], its, folder=self.folder)
        worker.said("ready.")
        if is_served:
            self.is_followed()
        return worker

    def web(self, settings: Mapping[str, str] = {}) -> Process:
        """Return the server that the shop's workers ask; it is started if none runs."""
        if self._web is None or not self._web.is_alive:
            self._web, self.address = self.installation.web({**self.settings, **settings})
        return self._web

    def is_followed(self) -> None:
        def is_said() -> bool:
            with reading(self.installation.engine) as connection:
                return bool(workers.followed_tasks(connection, MINUTE))

        until(is_said, "the worker says what it follows")

    def pool(self, worker: Process) -> list[psutil.Process]:
        return psutil.Process(worker.pid).children()

    def action(self, task: str, name: str = "of the shop", **changes: Any) -> Change:
        """Store an action that sends a task of the shop; `step` changes the step."""
        given = {"task": f"tasks.{task}", "args": ["Paris"], "queue": "shop"}
        step = {**given, **changes.pop("step", {})}
        when = yearly(self.installation.now(), -40)
        document = make_document(
            **{"name": name, "operations": {"celery_task": step}, "when": when, **changes}
        )
        by = replace(author(), celery=RULES)
        return create_all(self.installation.engine, [document], by)[0]

    def due(self, task: str, **changes: Any) -> UUID:
        """Record an operation of such an action: the next tick sends it."""
        return self.installation.operation(self.action(task, **changes))

    def tick(self) -> str:
        return self.installation.tick(settings=self.settings)

    def python(self, code: str) -> None:
        """Let the shop run some Python of its own."""
        run = self.installation.processes.run
        done = run(python("-c", code), self.settings, self.folder)
        assert done.returncode == 0, done.stderr

    def said(self) -> list[str]:
        """Return what the shop's tasks wrote: `close_day begins`, …"""
        if not self.journal.exists():
            return []
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [f"{line['task']} {line['said']}" for line in lines]

    def says(self, *expected: str) -> None:
        until(lambda: self.said() == list(expected), lambda: str(self.said()))

    def gate(self, name: str = "gate") -> Path:
        """Return the path of a file that a task waits for."""
        return self.folder / name
