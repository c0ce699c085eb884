"""Jobs that are due, for tests of who takes them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_reserved
from minutebook.steps import SmallApp
from models.job import JOB
from models.store.operations.reserve import Message
from scheduler.changes import Change
from tests.factories import DEFAULT_APP, make_action, make_operation

URL = "https://example.com/feed"
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def make_job(engine: sa.Engine, url: str = URL, **changes: Any) -> Change:
    """Store an action whose operations are a job's."""
    document = {
        "name": url.rpartition("/")[2],
        "operations": {"job": {"url": url, "meta": {"depth": 2}}},
        "when": {"every": "PT5M"},
        **changes,
    }
    return make_action(engine, **document)


def make_due(
    engine: sa.Engine, action: Change, number: int = 0, app: SmallApp = DEFAULT_APP
) -> UUID:
    """Record an operation of a job and send it, as a tick does."""
    id = make_operation(engine, action, NOON + timedelta(minutes=5 * number), app=app)
    send_reserved(engine, [Message(id, 1, JOB, action.plan.queue)])
    return id
