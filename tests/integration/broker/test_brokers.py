"""Our broker and the application's: which one, how often it is tried, and what lies in it."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from kombu.utils import functional
from pydantic import SecretStr

from broker.app import app, configure, kept_producer, publish, publish_one, sending_connection
from broker.celery_rules import rules_of
from broker.consumer import RejectingConsumer
from models.store.operations.reserve import Message
from models.worker_kinds import EXECUTE_HEAVY, EXECUTE_QUICK, METATASK_SCHEDULE
from runtime.config import Settings, load_settings
from scheduler.changes import Change
from services.doctor.celery import check_broker
from tests.celery_messages import NOON, celery_action, celery_messages, make_due
from tests.factories import make_action, row_of, rows_of
from tests.servers import Broker, free_port
from tests.ticks import run_tick

TRIES = 12
# HAProxy's in many configurations.
PROXY_CLOSES_AFTER_S = 30
VARIABLES = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")


class NoMoreTries(Exception):
    """Ends the tries of a test."""


@pytest.fixture(autouse=True)
def _as_before(settings: Settings) -> Iterator[None]:
    yield
    configure(settings)


def announced(caplog: pytest.LogCaptureFixture) -> list[float]:
    """Return the pauses before the next tries, as the worker's log names them."""
    return [float(text) for text in re.findall(r"Trying again in ([\d.]+) seconds", caplog.text)]


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_tries_are_at_most_five_seconds_apart(
    settings: Settings,
    scheme: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def sleep(_seconds: float) -> None:
        if len(announced(caplog)) == TRIES:
            raise NoMoreTries

    monkeypatch.setattr(functional, "sleep", sleep)
    url = SecretStr(f"{scheme}://127.0.0.1:{free_port()}")
    configure(settings.model_copy(update={"broker_url": url}))
    worker = SimpleNamespace(use_eventloop=False)
    consumer = RejectingConsumer(on_task_request=print, app=app, controller=worker)

    with pytest.raises(NoMoreTries):
        consumer.connection_for_read()

    # To connect may take its time as well.
    assert max(announced(caplog)) + app.conf.broker_connection_timeout <= 5


def test_neither_workers_nor_daemons_go_to_the_broker_of_the_application(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "redis://theirs.invalid:6379/0")
    ours = SecretStr("redis://ours.invalid:6379/0")
    configure(settings.model_copy(update={"broker_url": ours}))

    hosts = {app.connection_for_read().hostname, sending_connection().hostname}
    assert hosts == {"ours.invalid"}


def test_the_settings_of_the_application_are_not_ours(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_CONFIG_MODULE", "of_no_package_of_ours")
    monkeypatch.setattr(app.loader, "_conf", app.loader.read_configuration())

    configure(settings)

    assert app.loader.conf == {}


def test_a_worker_speaks_on_each_connection_before_a_proxy_closes_it(settings: Settings) -> None:
    app = configure(settings)
    with app.connection_for_read() as connection:
        channel: Any = connection.default_channel
        with channel.conn_or_acquire() as client:
            driver_s = client.connection_pool.connection_kwargs["health_check_interval"]
        checks_each_s = channel.health_check_interval

    # The check sends something only if the driver finds that it is time, as late as the next one.
    assert checks_each_s + driver_s < PROXY_CLOSES_AFTER_S


NOWHERE = "redis://127.0.0.1:1/0"
SHOP = 7


@pytest.fixture
def shop(broker: Broker) -> str:
    """The URL of another database of the same Redis: the application's own broker."""
    with broker.client(SHOP) as client:
        client.flushdb()
    return broker.url.rpartition("/")[0] + f"/{SHOP}"


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


def sent(settings: Settings) -> Message:
    configure(settings)
    message = Message(uuid4(), 1, EXECUTE_QUICK, "quick")
    list(publish([message]))
    return message


def test_a_message_that_is_taken_leaves_nothing_there(settings: Settings, broker: Broker) -> None:
    sent(settings)

    with app.connection_for_read() as connection:
        taken = connection.SimpleQueue("minutebook.quick").get(block=False)
        with broker.client() as client:
            left = [
                key for key in client.scan_iter() if b"unacked" in key or key == b"minutebook.quick"
            ]
        taken.ack()

    assert left == []


@pytest.mark.parametrize("closes", [False, True], ids=["rejected", "closed"])
def test_a_message_put_back_is_as_it_was(settings: Settings, broker: Broker, closes: bool) -> None:
    message = sent(settings)

    with app.connection_for_read() as connection:
        taken = connection.SimpleQueue("minutebook.quick").get(block=False)
        if not closes:
            taken.requeue()
    with app.connection_for_read() as connection:
        again = connection.SimpleQueue("minutebook.quick").get(block=False)
        again.ack()

    assert (again.body, again.headers) == (taken.body, taken.headers)
    assert broker.messages("quick") == []
    assert again.headers["id"] == str(message.id)


QUEUES = ("quick", "100%(id)s", "ünïcode")


def pushed(broker: Broker, queue: str) -> list[dict[str, Any]]:
    """Return the items of a queue, oldest first, without what is random."""
    with broker.client() as client:
        items = [json.loads(raw) for raw in client.lrange(f"minutebook.{queue}", 0, -1)[::-1]]
        client.delete(f"minutebook.{queue}")
    for one in items:
        tag = one["properties"].pop("delivery_tag")
        assert UUID(tag)  # 128 bits; kombu writes hyphens between them
    return items


def test_a_message_is_what_kombu_pushes(settings: Settings, broker: Broker) -> None:
    configure(settings)
    tasks = (EXECUTE_QUICK, EXECUTE_HEAVY, METATASK_SCHEDULE)
    for queue in QUEUES:
        messages = [Message(uuid4(), number, task, queue) for number in (1, 70) for task in tasks]
        list(publish(messages))
        ours = pushed(broker, queue)
        for message in messages:
            publish_one(kept_producer(), message)

        assert ours == pushed(broker, queue)
        assert [one["headers"]["id"] for one in ours] == [str(one.id) for one in messages]


def test_each_message_has_a_tag_of_its_own(settings: Settings, broker: Broker) -> None:
    configure(settings)
    list(publish([Message(uuid4(), 1, EXECUTE_QUICK, "quick") for _ in range(1_200)]))

    with broker.client() as client:
        items = [json.loads(raw) for raw in client.lrange("minutebook.quick", 0, -1)]
    assert len({one["properties"]["delivery_tag"] for one in items}) == 1_200
