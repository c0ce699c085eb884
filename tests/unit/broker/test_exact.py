"""broker/exact.py: a worker takes exactly what Minutebook sends."""

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kombu import Connection, Producer, Queue

from broker.app import publish_one
from broker.exact import LONGEST_BODY, why_foreign
from models.carriers import WORKER_TASKS
from models.store.operations.outbox import Message

ID, OTHER = UUID(int=7), UUID(int=8)
PLAIN = dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))


def sent(task: str = "execute_scheduled_action") -> Any:
    """Return a message of ours as a worker gets it."""
    with Connection("memory://") as connection, connection.channel() as channel:
        queue = Queue("minutebook.quick", routing_key="minutebook.quick", channel=channel)
        queue.declare()
        publish_one(Producer(channel), Message(ID, 7, task, "quick"))
        message = queue.get()
        assert message is not None
        return message


def changed(**parts: Any) -> Any:
    """Return a message of ours with other parts."""
    ours = sent()
    names = ("headers", "body", "content_type", "content_encoding")
    return SimpleNamespace(**{name: getattr(ours, name) for name in names} | parts)


def with_headers(**headers: Any) -> Any:
    return changed(headers={**sent().headers, **headers})


def with_body(*parts: Any) -> Any:
    return changed(body=json.dumps(parts))


@pytest.mark.parametrize("task", sorted(WORKER_TASKS))
def test_what_we_send_is_ours(task: str) -> None:
    assert why_foreign(sent(task)) is None


@pytest.mark.parametrize(
    "headers",
    [{"redelivered": True}, {"x-delivery-count": 3}, {"of_a_newer_celery": None}, {"shadow": ""}],
)
def test_what_a_broker_or_a_newer_celery_adds_changes_nothing(headers: dict[str, Any]) -> None:
    assert why_foreign(with_headers(**headers)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta", "2099-01-01T00:00:00Z"),
        ("expires", "2099-01-01T00:00:00Z"),
        ("timelimit", [1, None]),
        ("timelimit", [None, 1]),
        ("retries", 1),
        ("group", "g"),
        ("parent_id", str(ID)),
        ("root_id", str(OTHER)),
        ("id", str(OTHER)),
        ("stamps", {"a": "b"}),
        ("stamped_headers", ["a"]),
        ("replaced_task_nesting", 1),
        ("compression", "application/x-gzip"),
        ("origin", "gen1@host"),
        ("argsrepr", "x" * 1_000),
        ("lang", "rust"),
        ("anything", "else"),
        ("task", "celery.starmap"),
        ("task", "shop.close_day"),
        ("task", None),
        ("task", ["execute_scheduled_action"]),
    ],
)
def test_a_header_that_we_do_not_send_is_foreign(name: str, value: object) -> None:
    assert why_foreign(with_headers(**{name: value})) is not None


@pytest.mark.parametrize(
    "message",
    [
        with_body([str(ID), 7], {}, {**PLAIN, "chain": [{"task": "x"}]}),
        with_body([str(ID), 7], {}, {**PLAIN, "callbacks": [{"task": "x"}]}),
        with_body([str(ID), 7], {}, {**PLAIN, "errbacks": [{"task": "x"}]}),
        with_body([str(ID), 7], {}, {**PLAIN, "chord": {"task": "x"}}),
        with_body([str(ID), 7], {}, {**PLAIN, "more": None}),
        with_body([str(ID), 7], {"a": 1}, PLAIN),
        with_body([str(ID), 7, 8], {}, PLAIN),
        with_body([str(ID), "7"], {}, PLAIN),
        with_body([str(ID), True], {}, PLAIN),
        with_body([str(ID), 0], {}, PLAIN),
        with_body([str(ID), 2**31], {}, PLAIN),
        with_body([f"{{{ID}}}", 7], {}, PLAIN),
        with_body(["1", 7], {}, PLAIN),
        with_body([7, 7], {}, PLAIN),
        with_body([str(OTHER), 7], {}, PLAIN),
        changed(body="null"),
        changed(body="{"),
        changed(body="[" * LONGEST_BODY),
        changed(body=b"\xff"),
        changed(body=None),
        changed(body=json.dumps([[str(ID), 7], {}, PLAIN]) + " " * LONGEST_BODY),
        changed(content_type="application/x-python-serialize"),
        changed(content_encoding="utf-16"),
        changed(headers={}),
        changed(headers=None),
    ],
)
def test_a_body_that_we_do_not_send_is_foreign(message: Any) -> None:
    assert why_foreign(message) is not None


def test_a_message_without_an_id_is_foreign() -> None:
    headers = {name: value for name, value in sent().headers.items() if name != "id"}

    assert why_foreign(changed(headers=headers)) is not None
