"""No small app holds up another: each has its turn on a queue, whatever the others have there."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.fingerprint import operation_id
from models.operation import OperationState
from models.sql import database_now
from models.store import operations
from models.tables import operations as operations_table
from runtime.database import reading
from scheduler.changes.change import Changed
from scheduler.record import ActionRef, operation_row
from tests.acceptance.installation import TICK_S, Installation
from tests.acceptance.processes import until
from tests.factories import DEFAULT_APP, caused_by, make_app
from tests.web_source import Page, WebSource, web_source

DOMAINS = 200
QUEUED = 1_000
# What a loaded machine may take between a tick and the start.
SECONDS = timedelta(seconds=10)
PRIVATE = {"SCHED_FETCH_ALLOW_PRIVATE": "true"}
RESERVE = {"SCHED_LIMITS_RESERVE": "1"}
MANY = {"overlap": "allow"}


@pytest.fixture
def trickling() -> Iterator[WebSource]:
    """A server whose every page comes byte by byte, slower than any download may take."""
    with web_source() as source:
        for number in range(DOMAINS):
            source.pages[f"/{number}.csv"] = Page(b"id\n" + b"1\n" * 10_000, trickle_s=1)
        yield source


def record(
    installation: Installation, *actions: Changed, count: int, app: SmallApp = DEFAULT_APP
) -> list[UUID]:
    """Record operations of actions of a small app, the oldest of each first, all due."""
    now, by = installation.now(), caused_by("Manual run by ann")
    rows = []
    for action in actions:
        subject = ActionRef(action.uid, app.id, action.name, action.revision)
        for number in range(count, 0, -1):
            at = now - number * timedelta(minutes=1)
            id = operation_id(action.uid, at)
            rows.append(operation_row(subject, action.plan, id, at, by))
    ids = [row["id"] for row in rows]
    with installation.engine.begin() as connection:
        operations.record(connection, rows)
        aged = sa.update(operations_table).where(operations_table.c.id.in_(ids))
        connection.execute(aged.values(not_before=database_now(-1.0)))
    return ids


def frequent(installation: Installation, **changes: Any) -> Changed:
    """Store an action of the app `other` that is due at every tick."""
    app = make_app(installation.engine, "other")
    when = {"every": f"PT{TICK_S}S"}
    return installation.action("frequent", app=app, when=when, **changes)


def started(installation: Installation, action: Changed) -> list[sa.RowMapping]:
    return [row for row in installation.rows(action.uid) if row["first_started_at"] is not None]


def count_in(installation: Installation, action: Changed, *states: OperationState) -> int:
    query = sa.select(sa.func.count()).where(
        operations_table.c.action_uid == action.uid, operations_table.c.state.in_(states)
    )
    with reading(installation.engine) as connection:
        return int(connection.execute(query).scalar_one())


def test_a_reserve_keeps_an_app_of_trickling_sources_from_holding_up_another(
    installation: Installation, trickling: WebSource
) -> None:
    domains = {
        f"d{number}": {"source": {"url": f"{trickling.url}/{number}.csv"}, "format": "csv"}
        for number in range(DOMAINS)
    }
    make_app(installation.engine, "default", domains=domains)
    slow = installation.action("slow", operations={"refresh": True}, policy=MANY)
    ours = frequent(installation, policy={"queue": "heavy"})
    record(installation, slow, count=QUEUED)
    installation.worker("heavy", 2, settings=PRIVATE | RESERVE)
    installation.daemon(PRIVATE | RESERVE)
    until(lambda: count_in(installation, slow, OperationState.RUNNING) == 1, "the first refreshes")
    until(lambda: len(trickling.requests) > 0, "it reads the sources")

    until(lambda: len(started(installation, ours)) >= 3, "three of the other app have started")

    late = [row["first_started_at"] - row["recorded_at"] for row in started(installation, ours)]
    assert max(late) < SECONDS
    assert len(started(installation, slow)) == 1
    assert count_in(installation, slow, OperationState.PENDING) == QUEUED - 1
    assert len(installation.kept_messages("minutebook.heavy")) <= 1


def test_with_one_process_the_apps_take_turns(installation: Installation) -> None:
    # Each takes a second, so that the queue outlasts the test.
    second = {"trace_one": {"progress": 3}}
    many = installation.action("many", operations=second, policy=MANY)
    ours = frequent(installation)
    ids = record(installation, many, count=QUEUED)
    installation.worker("quick", 1)
    installation.daemon()

    until(lambda: len(started(installation, ours)) >= 2, "two of the other app have started")
    until(lambda: len(started(installation, many)) >= 4, "the first app goes on meanwhile")

    for row in started(installation, ours):
        before = [
            one
            for one in started(installation, many)
            if row["recorded_at"] < one["first_started_at"] < row["first_started_at"]
        ]
        # At most the one whose message is ahead, and those of the moment until it is sent.
        assert len(before) <= 3
    in_order = [row["id"] for row in started(installation, many)]
    assert in_order == ids[: len(in_order)]


def test_an_app_borrows_every_process_and_gives_the_next_one_back(
    installation: Installation,
) -> None:
    gates = [installation.home / name for name in ("first gate", "second gate")]
    first, second = (
        installation.action(gate.name, operations={"trace_one": {"until": str(gate)}}, policy=MANY)
        for gate in gates
    )
    often = installation.action("often", when={"every": f"PT{TICK_S}S"})
    other = make_app(installation.engine, "other")
    ours = installation.action("ours", app=other, policy=MANY)
    installation.worker("quick", 2)
    record(installation, first, count=1)
    installation.daemon()
    until(lambda: count_in(installation, first, OperationState.RUNNING) == 1, "the long one runs")

    until(lambda: len(started(installation, often)) >= 3, "its app uses the other process")

    record(installation, second, count=1)
    until(lambda: count_in(installation, second, OperationState.RUNNING) == 1, "it uses both")
    until(lambda: count_in(installation, often, OperationState.PENDING) > 0, "it wants a third")
    record(installation, ours, count=1, app=other)
    until(lambda: count_in(installation, ours, OperationState.QUEUED) == 1, "it is the next one")
    gates[1].touch()

    until(lambda: len(started(installation, ours)) == 1, "the other app has the next process")

    (its_own,) = started(installation, ours)
    ended_at = installation.rows(second.uid)[0]["finished_at"]
    since = [row["first_started_at"] for row in started(installation, often)]
    assert its_own["first_started_at"] - ended_at < SECONDS
    assert not any(ended_at < at < its_own["first_started_at"] for at in since)
    assert count_in(installation, first, OperationState.RUNNING) == 1


def test_a_worker_that_starts_gets_what_waits_for_all_of_its_processes(
    installation: Installation,
) -> None:
    gate = str(installation.home / "gate")
    many = installation.action("many", operations={"trace_one": {"until": gate}}, policy=MANY)
    installation.action("its own", policy={"priority": 1})
    record(installation, many, count=3)
    installation.tick()
    assert count_in(installation, many, OperationState.QUEUED) == 1

    installation.worker("quick", 3)

    # No daemon runs, and none of them ends.
    until(lambda: count_in(installation, many, OperationState.RUNNING) == 3, "all three run")
