"""Whose error it is: while the broker refuses everything all wait; one message's stops no other."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
import sqlalchemy as sa

from broker.app import configure
from models.sql import database_now
from models.tables import operations
from runtime.clock import monotonic
from runtime.config import Settings
from scheduler.sweep import dispatch_notices, dispatch_ready
from tests.celery_messages import (
    allowing,
    celery_action,
    celery_messages,
    make_due,
    on_rabbitmq_with,
)
from tests.factories import make_action, row_of
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker
from tests.transactions import execute

# Of a list of messages, a text instead.
ALIEN = "another program's"


@pytest.fixture
def engine(engine: sa.Engine, settings: Settings) -> Iterator[sa.Engine]:
    """An installation on Redis, whose application is at the same one."""
    configure(allowing(settings, "shop.*"))
    yield engine
    configure(settings)


@pytest.fixture
def on_rabbitmq(rabbitmq: RabbitMQ, home_of: Callable[[str], Settings]) -> Iterator[sa.Engine]:
    """An installation on RabbitMQ, with the queue `shop` of its application."""
    with on_rabbitmq_with("shop", rabbitmq, home_of("sqlite")) as engine:
        yield engine


def ours(engine: sa.Engine, queue: str = "quick") -> UUID:
    action = make_action(engine, name=f"of queue {queue}", policy={"queue": queue})
    return make_due(engine, action)


def theirs(engine: sa.Engine, queue: str = "celery") -> UUID:
    action = celery_action(engine, name=f"sent to {queue}", step={"queue": queue})
    return make_due(engine, action)


@pytest.mark.parametrize(
    ("commands", "undo"),
    [
        pytest.param(["REPLICAOF 127.0.0.1 1"], "REPLICAOF NO ONE", id="read_only"),
        pytest.param(["CONFIG SET maxmemory 1"], "CONFIG SET maxmemory 0", id="out_of_memory"),
        pytest.param(
            ["CONFIG SET requirepass secret", "CLIENT KILL TYPE normal SKIPME yes"],
            "CONFIG SET requirepass ",
            id="wants_a_password",
        ),
    ],
)
def test_while_the_broker_refuses_everything_all_wait_and_are_sent_afterwards(
    engine: sa.Engine, broker: Broker, commands: list[str], undo: str
) -> None:
    own, its = ours(engine), theirs(engine)

    with broker.client() as client:
        try:
            for command in commands:
                client.execute_command(*command.split(" "))
            refused = dispatch_ready(engine)
        finally:
            client.execute_command(*undo.split(" "))

    rows = [row_of(engine, id) for id in (own, its)]
    assert (refused.count, refused.error is not None) == (0, True)
    assert [(row["state"], row["send_started_at"]) for row in rows] == [("pending", None)] * 2
    execute(engine, sa.update(operations).values(not_before=database_now(-1.0)))
    assert dispatch_ready(engine).error is None
    assert [row_of(engine, id)["state"] for id in (own, its)] == ["queued", "handed_over"]


def test_a_key_that_is_no_queue_fails_the_task_sent_there_and_no_other(
    engine: sa.Engine, broker: Broker
) -> None:
    with broker.client() as client:
        client.set("wrong", ALIEN)
    sent = [theirs(engine, "celery"), ours(engine)]
    wrong = theirs(engine, "wrong")
    sent.append(theirs(engine, "shop"))

    assert dispatch_ready(engine).error is None

    row = row_of(engine, wrong)
    assert (row["state"], row["reason"], row["sendings"]) == ("failed", "send refused", 0)
    assert "its message to queue wrong was refused: ResponseError: WRONGTYPE" in row["error"]
    assert [row_of(engine, id)["state"] for id in sent] == ["handed_over", "queued", "handed_over"]
    assert len(celery_messages(broker)) == len(celery_messages(broker, "shop")) == 1
    with broker.client() as client:
        assert client.get("wrong") == ALIEN.encode()


def test_a_key_that_is_no_queue_of_ours_keeps_back_what_is_sent_there_and_nothing_else(
    engine: sa.Engine, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with broker.client() as client:
        client.set("minutebook.wrong", ALIEN)
    before, wrong, after = ours(engine), ours(engine, "wrong"), ours(engine, "reports")
    its = theirs(engine)

    assert dispatch_ready(engine).error is None

    assert row_of(engine, wrong)["state"] == "pending"
    assert [row_of(engine, id)["state"] for id in (before, after)] == ["queued"] * 2
    assert row_of(engine, its)["state"] == "handed_over"
    assert [len(broker.messages(queue)) for queue in ("quick", "reports")] == [1, 1]
    assert "nothing was sent to minutebook.wrong: ResponseError: WRONGTYPE " in caplog.text


def test_notices_wait_while_their_key_is_no_queue(engine: sa.Engine, broker: Broker) -> None:
    with broker.client() as client:
        client.set("minutebook.quick", ALIEN)
        client.set("wrong", ALIEN)
    hooks = {"on_failure": [{"mail": "ann@example.com"}]}
    action = celery_action(engine, hooks=hooks, step={"queue": "wrong"})
    make_due(engine, action)
    dispatch_ready(engine)

    kept = dispatch_notices(engine)

    assert (kept.count, kept.error) == (0, None)
    with broker.client() as client:
        client.delete("minutebook.quick")
    assert dispatch_notices(engine).count == 1


def test_a_full_queue_of_ours_keeps_back_its_own_operations_alone(
    on_rabbitmq: sa.Engine, rabbitmq: RabbitMQ, caplog: pytest.LogCaptureFixture
) -> None:
    full = '{"max-length": 0, "overflow": "reject-publish"}'
    rabbitmq.control("set_policy", "full", "^minutebook[.]full$", full)
    kept, sent = ours(on_rabbitmq, "full"), ours(on_rabbitmq)

    assert dispatch_ready(on_rabbitmq).error is None

    assert row_of(on_rabbitmq, kept)["state"] == "pending"
    assert row_of(on_rabbitmq, sent)["state"] == "queued"
    assert "nothing was sent to minutebook.full: its queue is full" in caplog.text


def test_headers_that_one_frame_cannot_hold_fail_their_task_and_no_other(
    on_rabbitmq: sa.Engine,
) -> None:
    """No document has such headers; a plan that was written by hand may."""
    large = {"queue": "shop", "headers": {"note": "NOTE"}}
    action = celery_action(on_rabbitmq, name="large", step=large)
    wrong = make_due(on_rabbitmq, action)
    with on_rabbitmq.begin() as connection:
        written = "UPDATE revisions SET plan = replace(plan, 'NOTE', :note)"
        connection.execute(sa.text(written), {"note": "x" * 200_000})
    sent = [theirs(on_rabbitmq, "shop"), ours(on_rabbitmq)]

    assert dispatch_ready(on_rabbitmq).error is None

    row = row_of(on_rabbitmq, wrong)
    assert (row["state"], row["reason"]) == ("failed", "send refused")
    assert "its headers have 200," in row["error"]
    assert [row_of(on_rabbitmq, id)["state"] for id in sent] == ["handed_over", "queued"]


def test_a_silent_rabbitmq_of_the_application_holds_up_a_tick_for_seconds_only(
    on_rabbitmq: sa.Engine, rabbitmq: RabbitMQ
) -> None:
    theirs(on_rabbitmq, "shop")
    dispatch_ready(on_rabbitmq)
    with rabbitmq.channel() as channel:
        channel.queue_declare("later", durable=True, auto_delete=False)
    theirs(on_rabbitmq, "later")

    began = monotonic()
    with rabbitmq.silence():
        sent = dispatch_ready(on_rabbitmq)

    assert sent.error is not None
    assert monotonic() - began < 20
