"""An APScheduler whose jobs send Celery tasks: jobs in PostgreSQL, none dropped for being late."""

import os
from typing import Any

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.blocking import BlockingScheduler

from benchmarks.peers.theirs.app import TASK, ZONE, app

# Each missed run of a job is wanted, or one of them.
COALESCE = os.environ.get("PEER_EVERY_MISSED_RUN") != "1"


def send(name: str) -> None:
    """Send the task of an entry."""
    app.send_task(TASK, (name,))


def set_up(scheduler: Any, **executors: Any) -> Any:
    """Give a scheduler its job store and the defaults of its jobs."""
    url = os.environ["PEER_DATABASE"].replace("postgresql://", "postgresql+psycopg://")
    scheduler.configure(
        jobstores={"default": SQLAlchemyJobStore(url=url)},
        executors=executors,
        job_defaults={"misfire_grace_time": None, "coalesce": COALESCE},
        timezone=ZONE,
    )
    return scheduler


class Saying(BlockingScheduler):  # type: ignore[misc]
    """A scheduler that writes a line at the end of its first round."""

    def _process_jobs(self) -> Any:
        left_s = super()._process_jobs()
        if not getattr(self, "has_said", False):
            self.has_said = True
            print("first tick", flush=True)
        return left_s


if __name__ == "__main__":
    set_up(Saying()).start()
