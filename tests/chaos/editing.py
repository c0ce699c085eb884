"""Edits at random instants."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from threading import Event, Thread
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import SchedulerError
from models.tables import actions, revisions
from runtime.clock import monotonic
from runtime.database import reading
from scheduler.changes.change import apply_all, create_all
from scheduler.changes.deletion import delete
from scheduler.changes.editing import set_active
from scheduler.changes.validation import ChangeContext
from scheduler.on_demand.manual import run_now
from tasks.registry import Registry
from tests.acceptance.installation import Installation
from tests.chaos import storm_steps
from tests.chaos.documents import random_document, with_part
from tests.chaos.facts import Journal
from tests.chaos.faults import Fault
from tests.factories import DEFAULT_APP, set_back

TICK = timedelta(seconds=5)
# An edit is refused, like an admin's, while the database or the broker is away.
REFUSED = (sa.exc.SQLAlchemyError, SchedulerError)
Documents = list[tuple[UUID, dict[str, Any]]]


class Editor:
    """Makes the edits of a schedule in its own thread: a blocked edit delays no fault."""

    def __init__(self, installation: Installation, journal: Journal) -> None:
        specs = Registry((storm_steps.__name__,)).steps
        self.installation, self.journal = installation, journal
        self.author = ChangeContext("the storm", DEFAULT_APP, specs, TICK)
        self.error: BaseException | None = None
        self._stop = Event()

    def begin(self, random: Random, count: int, name: str = "storm") -> None:
        """Store the first actions; some have missed occurrences."""
        now = self.installation.now()
        documents = [random_document(random, f"{name} {n}", now) for n in range(count)]
        for changed in create_all(self.installation.engine, documents, self.author):
            if random.random() < 0.4:
                since = now - timedelta(seconds=random.randint(30, 1200))
                set_back(self.installation.engine, changed.uid, since)

    def follow(self, schedule: list[Fault]) -> Thread:
        thread = Thread(target=self._follow, args=(schedule,), name="editor", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        self._stop.set()

    def end_all(self) -> None:
        """End all actions; recorded operations go on."""
        ends = (self.installation.now() + timedelta(seconds=2)).replace(microsecond=0)
        for _, document in self._documents():
            policy = {**document.get("policy", {}), "ends_at": ends.isoformat()}
            with suppress(SchedulerError):
                self._apply({**document, "policy": policy})

    def _follow(self, schedule: list[Fault]) -> None:
        started = monotonic()
        for edit in schedule:
            if self._stop.wait(max(0.0, edit.at_s - (monotonic() - started))):
                return
            try:
                with suppress(*REFUSED):
                    self._edit(edit)
            except BaseException as error:
                self.error = error
                return

    def _edit(self, edit: Fault) -> None:
        engine, random = self.installation.engine, Random(edit.number)
        if edit.kind == "create":
            document = random_document(random, f"new {edit.number}", self.installation.now())
            create_all(engine, [document], self.author)
            return
        uid, document = random.choice(self._documents())
        acts: dict[str, Callable[[], object]] = {
            "pause": lambda: set_active(engine, uid, active=False, author=self.author),
            "resume": lambda: set_active(engine, uid, active=True, author=self.author),
            "apply": lambda: self._apply_random(random, document),
            "delete": lambda: delete(engine, uid, self.author),
            "run": lambda: self._run(uid),
        }
        acts[edit.kind]()

    def _documents(self) -> Documents:
        """Return the documents of actions that are not deleted."""
        current = (revisions.c.action_uid == actions.c.uid) & (
            revisions.c.number == actions.c.revision
        )
        query = sa.select(actions.c.uid, revisions.c.document).join(revisions, current)
        there = query.where(actions.c.deleted_at.is_(None))
        with reading(self.installation.engine) as connection:
            rows = connection.execute(there.order_by(actions.c.name)).all()
        return [(uid, json.loads(text)) for uid, text in rows]

    def _apply(self, document: dict[str, Any]) -> None:
        apply_all(self.installation.engine, [document], self.author)

    def _apply_random(self, random: Random, document: dict[str, Any]) -> None:
        fresh = random_document(random, document["name"], self.installation.now())
        key = random.choice(("when", "policy", "operations"))
        self._apply(with_part(document, key, fresh))

    def _run(self, uid: UUID) -> None:
        id, _ = run_now(self.installation.engine, uid, "the storm")
        self.journal.note("run", operation=str(id), action=str(uid))
