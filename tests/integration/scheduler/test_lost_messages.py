"""A tick sends again what one of our queues lost, and nothing that still waits in it."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker import app
from broker.app import configure, disconnect
from broker.probe import probe
from models.errors import BrokerUnavailable
from models.sql import database_now
from models.store import workers
from models.store.notices.alerting import NO_ALERTS
from runtime.config import Settings
from runtime.database import make_engine
from scheduler.sweep import Sweeper, dispatch_ready
from scheduler.tick import TickReport, tick
from services.status import pauses
from tests.celery_messages import TASK, allowing, celery_action, celery_messages, follow_by_name
from tests.factories import installation_on, make_action, make_operation, row_of, update_operation
from tests.rabbitmq import RabbitMQ
from tests.sentinel import replicated
from tests.servers import Broker, temporary_folder
from tests.ticks import LEASE, MINUTE
from tests.transactions import act, claim_as

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
RARELY = {"cron_rule": "0 0 1 6 *", "timezone": "UTC"}


def queued(engine: sa.Engine, number: int = 2) -> list[UUID]:
    """Return operations that a tick has sent; no worker has started them."""
    action = make_action(engine, when=RARELY, policy={"overlap": "allow", "catch_up": "all"})
    ids = [make_operation(engine, action, NOON + n * MINUTE) for n in range(number)]
    make_sendable(engine, *ids)
    assert run_tick(engine).sent == number
    return ids


def run_tick(engine: sa.Engine, minutes: int = 0) -> TickReport:
    return tick(engine, NOON + minutes * MINUTE, Sweeper(LEASE, NO_ALERTS))


def messages(broker: Broker) -> list[str]:
    return sorted(id for id, _ in broker.messages("quick"))


def empty(broker: Broker) -> None:
    with broker.client() as client:
        client.flushall()


def texts(ids: list[UUID]) -> list[str]:
    return sorted(str(id) for id in ids)


def states(engine: sa.Engine, ids: list[UUID]) -> set[str]:
    return {row_of(engine, id)["state"] for id in ids}


def silent(engine: sa.Engine, ids: list[UUID], seconds: float = 31.0) -> None:
    for id in ids:
        update_operation(engine, id, sent_at=database_now(-seconds))


def listen(engine: sa.Engine) -> None:
    act(engine, workers.beat, workers.Heartbeat("quick@here", "quick", 1, slots=2))


def long_queued(engine: sa.Engine) -> list[UUID]:
    """Return operations whose messages a live worker should have taken by now."""
    ids = queued(engine)
    listen(engine)
    silent(engine, ids)
    return ids


def test_an_emptied_redis_gets_what_was_queued_once(engine: sa.Engine, broker: Broker) -> None:
    ids = queued(engine)
    listen(engine)
    empty(broker)
    early = run_tick(engine, 1)
    silent(engine, ids)

    noticed = run_tick(engine, 2)
    after = run_tick(engine, 3)

    assert (early.lost_messages, early.sent) == (0, 0)
    assert (noticed.lost_messages, noticed.sent) == (2, 2)
    assert (after.lost_messages, after.sent) == (0, 0)
    assert messages(broker) == texts(ids)
    assert [row_of(engine, id)["attempt"] for id in ids] == [1, 1]


def test_by_depth_a_message_is_sent_again_once_only(engine: sa.Engine, broker: Broker) -> None:
    ids = queued(engine)
    listen(engine)
    lost = []
    for minutes in (1, 2):
        silent(engine, ids)
        empty(broker)
        lost.append(run_tick(engine, minutes).lost_messages)

    assert lost == [2, 0]


def test_a_queue_that_nobody_reads_is_not_filled_again(engine: sa.Engine, broker: Broker) -> None:
    """As what is sent there now could be lost as well."""
    silent(engine, queued(engine))
    empty(broker)

    assert run_tick(engine, 1).lost_messages == 0


def test_what_is_paused_is_sent_again_when_the_pause_ends(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    opened = installation_on(engine, settings)
    ids = long_queued(engine)
    empty(broker)
    pauses.pause(opened, everything=True)
    while_paused = [run_tick(engine, minutes).lost_messages for minutes in (1, 2)]
    pauses.resume(opened, everything=True)

    assert while_paused == [0, 0]
    assert run_tick(engine, 3).lost_messages == 2
    assert messages(broker) == texts(ids)


def make_sendable(engine: sa.Engine, *ids: UUID) -> None:
    for id in ids:
        update_operation(engine, id, not_before=database_now(-1.0))


def test_what_waits_in_its_queue_is_not_sent_again(engine: sa.Engine, broker: Broker) -> None:
    """However many: a backlog is not multiplied, nor by what a worker has just taken."""
    ids = queued(engine, 3)
    listen(engine)
    make_sendable(engine, *ids)
    waited = run_tick(engine, 1)
    with broker.client() as client:
        taken = json.loads(client.rpop("minutebook.quick"))["headers"]["id"]
    silent(engine, [UUID(taken)], 60.0)
    make_sendable(engine, *ids)

    one_taken = run_tick(engine, 2)

    assert (waited.sent, one_taken.sent) == (0, 1)
    assert messages(broker) == texts(ids)


def test_what_others_count_for_is_sent_again_in_an_hour(engine: sa.Engine, broker: Broker) -> None:
    """A notice in the same queue, for example."""
    (id,) = queued(engine, 1)
    empty(broker)
    with broker.client() as client:
        client.lpush("minutebook.quick", "a notice")
    sent = []
    for minutes, seconds in ((1, 400.0), (2, 3700.0)):
        silent(engine, [id], seconds)
        make_sendable(engine, id)
        sent.append(run_tick(engine, minutes).sent)

    assert sent == [0, 1]


def test_a_broker_that_is_silent_for_long_lost_nothing(engine: sa.Engine, broker: Broker) -> None:
    ids = long_queued(engine)
    later = make_operation(engine, make_action(engine, name="later", when=RARELY), NOON)
    make_sendable(engine, later)
    with broker.client() as client:
        client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        while_silent = run_tick(engine, 1)
        client.execute_command("CLIENT", "UNPAUSE")
    back = run_tick(engine, 2)

    assert while_silent.broker_error is not None
    assert (back.broker_error, back.lost_messages, back.sent) == (None, 0, 1)
    assert messages(broker) == texts([*ids, later])


def test_what_a_worker_has_started_or_an_application_got_is_not_sent_again(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    running, other = queued(engine)
    listen(engine)
    claim_as(engine, running, 1, "quick@here")
    configure(allowing(settings, "shop.*"))
    follow_by_name(engine, TASK)
    theirs = make_operation(engine, celery_action(engine, when=RARELY), NOON)
    make_sendable(engine, theirs)
    run_tick(engine)
    assert row_of(engine, theirs)["state"] == "queued"
    silent(engine, [other, theirs])
    empty(broker)

    assert run_tick(engine, 1).lost_messages == 1

    assert messages(broker) == [str(other)]
    assert celery_messages(broker) == []
    configure(settings)


def test_a_redis_that_refuses_a_look_stops_nothing(engine: sa.Engine, broker: Broker) -> None:
    long_queued(engine)
    with broker.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-exists")
        try:
            refused = run_tick(engine, 1)
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+exists")

    assert (refused.lost_messages, refused.broker_error) == (0, None)


# A Redis that fails over.


def test_what_a_replica_lacks_is_sent_again_once_it_has_taken_over(
    home_of: Callable[[str], Settings],
) -> None:
    folder = temporary_folder()
    with replicated(folder) as brokers:
        settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(brokers.url)})
        configure(settings)
        engine = make_engine(settings)
        brokers.fall_behind()
        ids = queued(engine)
        listen(engine)
        assert messages(brokers.primary) == texts(ids)

        brokers.fail_over(loses=True)
        assert messages(brokers.replica) == []
        silent(engine, ids)
        sent = sum(run_tick(engine, minutes).sent for minutes in (1, 2))

        disconnect()
        assert sent == 2
        assert messages(brokers.replica) == texts(ids)
        assert states(engine, ids) == {"queued"}
        engine.dispose()
    shutil.rmtree(folder, ignore_errors=True)


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


@pytest.mark.parametrize("loss", ["its_data", "the_queue"])
def test_a_rabbitmq_that_lost_messages_gets_what_was_queued(rabbit: OnRabbitMQ, loss: str) -> None:
    ids = long_queued(rabbit.engine)
    full = run_tick(rabbit.engine, 1)
    if loss == "its_data":
        rabbit.server.lose_everything()
    else:
        with rabbit.server.channel() as channel:
            channel.queue_delete("minutebook.quick")

    noticed = run_tick(rabbit.engine, 2)
    after = run_tick(rabbit.engine, 3)

    assert (full.lost_messages, noticed.lost_messages, after.lost_messages) == (0, 2, 0)
    assert rabbit.messages() == texts(ids)


@pytest.mark.usefixtures("rabbit")
def test_rabbitmq_waits_for_no_heartbeats_of_a_connection_that_rests() -> None:
    assert app.kept_producer().connection.connection.heartbeat == 0


def test_a_connection_that_rabbitmq_closed_holds_up_no_operation(rabbit: OnRabbitMQ) -> None:
    before = queued(rabbit.engine, 1)
    rabbit.server.stop()
    rabbit.server.start()
    after = make_operation(rabbit.engine, make_action(rabbit.engine, name="after"), NOON)
    make_sendable(rabbit.engine, after)

    # As in a web process, which never looks whether the broker lost messages.
    sent = dispatch_ready(rabbit.engine)

    assert (sent.count, sent.error) == (1, None)
    assert rabbit.messages() == texts([*before, after])


def test_what_a_rabbitmq_lost_while_it_is_low_is_sent_again_afterwards(rabbit: OnRabbitMQ) -> None:
    ids = long_queued(rabbit.engine)
    with rabbit.server.channel() as channel:
        channel.queue_delete("minutebook.quick")

    # Clients are told the same if the node's disk is full.
    rabbit.server.control("set_vm_memory_high_watermark", "0.00001")
    try:
        # Commands to RabbitMQ may take longer than a silent worker counts as live.
        listen(rabbit.engine)
        refused = run_tick(rabbit.engine, 1)
        assert states(rabbit.engine, ids) <= {"pending", "queued"}
        with pytest.raises(BrokerUnavailable, match="is low on memory or disk"):
            probe(rabbit.settings, ["quick"])
    finally:
        rabbit.server.control("set_vm_memory_high_watermark", "0.4")
    listen(rabbit.engine)
    silent(rabbit.engine, ids)
    for minutes in (2, 3):
        run_tick(rabbit.engine, minutes)

    assert refused.sent == 0
    assert "is low on memory or disk, and takes no messages" in str(refused.broker_error)
    assert states(rabbit.engine, ids) == {"queued"}
    # What it had not read of the refused tick it reads afterwards, and that counts as waiting.
    found = rabbit.messages()
    assert found
    assert set(found) <= set(texts(ids))


def test_what_rabbitmq_confirmed_and_dropped_is_sent_again(rabbit: OnRabbitMQ) -> None:
    rabbit.server.control("set_policy", "drops", "^minutebook[.]quick$", '{"max-length": 0}')
    ids = queued(rabbit.engine)
    assert rabbit.messages() == []
    rabbit.server.control("clear_policy", "drops")
    listen(rabbit.engine)
    silent(rabbit.engine, ids)

    sent = [run_tick(rabbit.engine, minutes).sent for minutes in (1, 2)]

    assert sum(sent) == 2
    assert rabbit.messages() == texts(ids)
    assert states(rabbit.engine, ids) == {"queued"}


def test_a_rabbitmq_that_falls_silent_holds_up_no_tick_and_loses_none(rabbit: OnRabbitMQ) -> None:
    ids = queued(rabbit.engine)
    with rabbit.server.silence():
        unheard = run_tick(rabbit.engine, 1)

    back = run_tick(rabbit.engine, 2)

    assert unheard.broker_error is not None
    assert (back.broker_error, back.lost_messages, back.sent) == (None, 0, 0)
    assert rabbit.messages() == texts(ids)


def test_a_queue_of_the_application_is_used_as_it_is_declared(rabbit: OnRabbitMQ) -> None:
    queue, arguments = "urgent", {"x-max-priority": 9}
    action = celery_action(rabbit.engine, step={"queue": queue, "priority": 5})
    id = make_operation(rabbit.engine, action, NOON)
    make_sendable(rabbit.engine, id)
    with rabbit.server.channel() as channel:
        channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)

    configure(allowing(rabbit.settings, "shop.*"))
    assert run_tick(rabbit.engine).sent == 1

    with rabbit.server.channel() as channel:
        message = channel.basic_get(queue, no_ack=True)
        # To declare it otherwise would be refused.
        channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
    assert (message.headers["id"], message.properties["priority"]) == (str(id), 5)
