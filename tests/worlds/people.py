"""The people of a world: what they change, ask for, stop and pause."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.celery_rules import rules_of
from models.store import pauses
from models.store.scope import WHOLE_INSTALLATION
from scheduler.on_demand import backfill
from scheduler.on_demand.backfill_range import BackfillRequest, Mode
from scheduler.on_demand.cancel import cancel
from scheduler.on_demand.restart import retry
from tests.chaos.documents import random_document
from tests.chaos.editing import REFUSED, Editor
from tests.chaos.faults import Fault
from tests.worlds.outside import JOBS, TASK
from tests.worlds.stage import APPLICATION

if TYPE_CHECKING:
    from tests.worlds.world import World

EVERYTHING = pauses.Target(pauses.PauseKind.ALL)
# How far back a backfill reaches.
FILLED_S = 600
KEPT_FOR = timedelta(days=30)


class People(Editor):
    """Edits as in a storm, and what else people do."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, world.journal)  # type: ignore[arg-type]
        self.author = replace(self.author, celery=rules_of(world.settings))
        self.world, self.loom = world, world.loom

    def admin(self) -> None:
        for edit in self.world.plan.edits:
            if edit.at_s > self.loom.elapsed_s:
                self.loom.pause("think", edit.at_s - self.loom.elapsed_s)
            self.act(edit)

    def act(self, edit: Fault) -> None:
        """Do one thing, which may be refused."""
        self.world.tell(edit.kind)
        try:
            self._act(edit, Random(edit.number))
        except REFUSED as error:
            self.world.tell(f"refused: {str(error).splitlines()[0]}")

    def _rows_for(self, verb: str) -> list[Any]:
        """Return the ids that a verb may be asked for; those that run, if it cancels."""
        query = "SELECT id FROM operations"
        if verb == "cancel":
            running = self.world.database.rows(f"{query} WHERE state = 'running' ORDER BY id")
            if running:
                return running
        return self.world.database.rows(f"{query} ORDER BY id")

    def _act(self, edit: Fault, random: Random) -> None:
        engine, journal = self.world.engine, self.world.journal
        match edit.kind:
            case "pause all":
                journal.note("pause")
                with engine.begin() as connection:
                    pauses.begin(connection, EVERYTHING, None, "people", None)
            case "resume all":
                with engine.begin() as connection:
                    pauses.end(connection, EVERYTHING, "people")
            case "retry" | "cancel":
                if rows := self._rows_for(edit.kind):
                    (id,) = random.choice(rows)
                    journal.note(edit.kind, operation=str(id))
                    do = retry if edit.kind == "retry" else cancel
                    do(engine, UUID(str(id)), WHOLE_INSTALLATION, "people")
            case kind if kind != "create" and not self._documents():
                return
            case "backfill":
                uid, _ = random.choice(self._documents())
                last = self.world.now().replace(microsecond=0)
                first = last - timedelta(seconds=random.randint(1, FILLED_S))
                wanted = BackfillRequest(uid, first, last, random.choice(list(Mode)))
                backfill.start(engine, wanted, "people", KEPT_FOR)
            case _:
                self._edit(edit)


def document_of(random: Random, name: str, now: datetime) -> dict[str, Any]:
    """Return a random document of an action, often and soon due."""
    document = random_document(random, name, now)
    kind = random.random()
    if kind < 0.25:
        document["operations"] = {"celery_task": {"task": TASK, "queue": APPLICATION}}
    elif kind < 0.45:
        document["operations"] = {"job": {"url": f"https://jobs.example/{name[-1]}"}}
        document["policy"]["queue"] = JOBS
    elif kind < 0.6:
        # Long enough for its worker to be struck in it.
        document["operations"]["storm_once"] = {"ms": 4_000}
    if random.random() < 0.15:
        document["when"] = {
            "every": "PT10S",
            "from": "end",
            "jitter": random.choice(("PT0S", "PT4S")),
        }
        document["policy"] |= {"catch_up": "latest"}
    return document
