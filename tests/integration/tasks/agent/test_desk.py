"""The desk of an agent: what it asks of the database together, and while that is away."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import sqlalchemy as sa

from models.errors import LeaseLost
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import always_wait_briefly, make_engine
from tasks.agent.desk import Desk, Errand

SOON_S = 20.0


@pytest.fixture
def desk(engine: sa.Engine) -> Iterator[Desk]:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE done (name VARCHAR(20))")
    made = Desk(engine)
    yield made
    made.close()


@contextmanager
def busy(desk: Desk) -> Iterator[None]:
    """Let the desk carry out something as long as the block lasts: what is submitted waits."""
    clerks = len(desk._clerks)
    begun, goes_on = threading.Barrier(clerks + 1), threading.Event()

    def act(_connection: sa.Connection) -> None:
        begun.wait(SOON_S)
        goes_on.wait(SOON_S)

    for _ in range(clerks):
        before = len(desk._busy_since)
        desk.submit(Errand(act))
        # Each clerk takes one: two would be one group.
        assert wait_for(partial(_is_busier, desk, before), SOON_S)
    begun.wait(SOON_S)
    yield
    goes_on.set()


def _is_busier(desk: Desk, before: int) -> bool:
    return len(desk._busy_since) > before


def writing(name: str, **how: bool) -> Errand[int]:
    """Return an errand that writes a name, and says in which transaction."""

    def act(connection: sa.Connection) -> int:
        connection.execute(sa.text("INSERT INTO done VALUES (:name)"), {"name": name})
        return id(connection.get_transaction())

    return Errand(act, **how)


def failing(error: Exception) -> Errand[None]:
    def act(connection: sa.Connection) -> None:
        connection.exec_driver_sql("INSERT INTO done VALUES ('half')")
        raise error

    return Errand(act)


def written(engine: sa.Engine) -> list[str]:
    with engine.connect() as connection:
        return sorted(connection.exec_driver_sql("SELECT name FROM done").scalars())


def test_what_waits_together_is_one_transaction(engine: sa.Engine, desk: Desk) -> None:
    errands = [writing(name) for name in ("one", "two", "three")]
    with busy(desk):
        for one in errands:
            desk.submit(one)

    assert all(one.is_settled(SOON_S) for one in errands)
    assert len({one.result for one in errands}) == 1
    assert written(engine) == ["one", "three", "two"]


@pytest.mark.parametrize("error", [LeaseLost("moved"), ValueError("wrong"), RuntimeError("odd")])
def test_one_that_fails_has_written_nothing_and_costs_no_other(
    engine: sa.Engine, desk: Desk, error: Exception
) -> None:
    bad, errands = failing(error), [writing("one"), writing("two")]
    with busy(desk):
        for one in (errands[0], bad, errands[1]):
            desk.submit(one)

    assert all(one.is_settled(SOON_S) for one in errands)
    assert bad.is_settled(SOON_S)
    assert bad.error is error
    assert [one.error for one in errands] == [None, None]
    assert written(engine) == ["one", "two"]


def test_one_that_was_dropped_in_time_is_never_carried_out(engine: sa.Engine, desk: Desk) -> None:
    dropped, other = writing("dropped"), writing("other")
    with busy(desk):
        desk.submit(dropped)
        desk.submit(other)
        assert dropped.drop()

    assert other.is_settled(SOON_S)
    assert written(engine) == ["other"]
    assert not other.drop()


def test_while_the_database_is_away_only_what_lasts_waits_for_it(settings: Settings) -> None:
    away = settings.model_copy(update={"database_url": settings.database_url})
    engine = make_engine(away)
    is_away = True

    def refuse(*_: object) -> None:
        if is_away:
            raise sa.exc.OperationalError("", {}, Exception("no route"))

    sa.event.listen(engine, "begin", refuse)
    with make_engine(settings).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE done (name VARCHAR(20))")
    desk, brief, lasts = Desk(engine), writing("brief"), writing("lasts", lasts=True)
    desk.submit(brief)
    desk.submit(lasts)

    assert brief.is_settled(SOON_S)
    assert isinstance(brief.error, sa.exc.OperationalError)
    assert not brief.is_in_doubt
    assert wait_for(desk.is_away, SOON_S)
    assert not desk.is_free()
    is_away = False
    assert lasts.is_settled(SOON_S)
    assert wait_for(desk.is_free, SOON_S)
    assert not desk.is_away()
    assert written(engine) == ["lasts"]
    desk.close()
    engine.dispose()


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_row_that_is_kept_locked_keeps_no_other_errand_waiting(settings: Settings) -> None:
    engine = make_engine(settings)
    always_wait_briefly(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE done (name VARCHAR(20))")
        connection.exec_driver_sql("INSERT INTO done VALUES ('locked')")
    desk, other = Desk(engine), writing("other")
    locked = Errand(lambda c: c.exec_driver_sql("SELECT 1 FROM done FOR UPDATE").all(), lasts=True)

    with make_engine(settings).begin() as holder:
        holder.exec_driver_sql("SELECT 1 FROM done FOR UPDATE")
        desk.submit(locked)
        desk.submit(other)
        assert other.is_settled(SOON_S)
        assert not locked.is_settled(0)

    assert locked.is_settled(SOON_S)
    assert locked.error is None
    desk.close()
    engine.dispose()
