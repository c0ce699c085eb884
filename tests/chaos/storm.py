"""A storm: random actions under a seeded schedule of faults, a calm, then the checks."""

import sqlite3
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from random import Random
from threading import Event

import sqlalchemy as sa

from broker.app import configure
from broker.errors import BROKER_ERRORS
from models.operation import ENDED, OperationState
from models.sql import database_now
from models.store.operations import put_back
from models.tables import operations, ticks
from runtime.clock import monotonic, wait_for
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.chaos.checker import violations
from tests.chaos.clock import MINUTE_S, Clock, file_of
from tests.chaos.crew import GONE, Crew
from tests.chaos.editing import Editor
from tests.chaos.facts import Facts, Journal, read_lines, tables_by
from tests.chaos.faults import ALONE, Fault, Repairs, edits, faults
from tests.chaos.server_faults import ServerFaults
from tests.chaos.shifted import FILE
from tests.chaos.storm_steps import CALM, LOG
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker, PostgreSQL

ACTIONS = 14
SAVED_AHEAD = 2
DAY_S = 86_400.0
POLL_S = 0.05
PAUSE_S = 0.5
CALM_FILE = "storm.calm"
CALM_S = 120.0
# Another fault may have ended the server or process of this one.
MET_ANOTHER = (*GONE, *BROKER_ERRORS, sa.exc.SQLAlchemyError, sqlite3.Error)


class Storm:
    """One storm over one installation; `run` returns the violations."""

    def __init__(
        self,
        installation: Installation,
        servers: tuple[PostgreSQL | None, Broker | RabbitMQ],
        seed: int,
        seconds: float,
    ) -> None:
        self.installation = installation
        self.server, broker = servers
        self.seed, self.seconds = seed, seconds
        self.log = installation.home / "storm.jsonl"
        self.faults = faults(seed, installation.store, seconds)
        self.edits = edits(seed, seconds)
        self.journal = Journal(installation.home / "storm-journal.jsonl")
        self.editor = Editor(installation, self.journal)
        self.clock = Clock(installation, self.journal)
        self._repairs = Repairs()
        self._crew = Crew(installation, self._repairs.later)
        self._servers = ServerFaults(installation, self.server, broker, self._repairs.later)
        self._acts = {**self._crew.acts(), **self._servers.acts(), **self.clock.acts()}

    def run(self) -> list[str]:
        """Run the storm and the calm, end all processes, return the violations."""
        configure(self.installation.settings)
        self._servers.set_up()
        self.clock.set_up()
        self._save_ahead(Random(f"ahead {self.seed}"))
        self.editor.begin(Random(f"actions {self.seed}"), ACTIONS)
        editing = self.editor.follow(self.edits)
        try:
            self._blow()
            self._repairs.end()
            self.clock.end()
        finally:
            self.editor.stop()
            self._repairs.end()
        editing.join(CALM_S)
        assert not editing.is_alive(), "an edit hangs"
        if self.editor.error is not None:
            raise self.editor.error
        found = self._calm_down()
        self.installation.processes.kill_all()
        self.clock.close()
        return found + violations(self.facts())

    def facts(self) -> Facts:
        """Return what there is to check, once all processes have ended."""
        with reading(self.installation.engine) as connection:
            tables = tables_by(lambda query: [*connection.exec_driver_sql(query)])
        return Facts(tables, read_lines(self.log), read_lines(self.journal.path))

    def story(self) -> str:
        """Return what is needed to reproduce the storm."""
        return "\n".join(
            [f"seed {self.seed} on {self.installation.store}, {self.seconds:g} s",
             *map(str, self.faults), "edits:", *map(str, self.edits)]
        )  # fmt: skip

    def _save_ahead(self, random: Random) -> None:
        """Store actions while the clock is ahead, before the first tick, and set it right."""
        with self.clock.ahead(random.uniform(6 * MINUTE_S, DAY_S)):
            self.editor.begin(random, SAVED_AHEAD, "ahead")

    def _blow(self) -> None:
        started = monotonic()
        waiting = self.faults.copy()
        while (at_s := monotonic() - started) < self.seconds:
            self._crew.tend()
            if waiting and waiting[0].at_s <= at_s:
                self._do(waiting.pop(0))
            else:
                Event().wait(POLL_S)

    def _do(self, fault: Fault) -> None:
        if fault.victim in ALONE and self._repairs.has(fault.victim):
            return
        with suppress(*MET_ANOTHER):
            self._acts[fault.kind](fault)

    def _calm_down(self) -> list[str]:
        (self.installation.home / CALM_FILE).touch()
        self.editor.end_all()
        ended_at = self.installation.now()
        # All operations recorded in the storm may still have to run, one by one.
        timeout_s = CALM_S + self.seconds
        if wait_for(lambda: self._is_calm(ended_at), timeout_s):
            return []
        return [f"no calm within {timeout_s:g} s; the tail of the logs:\n{self._tails()}"]

    def _is_calm(self, since: datetime) -> bool:
        self._crew.tend()
        self._hasten()
        Event().wait(PAUSE_S)
        with reading(self.installation.engine) as connection:
            open_ = sa.select(sa.func.count()).where(operations.c.state.not_in(ENDED))
            if connection.execute(open_).scalar_one():
                return False
            last = connection.execute(sa.select(sa.func.max(ticks.c.now))).scalar_one()
            return bool(last is not None and (last - since).total_seconds() > 8)

    def _hasten(self) -> None:
        """Make retries and lost messages due at once; sweep between ticks too."""
        state, not_before = operations.c.state, operations.c.not_before
        retried = sa.and_(state == OperationState.PENDING, not_before > database_now())
        unheard = sa.and_(state == OperationState.QUEUED, not_before > database_now(5.0))
        is_ours = operations.c.recorded_at < database_now(-5.0)
        with self.installation.engine.begin() as connection:
            for which, wait_s in ((retried, 0.0), (unheard, 3.0)):
                # What another process is changing now is hastened at the next look.
                free = sa.select(operations.c.id).where(which, is_ours)
                ids = free.with_for_update(skip_locked=True).scalar_subquery()
                hastened = sa.update(operations).where(operations.c.id.in_(ids))
                connection.execute(hastened.values(not_before=database_now(wait_s)))
            put_back.release_stranded(connection)
        self.installation.send()

    def _tails(self) -> str:
        started = self.installation.processes.started[-6:]
        return "\n".join(f"--- {one.log.name}\n{one.text()[-1500:]}" for one in started)


def environment(home: Path) -> dict[str, str]:
    return {
        "SCHED_STEP_MODULES": "storm_steps",
        "PYTHONPATH": str(Path(__file__).parent),
        LOG: str(home / "storm.jsonl"),
        CALM: str(home / CALM_FILE),
        FILE: str(file_of(home)),
        "SCHED_WORKER_SOFT_LIMIT_S": "1",
        "SCHED_WORKER_HARD_LIMIT_S": "2",
    }
