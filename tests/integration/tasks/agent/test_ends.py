"""The ends of tasks while the database is away: kept, and written once under their fence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.store.operations.put_back import take_back_lost
from models.store.operations.transitions import attempts_of
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import make_engine, reading
from tasks.agent import Agent
from tasks.agent import spool as spools
from tests.factories import row_of, update_operation
from tests.integration.tasks.agent.test_agent import MINUTE, Asked, make_sent, serving

SOON_S = 20.0


class Route:
    """The way of an agent to its database, which a test may cut."""

    def __init__(self, settings: Settings) -> None:
        self.engine = make_engine(settings)
        self.is_cut = False
        sa.event.listen(self.engine, "begin", self._pass)

    def _pass(self, *_: object) -> None:
        if self.is_cut:
            raise sa.exc.OperationalError("", {}, Exception("no route"))


@pytest.fixture
def route(settings: Settings) -> Iterator[Route]:
    made = Route(settings)
    yield made
    made.is_cut = False
    made.engine.dispose()


@pytest.fixture
def agent(route: Route, settings: Settings, path: Path) -> Iterator[Agent]:
    yield from serving(route.engine, settings, path)


@pytest.fixture
def task(agent: Agent, path: Path) -> Iterator[Asked]:
    asked = Asked(path)
    yield asked
    asked.channel.close()


def kept(settings: Settings) -> list[str]:
    return sorted(one.name for one in (settings.home / "kept-ends").glob("*"))


def end(task: Asked, id: UUID, **told: Any) -> dict[str, Any]:
    its = {"id": str(id), "attempt": 1, "delivery": task.delivery}
    return task.ask("end", **{**its, "outcome": "success", "progress": {}, **told})


def ended_while_cut(engine: sa.Engine, settings: Settings, route: Route, task: Asked) -> UUID:
    """Return an operation whose task ended while the database was away, which it still is."""
    id = make_sent(engine, settings)
    task.start(id)
    route.is_cut = True
    assert end(task, id) == {"state": "kept"}
    return id


def test_an_end_is_kept_at_once_and_written_when_the_database_is_back(
    engine: sa.Engine, settings: Settings, route: Route, task: Asked
) -> None:
    id = ended_while_cut(engine, settings, route, task)
    assert kept(settings) == [f"{id}-1.json"]
    assert row_of(engine, id)["state"] == "running"

    route.is_cut = False

    assert wait_for(lambda: row_of(engine, id)["state"] == "success", SOON_S)
    assert wait_for(lambda: not kept(settings), SOON_S)
    with reading(engine) as connection:
        assert [one["state"] for one in attempts_of(connection, id)] == ["success"]


def test_the_connection_of_a_kept_end_serves_the_next_task(
    engine: sa.Engine, settings: Settings, route: Route, agent: Agent, task: Asked
) -> None:
    ended_while_cut(engine, settings, route, task)
    route.is_cut = False
    assert wait_for(agent.desk.is_free, SOON_S)

    task.start(second := make_sent(engine, settings, name="the next"))

    assert end(task, second) == {"state": "success"}


def test_a_kept_end_of_an_attempt_that_was_given_away_does_not_win(
    engine: sa.Engine, settings: Settings, route: Route, task: Asked
) -> None:
    id = ended_while_cut(engine, settings, route, task)
    update_operation(engine, id, heartbeat_at=database_now(-3600.0))
    with engine.begin() as connection:
        take_back_lost(connection, MINUTE, 10, settings.alert)
    taken = row_of(engine, id)

    route.is_cut = False

    assert wait_for(lambda: not kept(settings), SOON_S)
    row = row_of(engine, id)
    assert (row["state"], row["attempt"], row["reason"]) == ("failed", 1, "lost")
    assert row["finished_at"] == taken["finished_at"]


def test_a_retry_that_is_kept_lets_the_next_attempt_wait_and_run(
    engine: sa.Engine, settings: Settings, route: Route, agent: Agent, task: Asked
) -> None:
    id = make_sent(engine, settings)
    task.start(id)
    route.is_cut = True
    assert end(task, id, outcome="retry", error="OSError: no", delay_s=0.0)["state"] == "kept"
    route.is_cut = False

    states = [task.claim(id, attempt=2)["state"]]
    while states[-1] in {"early", "away"} and len(states) < 100:
        states.append(task.claim(id, attempt=2)["state"])
        wait_for(lambda: row_of(engine, id)["attempt"] == 2, 0.5)

    assert states[-1] == "taken"
    assert wait_for(agent.desk.is_free, SOON_S)
    assert end(task, id, attempt=2) == {"state": "success"}


def test_what_an_agent_kept_that_is_gone_the_next_one_writes(
    engine: sa.Engine, settings: Settings, route: Route, path: Path
) -> None:
    first = serving(route.engine, settings, path)
    next(first)
    task = Asked(path)
    id = ended_while_cut(engine, settings, route, task)
    task.channel.close()
    next(first, None)
    route.is_cut = False

    second = serving(engine, settings, path.with_name("second.sock"))
    next(second)

    assert wait_for(lambda: row_of(engine, id)["state"] == "success", SOON_S)
    assert wait_for(lambda: not kept(settings), SOON_S)
    next(second, None)


def test_a_new_agent_takes_the_end_of_a_task_of_an_earlier_one_while_the_database_is_away(
    engine: sa.Engine, settings: Settings, route: Route, task: Asked, path: Path
) -> None:
    id = make_sent(engine, settings)
    other = serving(engine, settings, path.with_name("other.sock"))
    next(other)
    earlier = Asked(path.with_name("other.sock"))
    earlier.start(id)
    task.delivery, route.is_cut = earlier.delivery, True

    its = {"id": str(id), "attempt": 1, "delivery": task.delivery}
    assert task.ask("resume", **its)["state"] == "away"
    assert end(task, id) == {"state": "kept"}
    route.is_cut = False

    assert wait_for(lambda: row_of(engine, id)["state"] == "success", SOON_S)
    earlier.channel.close()
    next(other, None)


def test_an_end_with_another_name_than_the_call_s_ends_nothing(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    task, stranger = Asked(path), Asked(path)
    task.start(id)
    stranger.delivery = uuid4().hex

    assert end(stranger, id) == {"state": "lost"}
    assert end(stranger, id, delivery="") == {"state": "lost"}

    assert row_of(engine, id)["state"] == "running"
    assert end(task, id) == {"state": "success"}
    for one in (task, stranger):
        one.channel.close()


def test_while_the_disk_takes_no_end_its_task_waits_for_the_database(
    engine: sa.Engine,
    settings: Settings,
    route: Route,
    task: Asked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spools, "MOST_KEPT", 0)
    id = make_sent(engine, settings)
    task.start(id)
    cuts: list[bool] = []

    def pass_the_second(*_: object) -> None:
        cuts.append(True)
        route.is_cut = len(cuts) < 2

    sa.event.listen(route.engine, "begin", pass_the_second, insert=True)

    assert end(task, id) == {"state": "success"}
    assert kept(settings) == []
