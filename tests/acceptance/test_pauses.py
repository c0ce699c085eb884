"""What was sent before a pause is held: workers that take it put it back, and run none of it."""

import os
from collections import Counter

import sqlalchemy as sa

from models.tables import operations
from runtime.database import reading
from tests.acceptance.installation import MINUTE, Installation
from tests.acceptance.processes import until
from tests.factories import make_operation

# As many as `COUNT=5000` says: a worker takes some 300 a second.
COUNT = int(os.environ.get("COUNT", "100"))
WITHIN_S = 90 + COUNT / 20


def states(installation: Installation) -> dict[str, int]:
    with reading(installation.engine) as connection:
        return Counter(connection.execute(sa.select(operations.c.state)).scalars())


def test_nothing_that_was_sent_runs_in_a_pause_and_all_of_it_runs_once_after(
    installation: Installation,
) -> None:
    at_once = {"overlap": "allow", "catch_up": "all", "look_back": "P7D"}
    action = installation.action(operations={"maintenance": True}, policy=at_once)
    at = installation.now().replace(second=0, microsecond=0)
    ids = [make_operation(installation.engine, action, at - n * MINUTE) for n in range(COUNT)]
    installation.make_sendable(*ids)
    installation.tick()
    assert states(installation) == {"queued": COUNT}

    paused = installation.cli("pause", "--queue", "quick", "--reason", "a migration")
    installation.worker(concurrency=2, is_awaited=True)
    until(lambda: states(installation) == {"pending": COUNT}, "all are put back", WITHIN_S)
    installation.tick()

    assert paused["waiting"] == COUNT
    assert states(installation) == {"pending": COUNT}
    installation.cli("resume", "--queue", "quick")
    installation.tick()
    until(lambda: states(installation) == {"success": COUNT}, "all have run", WITHIN_S)
    with reading(installation.engine) as connection:
        attempts = connection.execute(sa.select(operations.c.attempt).distinct()).scalars().all()
    assert attempts == [1]
