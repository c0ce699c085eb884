"""A claim is tried again while another operation of the action starts at the same moment."""

from uuid import uuid4

import sqlalchemy as sa

from runtime.db_retry import MOST_STARTS, start

RIVAL = sa.exc.IntegrityError("UPDATE", {}, Exception("operations_one_running"))


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
