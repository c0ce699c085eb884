"""An operation that ends makes the actions due that depend on its action: once, and never lost."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.errors import InvalidAction, Refused
from models.fingerprint import str_to_uuid
from models.operation import Cause, OperationState
from models.store.operations.end import EndResult, Outcome
from models.store.operations.external_send import hand_over
from models.store.operations.take import Claim
from models.store.retention import prune_operations, prune_raised
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_ends
from runtime.sections import AlertSettings
from scheduler.changes import Change
from scheduler.changes.change import apply_all, create_all
from scheduler.changes.deletion import delete, delete_many
from scheduler.changes.editing import rename, replace_document, set_active
from scheduler.on_demand.manual import run_now
from scheduler.on_demand.restart import retry
from tests.factories import (
    author,
    make_action,
    make_app,
    make_document,
    make_operation,
    rows_of,
    update_operation,
)
from tests.ticks import DAY, MINUTE, SECOND, tick_at
from tests.transactions import act, claim_as, fetched, finish, why
from tests.virtual_clock import VirtualClock

NOON = datetime(2027, 1, 4, 11, 40, tzinfo=UTC)
AFTER = {"after": {"action": "refresh"}}
YEARLY = {"cron_rule": "0 3 1 1 *", "timezone": "UTC"}
FAILED, SUCCESS = OperationState.FAILED, OperationState.SUCCESS


@pytest.fixture
def clock(engine: sa.Engine) -> VirtualClock:
    return VirtualClock(engine, NOON)


def first(engine: sa.Engine, **changes: Any) -> Change:
    return make_action(engine, **{"name": "refresh", "when": YEARLY, **changes})


def second(engine: sa.Engine, when: Any = AFTER, **changes: Any) -> Change:
    return make_action(engine, since=NOON - MINUTE, **{"name": "publish", "when": when, **changes})


def run(
    engine: sa.Engine, id: UUID, state: OperationState = SUCCESS, attempt: int = 1
) -> EndResult:
    assert isinstance(claim_as(engine, id, attempt, "worker"), Claim)
    return finish(engine, id, Outcome(state, is_failure=state is FAILED), attempt=attempt)


def ended(engine: sa.Engine, action: Change, state: OperationState = SUCCESS) -> UUID:
    """Run an operation of an action to this end, by hand."""
    id, _ = run_now(engine, action.uid, "tests")
    run(engine, id, state)
    return id


def ends(engine: sa.Engine) -> list[tuple[UUID, str]]:
    rows = fetched(engine, sa.select(action_ends).order_by(action_ends.c.ended_at))
    return [(row.operation_id, row.state) for row in rows]


def test_an_end_makes_its_dependant_due_once(engine: sa.Engine, clock: VirtualClock) -> None:
    one, other = first(engine), second(engine)
    clock.set(NOON + 5 * SECOND)

    id = ended(engine, one)
    for minute in range(1, 8):
        tick_at(clock, NOON + minute * MINUTE)

    (row,) = rows_of(engine, other)
    due = "2027-01-04T11:40:05Z"
    assert row["id"] == str_to_uuid(f"{other.uid} | {due} | {id} success")
    assert (row["occurrence_at"], row["subject"]) == (NOON + 5 * SECOND, None)
    assert (row["event_id"], row["event_at"]) == (f"{id} success", NOON + 5 * SECOND)
    assert (row["cause"], row["state"]) == (Cause.EVENT, "queued")
    assert row["triggerer"] == 'Scheduled action "publish" after "refresh"'
    told = f'due after "refresh" ended as success at {due} ({id})'
    assert told in why(engine, other, NOON + 5 * SECOND).operations[0]["text"]


@pytest.mark.parametrize(
    ("named", "state", "count"),
    [
        ("success", OperationState.SUCCESS, 1),
        ("success", OperationState.PARTIAL, 0),
        (["success", "partial"], OperationState.PARTIAL, 1),
        ("failed", OperationState.FAILED, 1),
        (["success", "partial", "failed"], OperationState.CANCELLED, 0),
        # It is tried again.
        (["success", "partial", "failed"], OperationState.PENDING, 0),
    ],
)
def test_only_the_named_ends_count(
    engine: sa.Engine, clock: VirtualClock, named: Any, state: OperationState, count: int
) -> None:
    one = first(engine)
    other = second(engine, {"on": {"action": "refresh", "ends": named}})

    ended(engine, one, state)
    tick_at(clock, NOON + MINUTE)

    assert len(rows_of(engine, other)) == count


def test_an_end_before_its_dependant_does_not_count(engine: sa.Engine, clock: VirtualClock) -> None:
    one = first(engine)
    ended(engine, one)
    clock.set(NOON + 10 * SECOND)
    other = second(engine)
    set_active(engine, other.uid, active=False, author=author())
    clock.set(NOON + 20 * SECOND)
    ended(engine, one)
    clock.set(NOON + 30 * SECOND)
    set_active(engine, other.uid, active=True, author=author())

    tick_at(clock, NOON + MINUTE)

    assert (rows_of(engine, other), ends(engine)) == ([], [])


def test_a_retry_raises_its_own_end_and_none_twice(engine: sa.Engine, clock: VirtualClock) -> None:
    one = first(engine)
    good = second(engine)
    bad = second(engine, {"after": {"action": "refresh", "ends": "failed"}}, name="tell")
    id = ended(engine, one, FAILED)
    for attempt, state in ((2, FAILED), (3, SUCCESS)):
        clock.set(NOON + attempt * SECOND)
        retry(engine, id, WHOLE_INSTALLATION, "tests")
        run(engine, id, state, attempt)

    tick_at(clock, NOON + MINUTE)

    assert ends(engine) == [(id, "failed"), (id, "success")]
    assert [row["event_at"] for row in rows_of(engine, good)] == [NOON + 3 * SECOND]
    assert [row["event_at"] for row in rows_of(engine, bad)] == [NOON]


def test_a_backfill_raises_no_events(engine: sa.Engine) -> None:
    one, _ = first(engine), second(engine)
    id = make_operation(engine, one, NOON, "Backfill 1 by tests")

    run(engine, id)

    assert ends(engine) == []


def test_what_is_handed_over_ends_as_that(engine: sa.Engine, clock: VirtualClock) -> None:
    one = first(engine)
    other = second(engine, {"on": {"action": "refresh", "ends": "handed_over"}})
    id, _ = run_now(engine, one.uid, "tests")
    update_operation(engine, id, send_started_at=NOON)
    act(engine, hand_over, (id, 1), "no worker follows", AlertSettings())

    tick_at(clock, NOON + MINUTE)

    assert [row["event_id"] for row in rows_of(engine, other)] == [f"{id} handed_over"]


def test_actions_of_another_small_app_are_not_meant(engine: sa.Engine, clock: VirtualClock) -> None:
    shop = make_app(engine, "shop")
    first(engine)
    theirs = first(engine, app=shop)
    other, foreign = second(engine), second(engine, app=shop)

    ended(engine, theirs)
    tick_at(clock, NOON + MINUTE)

    assert rows_of(engine, other) == []
    assert len(rows_of(engine, foreign)) == 1


def test_explain_says_what_is_due_and_what_is_not(engine: sa.Engine, clock: VirtualClock) -> None:
    one, other = first(engine), second(engine, {**AFTER, "delay": "PT10M"})
    tick_at(clock, NOON)
    clock.set(NOON + SECOND)
    id = ended(engine, one)

    due = why(engine, other, NOON + SECOND + 10 * MINUTE)
    not_due = why(engine, other, NOON + 5 * MINUTE)

    assert due.verdict == "not_due_yet"
    assert due.text == f"due in 00:10:00 for the end of run {id} success"
    assert not_due.verdict == "not_an_occurrence"
    assert 'no run of "refresh" ended as success' in not_due.text


def test_an_action_that_others_depend_on_is_not_renamed_or_deleted_alone(engine: sa.Engine) -> None:
    one, other = first(engine), second(engine)

    with pytest.raises(Refused, match="cannot be renamed: 'publish' would never be due again"):
        rename(engine, one.uid, "load", author())
    with pytest.raises(Refused, match="'publish' would never be due again"):
        delete(engine, one.uid, author())
    delete(engine, other.uid, author())
    delete(engine, one.uid, author())

    both = [first(engine).uid, second(engine).uid]
    assert len(delete_many(engine, both, author())) == 2


CYCLE = 'makes a cycle, "a" after "c" after "b" after "a"'


def after(name: str, other: str) -> dict[str, Any]:
    return make_document(name=name, when={"after": {"action": other}})


def test_a_cycle_is_refused_however_it_comes_about(engine: sa.Engine) -> None:
    with pytest.raises(InvalidAction, match='"a" after "a"'):
        create_all(engine, [after("a", "a")], author())
    with pytest.raises(InvalidAction, match=CYCLE):
        create_all(engine, [after("a", "c"), after("b", "a"), after("c", "b")], author())
    create_all(engine, [after("b", "a"), after("c", "b")], author())
    for store in (create_all, apply_all):
        with pytest.raises(InvalidAction, match=CYCLE):
            store(engine, [after("a", "c")], author())
    (one,) = create_all(engine, [make_document(name="a")], author())
    with pytest.raises(InvalidAction, match="makes a cycle"):
        replace_document(engine, one.uid, after("a", "c"), author())
    (free,) = create_all(engine, [after("free", "c")], author())
    # What depends on a name that no action has, is not made a cycle by a new name either.
    create_all(engine, [after("late", "new")], author())
    replace_document(engine, free.uid, after("free", "late"), author())
    with pytest.raises(InvalidAction, match="makes a cycle"):
        rename(engine, free.uid, "new", author())


def test_two_saves_side_by_side_do_not_close_a_cycle(engine: sa.Engine) -> None:
    pair = [make_action(engine, name=name) for name in ("a", "b")]
    together = Barrier(2)

    def depend(number: int) -> str:
        together.wait(20)
        document = after(pair[number].name, pair[1 - number].name)
        try:
            replace_document(engine, pair[number].uid, document, author())
        except InvalidAction as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        told = sorted(pool.map(depend, range(2)))

    assert told[0] == ""
    assert "makes a cycle" in told[1]


def test_ends_are_pruned_when_no_delay_reaches_them(engine: sa.Engine, clock: VirtualClock) -> None:
    one, other = first(engine), second(engine, {**AFTER, "delay": "P30D"})
    ended(engine, one)
    tick_at(clock, NOON + 35 * DAY)
    (row,) = rows_of(engine, other)
    assert row["state"] == "missed"

    counts = []
    for days in (35, 50):
        tick_at(clock, NOON + days * DAY)
        with engine.begin() as connection:
            gone = prune_raised(connection, "ends", 1, timedelta(days=10), 100)
            counts.append((gone, prune_operations(connection, 1, timedelta(days=10), 100)))

    assert counts[0] == (0, 1)
    assert counts[1] == (1, 1)
    assert (ends(engine), rows_of(engine, other)) == ([], [])
