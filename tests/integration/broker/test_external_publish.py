"""Tasks of the user's own: sent once, and on record what became of each message."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from kombu import Connection
from pydantic import SecretStr

from broker.app import configure
from models.errors import Refused
from models.operation import Cause, OperationState
from models.sql import database_now
from models.store import tenants
from models.store.actions.explain_facts import Status
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import external_send, external_worker, refusals, reserve
from models.store.operations.end import Outcome
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim, ClaimRequest, recorded_of
from models.store.people import users
from models.store.scope import WHOLE_INSTALLATION
from models.store.tick_work import EVERYTHING
from models.tables import action_state, notices, workers
from models.trust import Trust
from models.users import parse_users
from runtime.config import Settings
from runtime.sections import AlertSettings
from scheduler.changes import editing
from scheduler.explain.operation_text import waits
from scheduler.on_demand.cancel import cancel
from scheduler.sweep import Sweeper, dispatch_ready
from scheduler.tick import TickReport, tick
from services.followers import attempts
from tests import followed_tasks as followed
from tests.celery_messages import (
    NOON,
    RULES,
    TASK,
    allowing,
    celery_action,
    celery_messages,
    follow_by_name,
    make_due,
)
from tests.factories import author, row_of, rows_of, update_operation
from tests.servers import Broker
from tests.ticks import LEASE, MINUTE
from tests.told import told_as
from tests.transactions import act, claim_as, execute, fetched, finish

pytestmark = pytest.mark.usefixtures("broker")

# Messages expire by the sender's clock.
BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _allowed(engine: sa.Engine, settings: Settings) -> Iterator[None]:
    configure(allowing(settings, "shop.*"))
    yield
    configure(settings)


BACKFILL = UUID(int=1)


def run_tick(engine: sa.Engine, now: datetime = NOON) -> TickReport:
    return tick(engine, now, Sweeper(LEASE, NO_ALERTS))


def sweep(engine: sa.Engine) -> None:
    Sweeper(LEASE, NO_ALERTS).sweep(engine, EVERYTHING, send=True)


def begun(engine: sa.Engine, id: UUID) -> None:
    """Leave an operation as a daemon does that dies between sending and marking."""
    messages = act(engine, reserve.reserve_sendable, 10, only=[id])
    (one,) = act(engine, external_send.begin, messages, RULES, NO_ALERTS)
    assert one.id == id
    update_operation(engine, id, not_before=database_now(-1.0))


def test_a_due_task_is_sent_by_its_id_with_its_arguments(engine: sa.Engine, broker: Broker) -> None:
    step = {"args": [1, {"a": None}], "kwargs": {"day": "today"}}
    action = celery_action(engine, since=NOON - MINUTE, step=step)

    report = run_tick(engine)

    (row,) = rows_of(engine, action)
    (message,) = celery_messages(broker)
    assert report.sent == 1
    assert (message.headers["id"], message.headers["task"]) == (str(row["id"]), TASK)
    assert (message.args, message.kwargs) == ([1, {"a": None}], {"day": "today"})
    # Whether its result is kept is the task's own choice.
    assert message.headers["ignore_result"] is None
    assert message.headers["celery_beat_task"] is True
    assert message.headers["minutebook"] == {
        "id": str(row["id"]),
        "attempt": 1,
        "occurrence_at": "2027-01-04T12:00:00Z",
        "subject": None,
        "triggerer": 'Scheduled action "close the day"',
    }


def test_a_message_has_the_options_of_its_step(engine: sa.Engine, broker: Broker) -> None:
    options = {"priority": 7, "headers": {"tenant": "a"}, "ignore_result": False}
    step = {**options, "expires": "PT1M"}
    celery_action(engine, since=NOON - MINUTE, step=step)

    run_tick(engine)

    # Redis has a list for each step of priorities: 7 is sent with those from 6 on.
    (message,) = celery_messages(broker, "celery\x06\x166")
    expires_at = datetime.fromisoformat(message.headers["expires"])
    assert (message.headers["tenant"], message.headers["ignore_result"]) == ("a", False)
    assert expires_at - MINUTE > BEFORE


@pytest.mark.parametrize(
    ("sent_s_ago", "state", "reason"),
    [
        pytest.param(61, "skipped", "expired", id="expired"),
        pytest.param(30, "running", None, id="in_time"),
    ],
)
def test_what_has_waited_for_longer_than_it_may_is_not_started(
    engine: sa.Engine, sent_s_ago: int, state: str, reason: str | None
) -> None:
    follow_by_name(engine, TASK)
    id = make_due(engine, celery_action(engine, step={"expires": 60}))
    dispatch_ready(engine)
    update_operation(engine, id, send_started_at=database_now(-float(sent_s_ago)))

    act(engine, followed.take, id)

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == (state, reason)


def test_a_message_that_celery_discards_as_expired_is_skipped(engine: sa.Engine) -> None:
    follow_by_name(engine, TASK)
    id = make_due(engine, celery_action(engine, step={"expires": 60}))
    dispatch_ready(engine)
    said = {"what": "expired", "reason": "expired before it started"}

    with engine.begin() as connection:
        recorded = recorded_of(connection, id, 1)
        assert recorded is not None
        wanted = ClaimRequest(id, 1, "shop@host")
        ended = attempts.end_discarded(connection, recorded, wanted, said, AlertSettings())

    assert ended is not None
    assert (row_of(engine, id)["state"], row_of(engine, id)["reason"]) == ("skipped", "expired")


def test_what_nobody_follows_ends_handed_over_and_is_never_sent_again(
    engine: sa.Engine, broker: Broker
) -> None:
    action = celery_action(engine, since=NOON - MINUTE)

    run_tick(engine)
    (row,) = rows_of(engine, action)
    update_operation(engine, row["id"], not_before=database_now(-1.0))
    sweep(engine)

    assert (row["state"], row["reason"]) == ("handed_over", "no worker follows it")
    assert (row["sendings"], row["finished_at"] is None) == (1, False)
    assert len(celery_messages(broker)) == 1
    known = fetched(engine, sa.select(action_state)).mappings().one()
    assert (known["last_state"], known["run_number"]) == ("handed_over", 1)


def test_what_a_follower_never_claims_is_handed_over_after_an_hour_and_can_be_claimed_late(
    engine: sa.Engine, broker: Broker
) -> None:
    follow_by_name(engine, TASK)
    id = make_due(engine, celery_action(engine))
    dispatch_ready(engine)
    queued = row_of(engine, id)

    assert queued["not_before"] - queued["sent_at"] == timedelta(hours=1)
    update_operation(engine, id, not_before=database_now(-1.0))
    sweep(engine)
    assert row_of(engine, id)["state"] == "handed_over"
    assert act(engine, external_worker.take_up, id, 1)
    assert isinstance(claim_as(engine, id, 1, "shop@host"), Claim)

    row = row_of(engine, id)
    assert (row["state"], row["finished_at"], row["reason"]) == ("running", None, None)
    assert len(celery_messages(broker)) == 1


def test_a_worker_that_was_not_seen_for_ten_minutes_follows_no_more(engine: sa.Engine) -> None:
    follow_by_name(engine, TASK)
    execute(engine, sa.update(workers).values(seen_at=datetime(2027, 1, 1, tzinfo=UTC)))
    id = make_due(engine, celery_action(engine))

    dispatch_ready(engine)

    assert row_of(engine, id)["state"] == "handed_over"


def test_a_broker_that_is_down_for_certain_leaves_it_pending_and_gets_it_when_it_is_back(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    its = {"broker_url": SecretStr("redis://127.0.0.1:9/0")}
    configure(allowing(settings, "shop.*").model_copy(update=its))
    id = make_due(engine, celery_action(engine))

    sent = dispatch_ready(engine)
    waiting = row_of(engine, id)
    configure(allowing(settings, "shop.*"))
    update_operation(engine, id, not_before=database_now(-1.0))
    dispatch_ready(engine)

    assert sent.error is not None
    assert (waiting["state"], waiting["send_started_at"]) == ("pending", None)
    assert row_of(engine, id)["state"] == "handed_over"
    assert len(celery_messages(broker)) == 1


def test_what_waits_is_told_in_the_terms_of_a_user_s_own_application(engine: sa.Engine) -> None:
    action = celery_action(engine)
    id = make_due(engine, action)
    hour_ago = database_now(-3600.0)
    update_operation(engine, id, recorded_at=hour_ago, cause="schedule")
    unsent = act(engine, overdue.alert, AlertSettings(), 1)
    follow_by_name(engine, TASK)
    dispatch_ready(engine)

    assert unsent == [("close the day", "it could not be sent; is the broker running?")]
    told = waits(rows_of(engine, action)[0], Status(None, frozenset()), NOON, None)
    assert told.endswith("no worker listens to queue celery; start one")


def test_a_daemon_that_dies_between_sending_and_marking_leaves_it_uncertain(
    engine: sa.Engine, broker: Broker
) -> None:
    hooks = {"on_failure": [{"mail": "ann@example.com"}]}
    id = make_due(engine, celery_action(engine, hooks=hooks))
    begun(engine, id)

    sweep(engine)

    row = row_of(engine, id)
    assert (row["state"], row["reason"], row["failures"]) == ("failed", "send uncertain", 1)
    assert "was not sent again" in row["error"]
    assert celery_messages(broker) == []
    assert fetched(engine, sa.select(notices.c.kind)).scalars().all() == ["run_ended"]


def test_a_policy_of_retries_sends_what_was_in_doubt_in_the_next_attempt(
    engine: sa.Engine, broker: Broker
) -> None:
    retry = {"max_attempts": 2, "backoff": ["PT1M"]}
    id = make_due(engine, celery_action(engine, policy={"retry": retry}))
    begun(engine, id)
    sweep(engine)
    again = row_of(engine, id)
    update_operation(engine, id, not_before=database_now(-1.0))

    dispatch_ready(engine)

    assert (again["state"], again["reason"], again["attempt"]) == ("pending", "retry", 2)
    (message,) = celery_messages(broker)
    assert message.headers["minutebook"]["attempt"] == 2
    assert row_of(engine, id)["state"] == "handed_over"


def test_an_alert_of_a_doubt_is_closed_by_what_is_handed_over_next(engine: sa.Engine) -> None:
    hooks = {"on_failure": [{"mail": "ann@example.com"}], "alert_after": 1}
    action = celery_action(engine, hooks=hooks)
    begun(engine, make_due(engine, action))
    sweep(engine)

    make_due(engine, action, at=NOON + MINUTE)
    sweep(engine)

    rows = fetched(engine, sa.select(notices)).mappings().all()
    known = fetched(engine, sa.select(action_state)).mappings().one()
    assert sorted(map(told_as, rows)) == ["failed", "failed over", "failure"]
    assert (known["failures_in_row"], known["run_number"]) == (0, 2)


def test_a_broker_that_falls_silent_leaves_one_task_in_doubt_and_releases_the_others(
    engine: sa.Engine, broker: Broker
) -> None:
    ids = [make_due(engine, celery_action(engine, name=f"task {n}")) for n in range(3)]
    with broker.client() as client:
        client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        sent = dispatch_ready(engine)
        client.execute_command("CLIENT", "UNPAUSE")

    rows = [row_of(engine, id) for id in ids]
    assert sent.error is not None
    assert {row["state"] for row in rows} == {"pending"}
    assert sorted(row["send_started_at"] is None for row in rows) == [False, True, True]


def test_a_task_that_is_no_longer_allowed_fails_where_it_was_to_be_sent(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    id = make_due(engine, celery_action(engine))
    configure(allowing(settings, "other.*"))

    dispatch_ready(engine)

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == ("failed", "not allowed")
    assert "the task 'shop.tasks.close_day' was not sent" in row["error"]
    assert "SCHED_CELERY_TASKS allows other.* only" in row["error"]
    assert celery_messages(broker) == []


@pytest.mark.parametrize(
    ("trust", "option"),
    [
        pytest.param(Trust(queues=("shop",)), "--tasks shop.tasks.close_day", id="task"),
        pytest.param(Trust(tasks=("shop.*",)), "--queue shop", id="queue"),
    ],
)
def test_a_task_that_its_small_app_may_no_longer_send_is_not_sent(
    engine: sa.Engine, broker: Broker, trust: Trust, option: str
) -> None:
    id = make_due(engine, celery_action(engine, step={"queue": "shop"}))
    act(engine, tenants.set_trust, 1, trust)

    dispatch_ready(engine)

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == ("failed", "not allowed")
    assert f"minutebook app add default {option}`" in row["error"]
    assert celery_messages(broker) == []


def test_a_paused_action_sends_nothing_that_waited(engine: sa.Engine, broker: Broker) -> None:
    action = celery_action(engine)
    id = make_due(engine, action)
    editing.set_active(engine, action.uid, active=False, author=author())

    sweep(engine)

    assert (row_of(engine, id)["state"], row_of(engine, id)["reason"]) == ("skipped", "paused")
    assert celery_messages(broker) == []


def test_what_is_just_being_sent_is_neither_overtaken_nor_cancelled(engine: sa.Engine) -> None:
    action = celery_action(engine, since=NOON)
    id = make_due(engine, action, at=NOON)
    begun(engine, id)
    update_operation(engine, id, not_before=database_now(30.0))

    run_tick(engine, NOON + MINUTE)
    with pytest.raises(Refused, match="is being sent; try again in a minute"):
        cancel(engine, id, WHOLE_INSTALLATION, "ann")

    assert [row["state"] for row in rows_of(engine, action)] == ["pending", "handed_over"]


def test_a_cancelled_backfill_leaves_alone_what_is_just_being_sent(engine: sa.Engine) -> None:
    action = celery_action(engine)
    ids = [make_due(engine, action, at=NOON + n * MINUTE) for n in range(2)]
    begun(engine, ids[0])
    for id in ids:
        update_operation(engine, id, cause=Cause.BACKFILL, backfill_id=BACKFILL)

    cancelled = act(engine, refusals.cancel_backfill, action.uid, BACKFILL, "cancelled by ann")

    assert cancelled == 1
    assert [row["state"] for row in rows_of(engine, action)] == ["pending", "cancelled"]


def test_what_a_follower_takes_up_counts_as_one_run(engine: sa.Engine) -> None:
    follow_by_name(engine, TASK)
    id = make_due(engine, celery_action(engine))
    dispatch_ready(engine)
    update_operation(engine, id, not_before=database_now(-1.0), subject="ann")
    act(engine, users.add, 1, parse_users([{"id": "ann", "email": "ann@example.com"}])[0])
    sweep(engine)

    assert isinstance(act(engine, followed.take, id), Claim)
    finish(engine, id, Outcome(OperationState.SUCCESS))

    its = action_state.c
    counts = fetched(engine, sa.select(its.subject, its.run_number, its.last_state)).all()
    assert sorted(map(tuple, counts)) == [("", 1, "success"), ("ann", 1, "success")]


def test_what_a_follower_takes_up_and_may_not_start_counts_as_no_run(engine: sa.Engine) -> None:
    follow_by_name(engine, TASK)
    action = celery_action(engine)
    id = make_due(engine, action)
    dispatch_ready(engine)
    update_operation(engine, id, not_before=database_now(-1.0))
    sweep(engine)
    editing.set_active(engine, action.uid, active=False, author=author())

    act(engine, followed.take, id)

    assert fetched(engine, sa.select(action_state.c.run_number)).scalar_one() == 0
    assert row_of(engine, id)["state"] == "skipped"


def test_one_that_waits_when_its_message_is_marked_as_sent_is_sent_once_more(
    engine: sa.Engine, broker: Broker
) -> None:
    action = celery_action(engine, policy={"overlap": "queue"})
    running, id = make_due(engine, action), make_due(engine, action, at=NOON + MINUTE)
    follow_by_name(engine, TASK)
    assert isinstance(claim_as(engine, running, 1, "shop@host"), Claim)
    messages = act(engine, reserve.reserve_sendable, 10, only=[id])
    sent = act(engine, external_send.begin, messages, RULES, NO_ALERTS)
    assert isinstance(claim_as(engine, id, 1, "shop@host"), NotStarted)

    act(engine, external_send.settle, sent, [], NO_ALERTS)
    assert (row_of(engine, id)["state"], row_of(engine, id)["waiting_for"]) == ("pending", running)
    finish(engine, running, Outcome(OperationState.SUCCESS))
    sweep(engine)

    assert [one.headers["minutebook"]["attempt"] for one in celery_messages(broker)] == [1]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"sep": "/", "priority_steps": [*range(10)]}, id="both"),
        pytest.param({"sep": ":", "global_keyprefix": "shop:"}, id="prefix"),
    ],
)
def test_a_priority_arrives_in_the_list_that_the_application_reads(
    engine: sa.Engine, settings: Settings, broker: Broker, options: dict[str, Any]
) -> None:
    given = {**options, "priority_steps": tuple(options.get("priority_steps", ()))}
    celery = allowing(settings, "shop.*").celery.model_copy(update=given)
    configure(settings.model_copy(update={"celery": celery}))
    step = {"celery_task": {"task": "shop.close", "priority": 7}}
    id = make_due(engine, celery_action(engine, operations=step))

    dispatch_ready(engine)

    with Connection(broker.url, transport_options=options) as connection:
        message = connection.SimpleQueue("celery").get(block=False)
    assert message.headers["id"] == str(id)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_rows_that_others_keep_locked_leave_only_their_own_message_in_doubt(
    engine: sa.Engine, broker: Broker
) -> None:
    locked, free = (celery_action(engine, name=name) for name in ("locked", "free"))
    first = make_due(engine, locked, at=NOON - MINUTE)
    sweep(engine)
    assert row_of(engine, first)["state"] == "handed_over"
    ids = [make_due(engine, one) for one in (locked, free)]

    with engine.begin() as forgotten:
        row = sa.select(action_state).where(action_state.c.action_uid == locked.uid)
        forgotten.execute(row.with_for_update())
        sweep(engine)

    assert [row_of(engine, id)["state"] for id in ids] == ["pending", "handed_over"]
    assert row_of(engine, ids[0])["send_started_at"] is not None
    assert len(celery_messages(broker)) == 3
