"""Runs on request: run all, retry and cancel; one request wins, and the row says whose."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from models.errors import NotFound, Refused
from models.operation import OperationState
from models.store.operations.end import Outcome
from models.store.operations.start_checks import NotClaimed
from models.store.operations.take import Claim
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_state, audit
from models.tables import actions as actions_table
from scheduler.changes import Change, change, deletion, editing
from scheduler.on_demand import manual
from scheduler.on_demand.cancel import cancel
from scheduler.on_demand.restart import retry
from tests.factories import (
    DEFAULT_APP,
    author,
    claimed,
    make_action,
    make_app,
    make_document,
    make_operation,
    row_of,
    rows_of,
    spoil,
    update_operation,
)
from tests.servers import Broker
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, execute, fetched, finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
SUCCEEDED, FAILED = {"name": "one", "state": "success"}, {"name": "two", "state": "failed"}


def make_ended(engine: sa.Engine, state: str = "failed", **changes: Any) -> tuple[Change, UUID]:
    """Return an action and its operation that ran and ended so, after a failure and a loss."""
    action = make_action(engine, **changes)
    id = make_operation(engine, action, NOON)
    claimed(engine, id)
    finish(engine, id, Outcome(OperationState(state), error="broken", is_failure=True))
    update_operation(engine, id, losses=1, result={"one": 1}, sent_at=NOON)
    return action, id


def test_a_missed_one_runs_after_all(engine: sa.Engine, broker: Broker) -> None:
    when = {"cron_rule": "0 12 4 1 *", "timezone": "UTC"}
    action = make_action(engine, when=when, since=NOON - MINUTE)
    run_tick(engine, NOON + 10 * MINUTE)
    [missed] = rows_of(engine, action)
    assert missed["state"] == "missed"
    id = missed["id"]

    repeated, sent = retry(engine, id, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, id)
    assert (repeated.attempt, sent.count) == (1, 1)
    assert (row["state"], row["triggerer"]) == ("queued", "Retry by ann")
    assert (row["reason"], row["finished_at"]) == (None, None)
    assert broker.messages("quick") == [(str(id), 1)]
    assert isinstance(claimed(engine, id), Claim)


@pytest.mark.parametrize("state", ["failed", "partial", "cancelled"])
def test_what_did_not_end_well_is_retried(engine: sa.Engine, broker: Broker, state: str) -> None:
    _, id = make_ended(engine, state)

    retry(engine, id, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, id)
    empty = ("error", "reason", "result", "finished_at", "cancel_requested_at", "worker")
    assert (row["state"], row["attempt"], row["triggerer"]) == ("queued", 2, "Retry by ann")
    assert (row["failures"], row["losses"], row["sendings"]) == (0, 0, 1)
    assert [row[key] for key in empty] == [None] * len(empty)
    assert broker.messages("quick") == [(str(id), 2)]


def test_a_retry_takes_the_current_revision_and_says_so(engine: sa.Engine) -> None:
    action, id = make_ended(engine)
    update_operation(engine, id, steps=[SUCCEEDED, FAILED])
    document = make_document(operations={"publish": True}, policy={"queue": "own"})
    change.apply_all(engine, [document], author())

    repeated, _ = retry(engine, id, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, id)
    assert (repeated.old_revision, repeated.revision) == (1, 2)
    assert (row["revision"], row["queue"]) == (2, "own")
    assert row["task"] == "execute_scheduled_action"
    assert row["action_uid"] == action.uid
    # Under another revision all steps run again.
    assert (row["steps"], row["first_started_at"]) == (None, None)


def test_a_retry_skips_what_succeeded_and_takes_back_no_success(engine: sa.Engine) -> None:
    _, id = make_ended(engine)
    update_operation(engine, id, steps=[SUCCEEDED, FAILED], first_started_at=NOON)
    later = NOON + 5 * MINUTE
    execute(engine, sa.update(action_state).values(last_success_at=later))

    retry(engine, id, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, id)
    assert (row["steps"], row["first_started_at"]) == ([SUCCEEDED, FAILED], later)


def test_a_success_is_refused_with_what_to_do(engine: sa.Engine) -> None:
    _, id = make_ended(engine, "success")

    with pytest.raises(Refused, match="minutebook action run"):
        retry(engine, id, WHOLE_INSTALLATION, "ann")
    assert row_of(engine, id)["state"] == "success"


def test_an_occurrence_without_a_row_is_one_for_backfill(engine: sa.Engine) -> None:
    with pytest.raises(NotFound, match="minutebook backfill ACTION"):
        retry(engine, uuid4(), WHOLE_INSTALLATION, "ann")


def pause(engine: sa.Engine, action: Change) -> None:
    editing.set_active(engine, action.uid, active=False, author=author())


def delete(engine: sa.Engine, action: Change) -> None:
    deletion.delete(engine, action.uid, author())


@pytest.mark.parametrize(
    ("stop", "told"), [(pause, "minutebook action resume"), (delete, "was deleted")]
)
def test_operations_of_an_action_that_cannot_run_are_not_repeated(
    engine: sa.Engine, stop: Callable[..., None], told: str
) -> None:
    action, id = make_ended(engine)
    stop(engine, action)

    with pytest.raises(Refused, match=told):
        retry(engine, id, WHOLE_INSTALLATION, "ann")
    assert row_of(engine, id)["state"] == "failed"


def test_of_several_at_once_one_wins_and_others_hear(engine: sa.Engine, broker: Broker) -> None:
    _, id = make_ended(engine)

    def ask(number: int) -> bool:
        try:
            retry(engine, id, WHOLE_INSTALLATION, f"person {number}")
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(ask, range(4)))

    assert sorted(won) == [False, False, False, True]
    assert row_of(engine, id)["triggerer"] == f"Retry by person {won.index(True)}"
    assert broker.messages("quick") == [(str(id), 2)]


def test_who_asked_for_what_is_on_record(engine: sa.Engine) -> None:
    _, id = make_ended(engine)

    retry(engine, id, WHOLE_INSTALLATION, "ann")
    cancel(engine, id, WHOLE_INSTALLATION, "ben")

    query = sa.select(audit.c.actor, audit.c.verb, audit.c.object).order_by(audit.c.id.desc())
    noted = fetched(engine, query.limit(2)).all()
    assert [tuple(one) for one in noted] == [
        ("ben", "operation.cancel", str(id)),
        ("ann", "operation.retry", str(id)),
    ]


def test_a_retried_one_is_not_overtaken_by_the_schedule(engine: sa.Engine) -> None:
    action, id = make_ended(engine, since=NOON)
    retry(engine, id, WHOLE_INSTALLATION, "ann")

    run_tick(engine, NOON + MINUTE)

    assert [row["state"] for row in rows_of(engine, action)] == ["queued", "queued"]
    assert row_of(engine, id)["state"] == "queued"


def test_a_retried_one_waits_where_the_policy_would_skip_it(engine: sa.Engine) -> None:
    action, id = make_ended(engine)
    running = make_operation(engine, action, NOON + MINUTE)
    claimed(engine, running)
    retry(engine, id, WHOLE_INSTALLATION, "ann")

    assert claimed(engine, id, 2) is NotClaimed.WAITS
    assert row_of(engine, id)["waiting_for"] == running


def test_an_unstarted_one_is_cancelled_at_once_and_lets_go_who_waits_for_it(
    engine: sa.Engine, broker: Broker
) -> None:
    action = make_action(engine)
    first, second = (make_operation(engine, action, NOON + n * MINUTE) for n in range(2))
    update_operation(engine, second, waiting_for=first)

    cancelled = cancel(engine, first, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, first)
    assert cancelled.state == row["state"] == OperationState.CANCELLED
    assert (row["reason"], row["finished_at"] is not None) == ("cancelled by ann", True)
    assert claimed(engine, first) is NotClaimed.TAKEN
    assert broker.messages("quick") == [(str(second), 1)]


def test_a_running_one_is_asked_to_end_once(engine: sa.Engine) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    claimed(engine, id)

    asked = cancel(engine, id, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, id)
    assert (asked.state, row["state"]) == (OperationState.RUNNING, "running")
    assert (row["cancel_requested_at"] is not None, row["reason"]) == (True, "cancelled by ann")
    with pytest.raises(Refused, match="already asked to end: cancelled by ann"):
        cancel(engine, id, WHOLE_INSTALLATION, "ben")


def test_cancelled_during_a_backoff_it_is_not_tried_again(engine: sa.Engine) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    claimed(engine, id)
    backoff = Outcome(OperationState.PENDING, "broken", "retry", delay=MINUTE, is_failure=True)
    finish(engine, id, backoff)

    # The message of the attempt that failed comes once more.
    assert claimed(engine, id, 1) is NotClaimed.TAKEN
    cancel(engine, id, WHOLE_INSTALLATION, "ann")

    assert row_of(engine, id)["state"] == "cancelled"
    assert claimed(engine, id, 2) is NotClaimed.TAKEN


def test_each_is_recorded_as_a_manual_run_and_sent(engine: sa.Engine, broker: Broker) -> None:
    made = [make_action(engine, name=name) for name in ("one", "two")]

    asked, sent = manual.run_all(engine, "ann", DEFAULT_APP.id)

    assert sent.count == 2
    assert [one.uid for one in asked] == [one.uid for one in made]
    for one in asked:
        assert one.operation_id is not None
        row = row_of(engine, one.operation_id)
        assert (row["triggerer"], row["state"]) == ("Manual run by ann", "queued")
    assert len(broker.messages("quick")) == 2


def test_those_of_other_small_apps_are_run_only_with_all_of_them(engine: sa.Engine) -> None:
    other = make_app(engine, "other")
    make_action(engine, name="theirs", app=other)
    make_action(engine, name="ours")

    of_one, _ = manual.run_all(engine, "ann", other.id)
    of_all, _ = manual.run_all(engine, "ann")

    assert [one.name for one in of_one] == ["theirs"]
    refused = {one.name: one.refused for one in of_all}
    assert refused["ours"] == ""
    assert "already active" in refused["theirs"]


def test_what_cannot_run_is_told_and_stops_no_other(engine: sa.Engine) -> None:
    broken = make_action(engine, name="broken")
    whole = make_action(engine, name="whole")
    act(engine, spoil, actions_table.c.uid == broken.uid, plan="{}")

    asked, sent = manual.run_all(engine, "ann", DEFAULT_APP.id)

    assert [bool(one.refused) for one in asked] == [True, False]
    assert "the stored plan cannot be read" in asked[0].refused
    assert (sent.count, len(rows_of(engine, broken)), len(rows_of(engine, whole))) == (1, 0, 1)
