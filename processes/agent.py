"""The agent's process: a worker's child, started by `minutebook.follow`, or a sidecar."""

import json
import os
import sys
from pathlib import Path

import sqlalchemy as sa

from broker.app import configure
from models.errors import Refused
from models.store.schema import UnfitSchema, check_schema, current_revision, refuse_unreleased
from models.store.workers import Heartbeat
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import (
    DATABASE_AWAY,
    always_wait_briefly,
    is_made,
    make_engine,
    reading,
    reason_of,
)
from runtime.logs import set_up_logs
from runtime.logs.events import EventLog
from runtime.supervisor import PARENT
from tasks.agent import Agent, stop_on_signals
from tasks.agent.workers import described_worker

# Whoever starts both at once, as `minutebook up &` and a worker, need not wait for the first.
MADE_WITHIN_S = 10.0

logger = EventLog("minutebook.agent")


def run(
    settings: Settings,
    socket: Path,
    group: str | None = None,
    apps: tuple[str, ...] = (),
    *,
    is_shared: bool = False,
) -> None:
    """Serve the Celery worker that started this, else all that connect to `socket`.

    `apps` are the small apps whose operations it may act on; all if there are none. A shared one
    ends once no worker has been connected for a while.
    """
    set_up_logs(settings.log, "agent")
    is_child = PARENT in os.environ and not is_shared
    worker = _worker(sys.stdin.readline()) if is_child else None
    configure(settings)
    engine = make_engine(settings)
    # One row that another transaction keeps locked must not keep all tasks waiting.
    always_wait_briefly(engine)
    _check(engine, settings)
    serving = Agent(engine, settings, worker, group, apps, lingers=is_shared)
    stop_on_signals(serving)
    serving.serve(socket)


def _check(engine: sa.Engine, settings: Settings) -> None:
    """Refuse a database of another release; each claim waits for an unavailable one."""
    try:
        refuse_unreleased(engine)
        wait_for(lambda: not _is_being_made(engine), MADE_WITHIN_S)
        with reading(engine) as connection:
            check_schema(connection)
    except UnfitSchema as error:
        url = settings.shown_database_url
        where = f"the worker's SCHED_HOME and SCHED_DATABASE_URL lead its agent to {url}"
        raise type(error)(f"{error}; {where}") from None
    except DATABASE_AWAY as error:
        logger.warning(
            "database_unavailable", "database unavailable at the start: {error}", reason_of(error)
        )


def _is_being_made(engine: sa.Engine) -> bool:
    """Return whether an embedded database has no schema yet."""
    if engine.dialect.name != "sqlite":
        return False
    if not is_made(engine):
        return True
    with reading(engine) as connection:
        return current_revision(connection) is None


def _worker(line: str) -> Heartbeat:
    try:
        return described_worker(json.loads(line))
    except (AttributeError, ValueError, KeyError, TypeError, OverflowError):
        raise Refused("the agent is started by minutebook.follow(app) in a worker") from None
