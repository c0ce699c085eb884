"""The next tick detects that the broker lost its messages, and sends queued operations again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker import app
from broker.app import configure, disconnect
from broker.probe import probe
from models.errors import BrokerUnavailable
from models.sql import database_now
from models.store import facts
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.claims import claim
from runtime.config import Settings
from runtime.database import make_engine, reading
from scheduler.dispatch import dispatch_ready
from scheduler.loop import Daemon
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.celery_messages import TASK, allowing, celery_action, celery_messages, follow_by_name
from tests.factories import STEPS, make_action, make_operation, row_of, update_operation
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=45)
RARELY = {"cron_rule": "0 0 1 6 *", "timezone": "UTC"}


def queued(engine: sa.Engine, sweeper: Sweeper, number: int = 2) -> list[UUID]:
    """Return operations that a tick has sent; no worker has started them."""
    action = make_action(engine, when=RARELY, policy={"overlap": "allow", "catch_up": "all"})
    ids = [make_operation(engine, action, NOON + n * MINUTE) for n in range(number)]
    for id in ids:
        update_operation(engine, id, not_before=database_now(-1.0))
    assert run_tick(engine, sweeper).sent == number
    return ids


def run_tick(engine: sa.Engine, sweeper: Sweeper, minutes: int = 0) -> TickReport:
    return tick(engine, NOON + minutes * MINUTE, sweeper, steps=STEPS)


def messages(broker: Broker) -> list[str]:
    return sorted(id for id, _ in broker.messages("quick"))


def empty(broker: Broker) -> None:
    with broker.client() as client:
        client.flushall()


def texts(ids: list[UUID]) -> list[str]:
    return sorted(str(id) for id in ids)


def test_an_emptied_redis_gets_what_was_queued_at_the_next_tick_and_once(
    engine: sa.Engine, broker: Broker
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    ids = queued(engine, sweeper)
    empty(broker)

    noticed = run_tick(engine, sweeper, 1)
    after = run_tick(engine, sweeper, 2)

    assert (noticed.lost_messages, noticed.sent) == (2, 2)
    assert (after.lost_messages, after.sent) == (0, 0)
    assert messages(broker) == texts(ids)
    assert [row_of(engine, id)["attempt"] for id in ids] == [1, 1]


def test_a_daemon_that_starts_after_the_loss_notices_it(engine: sa.Engine, broker: Broker) -> None:
    ids = queued(engine, Sweeper(LEASE, NO_ALERTS))
    empty(broker)

    assert run_tick(engine, Sweeper(LEASE, NO_ALERTS), 1).lost_messages == 2

    assert messages(broker) == texts(ids)


def test_a_redis_that_went_back_to_an_older_snapshot_is_noticed(
    engine: sa.Engine, broker: Broker
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    run_tick(engine, sweeper)
    with broker.client() as client:
        (key,) = client.keys("minutebook.marker.*")
        snapshot = client.dump(key)
    ids = queued(engine, sweeper)
    empty(broker)
    with broker.client() as client:
        client.restore(key, 0, snapshot)

    assert run_tick(engine, sweeper, 1).lost_messages == 2

    assert messages(broker) == texts(ids)


@pytest.mark.usefixtures("broker")
def test_a_daemon_s_number_is_stored_for_the_next_one(
    engine: sa.Engine, settings: Settings
) -> None:
    daemon = Daemon(engine, settings, steps=STEPS)
    daemon.prepare()
    for _ in range(3):
        daemon.tick_once()

    with reading(engine) as connection:
        found = facts.mark(connection)
    assert found is not None
    assert found[1] == 3


def test_what_was_sent_before_the_first_daemon_is_not_lost(
    engine: sa.Engine, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    id = make_operation(engine, make_action(engine, when=RARELY), NOON)
    update_operation(engine, id, not_before=database_now(-1.0))
    dispatch_ready(engine)

    report = run_tick(engine, Sweeper(LEASE, NO_ALERTS))

    assert (report.lost_messages, report.sent) == (0, 0)
    assert messages(broker) == [str(id)]
    assert "lost its messages" not in caplog.text


def test_two_daemons_send_again_once(engine: sa.Engine, broker: Broker) -> None:
    one, two = Sweeper(LEASE, NO_ALERTS), Sweeper(LEASE, NO_ALERTS)
    ids = queued(engine, one)
    run_tick(engine, two)
    empty(broker)

    reports = [run_tick(engine, sweeper, 1) for sweeper in (one, two, one, two)]

    assert [report.lost_messages for report in reports] == [2, 0, 0, 0]
    assert messages(broker) == texts(ids)


def test_a_broker_that_is_silent_for_a_while_lost_nothing(
    engine: sa.Engine, broker: Broker
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    ids = queued(engine, sweeper)
    with broker.client() as client:
        client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        silent = run_tick(engine, sweeper, 1)
        client.execute_command("CLIENT", "UNPAUSE")
    back = run_tick(engine, sweeper, 2)

    assert silent.broker_error is not None
    assert (back.broker_error, back.lost_messages, back.sent) == (None, 0, 0)
    assert messages(broker) == texts(ids)


def test_what_a_worker_has_started_or_an_application_got_is_not_sent_again(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    running, _ = queued(engine, sweeper)
    with engine.begin() as connection:
        claim(connection, running, 1, "quick@here", alerts=NO_ALERTS)
    configure(allowing(settings, "shop.*"))
    follow_by_name(engine, TASK)
    theirs = make_operation(engine, celery_action(engine, when=RARELY), NOON)
    update_operation(engine, theirs, not_before=database_now(-1.0))
    run_tick(engine, sweeper)
    assert row_of(engine, theirs)["state"] == "queued"
    empty(broker)

    assert run_tick(engine, sweeper, 1).lost_messages == 1

    assert len(messages(broker)) == 1
    assert celery_messages(broker) == []
    configure(settings)


def test_a_redis_that_refuses_the_look_is_no_loss_and_stops_nothing(
    engine: sa.Engine, broker: Broker
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    queued(engine, sweeper)
    with broker.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-incr")
        try:
            refused = run_tick(engine, sweeper, 1)
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+incr")

    assert (refused.lost_messages, refused.broker_error) == (0, None)


# RabbitMQ


@dataclass
class OnRabbitMQ:
    """An installation on RabbitMQ."""

    engine: sa.Engine
    server: RabbitMQ
    settings: Settings

    def messages(self) -> list[str]:
        """Return the ids of the operations that wait in our queue."""
        found = []
        with self.server.channel() as channel:
            while (message := channel.basic_get("minutebook.quick")) is not None:
                found.append(message.properties["application_headers"]["id"])
        return sorted(found)


@pytest.fixture
def rabbit(rabbitmq: RabbitMQ, home_of: Callable[[str], Settings]) -> Iterator[OnRabbitMQ]:
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(rabbitmq.url)})
    configure(settings)
    with rabbitmq.channel() as channel:
        # Other tests on this node left theirs.
        for queue in ("minutebook.quick", "default"):
            channel.queue_delete(queue)
    engine = make_engine(settings)
    yield OnRabbitMQ(engine, rabbitmq, settings)
    disconnect()
    engine.dispose()


def test_a_rabbitmq_that_lost_its_data_gets_what_was_queued_at_the_next_tick(
    rabbit: OnRabbitMQ,
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    ids = queued(rabbit.engine, sweeper)
    quiet = run_tick(rabbit.engine, sweeper, 1)
    rabbit.server.lose_everything()

    noticed = run_tick(rabbit.engine, sweeper, 2)
    after = run_tick(rabbit.engine, sweeper, 3)

    assert (quiet.lost_messages, noticed.lost_messages, after.lost_messages) == (0, 2, 0)
    assert rabbit.messages() == texts(ids)


@pytest.mark.usefixtures("rabbit")
def test_rabbitmq_waits_for_no_heartbeats_of_a_connection_that_rests() -> None:
    connection = app.kept_producer().connection

    assert connection.connection.heartbeat == 0


def test_a_connection_that_rabbitmq_closed_while_it_was_idle_holds_up_no_operation(
    rabbit: OnRabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "PING_AFTER_IDLE_S", 0.0)
    before = queued(rabbit.engine, Sweeper(LEASE, NO_ALERTS), 1)
    rabbit.server.stop()
    rabbit.server.start()
    after = make_operation(rabbit.engine, make_action(rabbit.engine, name="after"), NOON)
    update_operation(rabbit.engine, after, not_before=database_now(-1.0))

    # As in a web process, which never looks whether the broker lost messages.
    sent = dispatch_ready(rabbit.engine)

    assert (sent.count, sent.error) == (1, None)
    assert rabbit.messages() == texts([*before, after])


@pytest.fixture
def low_on_memory(rabbit: OnRabbitMQ) -> Iterator[None]:
    """Let the node take no messages."""
    rabbit.server.control("set_vm_memory_high_watermark", "0.00001")
    yield
    rabbit.server.control("set_vm_memory_high_watermark", "0.4")


@pytest.mark.usefixtures("low_on_memory")
def test_a_rabbitmq_that_is_low_on_memory_says_so(rabbit: OnRabbitMQ) -> None:
    id = make_operation(rabbit.engine, make_action(rabbit.engine), NOON)
    update_operation(rabbit.engine, id, not_before=database_now(-1.0))

    refused = dispatch_ready(rabbit.engine)

    assert "RabbitMQ takes no messages: it is low on memory or disk" in str(refused.error)
    assert row_of(rabbit.engine, id)["state"] == "pending"
    with pytest.raises(BrokerUnavailable, match="it is low on memory or disk"):
        probe(rabbit.settings, ["quick"])


def test_a_rabbitmq_that_is_restarted_with_its_data_lost_nothing(rabbit: OnRabbitMQ) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    ids = queued(rabbit.engine, sweeper)
    rabbit.server.stop()
    rabbit.server.start()

    back = run_tick(rabbit.engine, sweeper, 1)

    assert (back.broker_error, back.lost_messages, back.sent) == (None, 0, 0)
    assert rabbit.messages() == texts(ids)


def test_a_rabbitmq_that_falls_silent_holds_up_no_tick_and_lost_nothing(
    rabbit: OnRabbitMQ,
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    ids = queued(rabbit.engine, sweeper)
    with rabbit.server.silence():
        silent = run_tick(rabbit.engine, sweeper, 1)

    back = run_tick(rabbit.engine, sweeper, 2)

    assert silent.broker_error is not None
    assert (back.broker_error, back.lost_messages, back.sent) == (None, 0, 0)
    assert rabbit.messages() == texts(ids)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"x-queue-type": "quorum"}, id="quorum"),
        pytest.param({"x-max-priority": 9}, id="priorities"),
    ],
)
def test_a_queue_of_the_application_is_used_as_it_is_declared(
    rabbit: OnRabbitMQ, arguments: dict[str, object]
) -> None:
    queue = next(iter(arguments))
    action = celery_action(rabbit.engine, step={"queue": queue, "priority": 5})
    id = make_operation(rabbit.engine, action, NOON)
    update_operation(rabbit.engine, id, not_before=database_now(-1.0))
    with rabbit.server.channel() as channel:
        channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)

    configure(allowing(rabbit.settings, "shop.*"))
    assert run_tick(rabbit.engine, Sweeper(LEASE, NO_ALERTS)).sent == 1

    with rabbit.server.channel() as channel:
        message = channel.basic_get(queue, no_ack=True)
        # To declare it otherwise would be refused.
        channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
    assert (message.headers["id"], message.properties["priority"]) == (str(id), 5)
