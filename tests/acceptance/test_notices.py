"""Whoever is to be told is told, whatever dies between the end and the delivery."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.tables import notices
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.receiver import Receiver, receiver

TELLS = {"SCHED_HOOK_ALLOW_PRIVATE": "true", "SCHED_HOOK_TIMEOUT_S": "60"}


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


def watched(installation: Installation, web: Receiver, **parameters: Any) -> UUID:
    """Record an operation of an action that tells `web` of its success."""
    steps = {"trace_one": parameters or True}
    hooks = {"on_success": [{"webhook": web.url}]}
    return installation.operation(installation.action(operations=steps, hooks=hooks))


def owed(installation: Installation) -> list[tuple[str, int]]:
    query = sa.select(notices.c.state, notices.c.tries)
    with reading(installation.engine) as connection:
        return [tuple(row) for row in connection.execute(query)]


def age(installation: Installation) -> None:
    """As if the time of a reservation, or of a try, had gone by."""
    with installation.engine.begin() as connection:
        connection.execute(sa.update(notices).values(not_before=database_now(-1.0)))


def delivered(installation: Installation, tries: int) -> None:
    until(lambda: owed(installation) == [("done", tries)], lambda: f"{owed(installation)}")


def test_a_worker_killed_in_the_middle_of_a_delivery_delivers_it_again_as_the_same(
    installation: Installation, web: Receiver
) -> None:
    web.trickle_s = 60
    watched(installation, web)
    installation.send()
    worker = installation.worker(settings=TELLS)
    until(lambda: len(web.got) == 1, "the webhook is called")

    worker.kill()
    until(lambda: installation.processes.left() == [], "its child ends with it")
    web.trickle_s = 0
    installation.worker(settings=TELLS)
    age(installation)
    installation.tick()
    delivered(installation, 2)

    first, second = (got.headers["Idempotency-Key"] for got in web.got)
    assert first == second


def test_a_worker_killed_between_the_end_and_the_message_loses_nothing(
    installation: Installation, web: Receiver
) -> None:
    id = watched(installation, web, until=str(installation.file("go")))
    installation.send()
    worker = installation.worker(settings=TELLS)
    installation.step_starts(id)

    installation.freeze_broker()
    installation.file("go").touch()
    installation.becomes(id, "success")
    worker.kill()
    until(lambda: installation.processes.left() == [], "its child ends with it")
    installation.thaw_broker()
    assert owed(installation) == [("owed", 0)]
    installation.worker(settings=TELLS)
    age(installation)
    installation.tick()
    delivered(installation, 1)

    assert len(web.got) == 1
    assert len(installation.trace.starts(id)) == 1
