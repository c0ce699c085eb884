"""The application's broker is another one than ours: neither is held up by the other's failure."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure
from broker.celery_rules import rules_of
from runtime.config import Settings, load_settings
from scheduler.changes import Change
from services.doctor.celery import check_broker
from tests.celery_messages import NOON, celery_action, celery_messages, make_due
from tests.factories import make_action, row_of, rows_of
from tests.servers import Broker
from tests.ticks import run_tick

NOWHERE = "redis://127.0.0.1:1/0"
SHOP = 7


@pytest.fixture
def shop(broker: Broker) -> str:
    """The URL of another database of the same Redis: the application's own broker."""
    with broker.client(SHOP) as client:
        client.flushdb()
    return broker.url.rpartition("/")[0] + f"/{SHOP}"


@pytest.fixture(autouse=True)
def _as_before(settings: Settings) -> Iterator[None]:
    yield
    configure(settings)


def using(settings: Settings, url: str, **variables: str) -> Settings:
    """Configure the application's broker by variables, as a deployment does."""
    given = {"SCHED_CELERY_TASKS": "shop.*", "SCHED_CELERY_BROKER_URL": url, **variables}
    celery = load_settings(settings.home, given).celery
    made = settings.model_copy(update={"celery": celery})
    configure(made)
    return made


def due(engine: sa.Engine, its: Settings) -> tuple[Change, Change]:
    """Store an action for our workers and one for the application's, both due at noon."""
    since = NOON - timedelta(minutes=1)
    allow = {"overlap": "allow"}
    theirs = celery_action(engine, since=since, rules=rules_of(its), policy=allow)
    return make_action(engine, since=since), theirs


def test_while_the_application_s_broker_is_down_our_own_queues_go_on(
    engine: sa.Engine, settings: Settings
) -> None:
    its = using(settings, NOWHERE)
    ours, theirs = due(engine, its)

    report = run_tick(engine, NOON)

    assert (report.sent, report.broker_error) == (1, None)
    assert report.application_broker_error is not None
    assert rows_of(engine, ours)[0]["state"] == "queued"
    assert rows_of(engine, theirs)[0]["state"] == "pending"
    (found,) = check_broker(its)
    assert (found.what, str(found.level)) == ("celery broker", "fault")


def test_while_our_broker_is_down_the_application_s_tasks_go_on(
    engine: sa.Engine, broker: Broker, settings: Settings, shop: str
) -> None:
    """Those that are due in this tick, and those that a tick before left unsent."""
    away = settings.model_copy(update={"broker_url": SecretStr(NOWHERE)})
    ours, theirs = due(engine, using(away, shop))
    waiting = make_due(engine, theirs, NOON - timedelta(minutes=5))

    report = run_tick(engine, NOON)

    assert report.sent == 2
    assert report.broker_error is not None
    assert report.application_broker_error is None
    assert rows_of(engine, ours)[0]["state"] == "pending"
    assert {row["state"] for row in rows_of(engine, theirs)} == {"handed_over"}
    assert row_of(engine, waiting)["state"] == "handed_over"
    assert len(celery_messages(broker, database=SHOP)) == 2
