"""Edits at the very instants of the ticks, by a process of its own: `editor.py KIND ROUND…`.

KIND is how it edits: by our functions, or by plain SQL. The same numbers make the same edits.
"""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from models.errors import SchedulerError
from models.sql import read_clock
from models.store import actions as actions_store
from models.store.scope import WHOLE_INSTALLATION
from models.tables import actions
from models.tenant.document import GIVEN_OWNER
from runtime.config import load_settings
from runtime.database import make_engine, reading
from scheduler.changes.change import apply_all
from scheduler.changes.deletion import delete
from scheduler.changes.editing import set_active
from scheduler.changes.validation import ChangeContext
from tasks.built_in import built_in_steps
from tests.factories import DEFAULT_APP

TICK = timedelta(seconds=5)
EARLIEST_S, LATEST_S = -0.06, 0.12
WHO = ChangeContext("an editor", DEFAULT_APP, built_in_steps(), TICK)


class Editor:
    """Edits all actions, one after the other in any order, at a tick."""

    def __init__(self, kind: str) -> None:
        self.engine = make_engine(load_settings())
        self.kind = kind
        self.random = Random(kind)

    def run(self, rounds: int) -> None:
        """Edit around so many ticks."""
        for _ in range(rounds):
            self._wait_for_a_tick()
            for name in self._names():
                self._edit(name)

    def _wait_for_a_tick(self) -> None:
        with reading(self.engine) as connection:
            now = read_clock(connection)
        past = timedelta(seconds=now.second % 5, microseconds=now.microsecond)
        early = self.random.uniform(EARLIEST_S, LATEST_S)
        wait_s = (TICK - past).total_seconds() + early
        Event().wait(wait_s if wait_s > 0.5 else wait_s + TICK.total_seconds())

    def _names(self) -> list[str]:
        query = sa.select(actions.c.name).where(actions.c.owner.is_distinct_from(GIVEN_OWNER))
        query = query.where(actions.c.deleted_at.is_(None))
        with reading(self.engine) as connection:
            names = list(connection.execute(query).scalars())
        self.random.shuffle(names)
        return names

    def _edit(self, name: str) -> None:
        try:
            with reading(self.engine) as connection:
                action = actions_store.find(connection, 1, name, WHOLE_INSTALLATION)
            document = json.loads(action["document"])
            edit = self._edit_by_sql if self.kind == "sql" else self._edit_by_us
            edit(action, document)
        except SchedulerError as error:
            # Another editor was first.
            sys.stderr.write(f"refused: {error}\n")

    def _edit_by_us(self, action: dict[str, Any], document: dict[str, Any]) -> None:
        uid, who = action["uid"], WHO
        by_us: tuple[Callable[[], object], ...] = (
            lambda: set_active(self.engine, uid, active=not action["active"], author=who),
            lambda: set_active(self.engine, uid, active=True, author=who),
            lambda: apply_all(self.engine, [self._changed(document)], who),
            lambda: apply_all(self.engine, [self._changed(document)], who),
            lambda: delete(self.engine, uid, who),
        )
        self.random.choices(by_us, [3, 3, 3, 3, 1])[0]()

    def _edit_by_sql(self, action: dict[str, Any], document: dict[str, Any]) -> None:
        values: dict[str, Any] = {"active": not action["active"]}
        if self.random.random() < 0.5:
            values = {"document": json.dumps(self._changed(document))}
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(actions).where(actions.c.uid == action["uid"]).values(values)
            )

    def _changed(self, document: dict[str, Any]) -> dict[str, Any]:
        when = document["when"]
        every = "PT10S" if when["every"] == "PT5S" else "PT5S"
        return {**document, "when": {**when, "every": every}}


def due_at_each_tick(name: str) -> dict[str, Any]:
    """Return an action whose occurrences are the ticks' own instants."""
    return {
        "name": name,
        "operations": {"maintenance": True},
        "when": {"every": "PT5S", "starting_at": datetime(2026, 1, 1, tzinfo=UTC).isoformat()},
        "policy": {"overlap": "allow", "catch_up": "all", "look_back": "PT1M"},
    }


if __name__ == "__main__":
    Editor(sys.argv[1]).run(int(sys.argv[2]))
