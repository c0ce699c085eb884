"""The process beside a worker that follows; `minutehand.follow` starts it."""

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
    """Stand beside a Celery worker that follows; its first line of stdin describes it."""
    set_up_logs(settings.log, "agent")
    worker = _worker(sys.stdin.readline())
    configure(settings)
    engine = make_engine(settings)
    _check(engine, settings)
    serving = Agent(engine, settings, worker)
    stop_on_signals(serving)
    serving.serve(socket)


def _check(engine: sa.Engine, settings: Settings) -> None:
    """Refuse a database of another release; one that is away is waited for by each claim."""
    try:
        with reading(engine) as connection:
            check_schema(connection)
    except (SchemaOutdated, SchemaNewer) as error:
        url = settings.effective_database_url.set(query={}).render_as_string(hide_password=True)
        told = f"the worker's SCHED_HOME and SCHED_DATABASE_URL lead its agent to {url}"
        raise type(error)(f"{error}; {told}") from None
    except DATABASE_AWAY as error:
        logger.warning("database unavailable at the start: %s", error.orig)


def _worker(line: str) -> Worker:
    try:
        told = json.loads(line)
        follows = tuple(str(name) for name in told["follows"])
        return Worker(str(told["name"]), ",".join(told["queues"]), follows, int(told["pid"]))
    except (ValueError, KeyError, TypeError):
        raise Refused("the agent is started by minutehand.follow(app) in a worker") from None
