"""Jobs are taken together under the rules of one claim; what one of them does spoils no other."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import jobs, put_back
from models.store.operations.take import ClaimRequest
from models.store.operations.transitions import attempts_of
from models.tables import operations
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import make_engine, reading
from scheduler.changes import editing
from services.jobs import claim as claims
from services.jobs.claim import JobToDo, Taken
from tests.attempts import claim
from tests.factories import (
    author,
    installation_on,
    make_app,
    row_of,
    update_operation,
    waits_for_lock,
)
from tests.integration.web.jobs import NOON, make_due, make_job
from tests.ticks import LEASE
from tests.transactions import act

ALLOW = {"overlap": "allow"}
ONE_OF_ALL: dict[jobs.Lane, int] = {(None, "quick"): 1}


def make_jobs(engine: sa.Engine, count: int, **changes: object) -> list[UUID]:
    actions = [make_job(engine, f"https://example.com/{n}", **changes) for n in range(count)]
    return [make_due(engine, action) for action in actions]


def take_all(engine: sa.Engine, ids: Sequence[UUID], attempt: int = 1) -> Taken:
    wanted = [ClaimRequest(id, attempt, f"worker of {id}") for id in ids]
    return claims.take_all(installation_on(engine, settings_in_use()), wanted)


def take(engine: sa.Engine, id: UUID) -> JobToDo | None:
    return claims.take(installation_on(engine, settings_in_use()), ClaimRequest(id, 1, "worker"))


def test_jobs_start_together_as_if_each_were_claimed(engine: sa.Engine) -> None:
    together, alone = make_jobs(engine, 3), make_due(engine, make_job(engine))
    assert take(engine, alone) is not None

    taken = take_all(engine, together)

    assert (set(taken.jobs), taken.undecided) == (set(together), set())
    own = row_of(engine, alone)
    for id in together:
        row = row_of(engine, id)
        (attempt,) = act(engine, attempts_of, id)
        assert row["state"] == attempt["state"] == "running"
        assert row["worker"] == attempt["worker"] == f"worker of {id}"
        assert {key for key in row if row[key] is None} == {key for key in own if own[key] is None}
        assert row["steps"][0].keys() == own["steps"][0].keys()
        assert row["started_at"] == row["first_started_at"] == row["heartbeat_at"]


def test_an_attempt_is_taken_once(engine: sa.Engine) -> None:
    ids = make_jobs(engine, 2)
    take_all(engine, ids)
    update_operation(engine, ids[0], heartbeat_at=NOON - timedelta(days=365))
    act(engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)

    late = take_all(engine, ids, attempt=1)
    again = take_all(engine, ids, attempt=2)

    assert (set(late.jobs), late.undecided) == (set(), set())
    assert (set(again.jobs), again.undecided) == ({ids[0]}, set())


def test_of_one_action_only_the_first_starts(engine: sa.Engine) -> None:
    action = make_job(engine, "https://example.com/own")
    first, second = (make_due(engine, action, number) for number in range(2))
    (other,) = make_jobs(engine, 1)

    taken = take_all(engine, [first, second, other])
    refused = take(engine, second)

    assert (set(taken.jobs), taken.undecided) == ({first, other}, {second})
    assert (refused, row_of(engine, second)["state"]) == (None, "skipped")


def test_operations_that_may_overlap_start_together(engine: sa.Engine) -> None:
    action = make_job(engine, policy=ALLOW)
    ids = [make_due(engine, action, number) for number in range(3)]

    assert set(take_all(engine, ids).jobs) == set(ids)


def test_what_a_rule_may_keep_back_is_left_to_that_rule(engine: sa.Engine) -> None:
    paused = make_job(engine, "https://example.com/paused")
    in_order = make_job(engine, "https://example.com/order", policy={"catch_up": "all"})
    kept = [make_due(engine, paused), make_due(engine, in_order)]
    editing.set_active(engine, paused.uid, active=False, author=author())
    (free,) = make_jobs(engine, 1)

    taken = take_all(engine, [*kept, free])

    assert (set(taken.jobs), taken.undecided) == ({free}, set(kept))
    assert [row_of(engine, id)["state"] for id in kept] == ["queued", "queued"]


def test_a_start_at_the_same_moment_spoils_no_job(engine: sa.Engine) -> None:
    action = make_job(engine, "https://example.com/own")
    first, second = (make_due(engine, action, number) for number in range(2))
    (other,) = make_jobs(engine, 1)
    found: list[Taken] = []
    together = threading.Thread(target=lambda: found.append(take_all(engine, [second, other])))
    with engine.begin() as connection:
        claim(connection, first, 1, "the first", alerts=NO_ALERTS)
        together.start()
        assert wait_for(lambda: waits_for_lock(engine), 10)
    together.join(20)

    (taken,) = found
    left = taken.undecided - {second}
    assert second in taken.undecided
    assert set(taken.jobs) | left == {other}
    for id in left:
        assert take(engine, id) is not None


@pytest.mark.usefixtures("postgresql")
def test_what_another_process_is_taking_is_left_to_it(home_of: Callable[[str], Settings]) -> None:
    """On SQLite a writer is alone."""
    engine = make_engine(home_of("postgresql"))
    held, free = make_jobs(engine, 2)
    with engine.begin() as connection:
        connection.execute(sa.select(operations).where(operations.c.id == held).with_for_update())

        taken = take_all(engine, [held, free])

    assert (set(taken.jobs), taken.undecided) == ({free}, set())
    assert set(take_all(engine, [held]).jobs) == {held}
    engine.dispose()


def test_a_worker_gets_the_oldest_of_all_apps(engine: sa.Engine) -> None:
    make_jobs(engine, 20)
    app = make_app(engine, "other")
    late = make_due(engine, make_job(engine, app=app), app=app)

    with reading(engine) as connection:
        first = jobs.offers(connection, ONE_OF_ALL)
        offered = jobs.offers(connection, {(None, "quick"): 2})
        own = jobs.offers(connection, {(app.id, "quick"): 5, (1, "crawl"): 5})

    assert list(first) == [(1, "quick")]
    assert [len(some) for some in offered.values()] == [2, 1]
    assert list(offered) == [(1, "quick"), (app.id, "quick")]
    assert [one.id for one in offered[app.id, "quick"]] == [late]
    assert list(own) == [(app.id, "quick")]


def test_a_job_that_waits_for_its_backoff_is_not_offered(engine: sa.Engine) -> None:
    (id,) = make_jobs(engine, 1)
    update_operation(engine, id, state="pending", not_before=NOON + timedelta(days=36_500))

    assert act(engine, jobs.offers, ONE_OF_ALL) == {}
