"""Whoever is to be told is told, whatever dies within the delivery."""

import sqlalchemy as sa

from models.sql import database_now
from models.tables import notices
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.receiver import receiver

TELLS = {"SCHED_HOOK_ALLOW_PRIVATE": "true", "SCHED_HOOK_TIMEOUT_S": "60"}


def owed(installation: Installation) -> list[tuple[str, int]]:
    query = sa.select(notices.c.state, notices.c.tries)
    with reading(installation.engine) as connection:
        return [tuple(row) for row in connection.execute(query)]


def test_a_worker_killed_in_the_middle_of_a_delivery_delivers_it_again_as_the_same(
    installation: Installation,
) -> None:
    with receiver() as web:
        web.trickle_s = 60
        hooks = {"on_success": [{"webhook": web.url}]}
        installation.operation(installation.action(hooks=hooks))
        installation.send()
        worker = installation.worker(settings=TELLS)
        until(lambda: len(web.got) == 1, "the webhook is called")

        worker.kill()
        until(lambda: installation.processes.left() == [], "its child ends with it")
        web.trickle_s = 0
        installation.worker(settings=TELLS)
        # As if the time of the try had gone by.
        with installation.engine.begin() as connection:
            connection.execute(sa.update(notices).values(not_before=database_now(-1.0)))
        installation.tick()
        until(lambda: owed(installation) == [("done", 2)], lambda: f"{owed(installation)}")

        first, second = (got.headers["Idempotency-Key"] for got in web.got)
        assert first == second
