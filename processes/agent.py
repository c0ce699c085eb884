"""The agent's process beside a worker, started by `minutehand.follow`."""

import json
import logging
import sys
from pathlib import Path

import sqlalchemy as sa

from broker.app import configure
from celery_steps.agent import Agent, Worker, stop_on_signals
from models.errors import Refused
from models.store.schema import SchemaNewer, SchemaOutdated, check_schema
from runtime.config import Settings
from runtime.database import make_engine, reading
from runtime.db_retry import DATABASE_AWAY
from runtime.logs import set_up_logs

logger = logging.getLogger("minutehand.agent")


def run(settings: Settings, socket: Path) -> None:
    """Serve a Celery worker, which the first line of stdin describes."""
    set_up_logs(settings.log, "agent")
    worker = _worker(sys.stdin.readline())
    configure(settings)
    engine = make_engine(settings)
    _check(engine, settings)
    serving = Agent(engine, settings, worker)
    stop_on_signals(serving)
    serving.serve(socket)


def _check(engine: sa.Engine, settings: Settings) -> None:
    """Refuse a database of another release; each claim waits for an unavailable one."""
    try:
        with reading(engine) as connection:
            check_schema(connection)
    except (SchemaOutdated, SchemaNewer) as error:
        url = settings.shown_database_url
        where = f"the worker's SCHED_HOME and SCHED_DATABASE_URL lead its agent to {url}"
        raise type(error)(f"{error}; {where}") from None
    except DATABASE_AWAY as error:
        logger.warning("database unavailable at the start: %s", error.orig)


def _worker(line: str) -> Worker:
    try:
        given = json.loads(line)
        follows = tuple(str(name) for name in given["follows"])
        return Worker(str(given["name"]), ",".join(given["queues"]), follows, int(given["pid"]))
    except (ValueError, KeyError, TypeError):
        raise Refused("the agent is started by minutehand.follow(app) in a worker") from None
