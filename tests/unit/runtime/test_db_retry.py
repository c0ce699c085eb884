from uuid import uuid4

import pytest
import sqlalchemy as sa

from runtime import db_retry
from runtime.database import reason_of
from runtime.db_retry import MOST_STARTS, persist, start

NO_CONNECTION = sa.exc.TimeoutError("QueuePool limit of size 5 reached")
LOCKED = sa.exc.OperationalError("UPDATE x", {}, Exception("database is locked\nat line 1"))
RIVAL = sa.exc.IntegrityError("UPDATE", {}, Exception("operations_one_running"))


@pytest.mark.parametrize(
    ("error", "said"),
    [(NO_CONNECTION, "QueuePool limit of size 5 reached"), (LOCKED, "database is locked")],
    ids=["no_free_connection", "locked"],
)
def test_what_the_database_does_not_take_now_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: sa.exc.SQLAlchemyError,
    said: str,
) -> None:
    monkeypatch.setattr(db_retry, "RETRY_S", 0.0)
    outcomes: list[str | Exception] = [error, "written"]

    def act(_connection: sa.Connection) -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert persist(sa.create_engine("sqlite://"), act) == "written"
    assert caplog.messages == [f"database unavailable, trying again: {said}"]
    assert reason_of(ValueError()) == "ValueError"


def failing(times: int) -> list[Exception]:
    return [RIVAL] * times


def claimed(rivals: list[Exception]) -> str:
    if rivals:
        raise rivals.pop()
    return "claimed"


def test_a_claim_that_a_rival_broke_is_made_again() -> None:
    rivals = failing(MOST_STARTS - 1)

    assert start(uuid4(), lambda: claimed(rivals), None) == "claimed"
    assert rivals == []


def test_a_claim_that_rivals_break_each_time_is_given_up() -> None:
    rivals = failing(MOST_STARTS + 1)

    assert start(uuid4(), lambda: claimed(rivals), None) is None
    assert len(rivals) == 1
