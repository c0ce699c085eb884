"""Tasks of the user's own: actions that send one, and what then waits at the broker."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure
from broker.external_link import kept
from models.celery_task import CeleryRules
from models.sql import database_now
from models.store import workers
from runtime.config import Settings
from runtime.database import make_engine
from runtime.sections.celery import CelerySettings
from scheduler.changes import Change
from scheduler.changes.change import apply_all
from tests.factories import author, make_document, make_operation, set_back, update_operation
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker

TASK = "shop.tasks.close_day"
RULES = CeleryRules(("shop.*",))
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class CeleryMessage:
    """A message that waits for a worker of the user's own application."""

    headers: dict[str, Any]
    args: list[Any]
    kwargs: dict[str, Any]


def allowing(settings: Settings, *tasks: str) -> Settings:
    """Return settings under which these tasks may be sent."""
    return settings.model_copy(update={"celery": CelerySettings(tasks=tasks)})


@contextmanager
def on_rabbitmq_with(queue: str, rabbitmq: RabbitMQ, settings: Settings) -> Iterator[sa.Engine]:
    """Yield an installation on RabbitMQ, whose application has this queue, which is empty."""
    its = {"broker_url": SecretStr(rabbitmq.url)}
    settings = allowing(settings.model_copy(update=its), "shop.*")
    configure(settings)
    with rabbitmq.channel() as channel:
        channel.queue_delete(queue)
        channel.queue_declare(queue, durable=True, auto_delete=False)
    engine = make_engine(settings)
    yield engine
    kept.drop()
    engine.dispose()


def celery_action(
    engine: sa.Engine,
    *,
    since: datetime | None = None,
    step: Any = None,
    rules: CeleryRules = RULES,
    **changes: Any,
) -> Change:
    """Store an action that sends a task of the user's own, or its next revision."""
    operations = {"celery_task": {"task": TASK, **(step or {})}}
    document = make_document(**{"name": "close the day", "operations": operations, **changes})
    changed = apply_all(engine, [document], replace(author(), celery=rules))[0]
    if since is not None:
        set_back(engine, changed.uid, since)
    return changed


def make_due(engine: sa.Engine, action: Change, at: datetime = NOON) -> UUID:
    """Record an operation of an action, which may be sent now."""
    id = make_operation(engine, action, at)
    update_operation(engine, id, not_before=database_now(-1.0))
    return id


def celery_messages(
    broker: Broker, queue: str = "celery", database: int = 0
) -> list[CeleryMessage]:
    """Return what waits in a queue, oldest first."""
    with broker.client(database) as client:
        raws = client.lrange(queue, 0, -1)[::-1]
    found = []
    for raw in raws:
        message = json.loads(raw)
        args, kwargs, _ = json.loads(base64.b64decode(message["body"]))
        found.append(CeleryMessage(message["headers"], args, kwargs))
    return found


def follow_by_name(engine: sa.Engine, *tasks: str) -> None:
    """Say that a worker follows these tasks."""
    with engine.begin() as connection:
        workers.beat(connection, workers.Heartbeat("shop@host", "celery", 1, follows=tasks))
