"""Under any clock change, every occurrence has an outcome and none runs twice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from models.fingerprint import operation_id
from models.store import clock_steps, key_values, tick_work
from models.store.notices.alerting import NO_ALERTS
from models.store.tick_work import Found
from models.tables import action_cursor, actions, installation, missed_spans
from runtime.clock import wait_for
from scheduler.changes import Change, change, deletion, editing
from scheduler.occurrence import occurrences_between
from scheduler.sweep import Sweeper
from scheduler.tick import Tick, TickReport, look
from tests.factories import (
    author,
    cursor_of,
    make_action,
    make_document,
    rows_of,
    spans_of,
    spoil,
    update_operation,
    waits_for_lock,
)
from tests.ticks import DAY, HOUR, LEASE, MINUTE, tick_at
from tests.transactions import execute, fetched, why
from tests.virtual_clock import VirtualClock

# The clocks of Paris go forward in the night that follows.
SEVEN = datetime(2027, 3, 27, 7, 0, tzinfo=UTC)
EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}


@pytest.fixture
def clock(engine: sa.Engine) -> VirtualClock:
    return VirtualClock(engine, SEVEN)


def test_a_due_date_before_what_is_decided_is_kept(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, name="one", when=HOURLY)
    tick_at(clock, SEVEN + 4 * MINUTE)
    clock.set(SEVEN + MINUTE)
    due_at = SEVEN + 3 * MINUTE
    once = make_document(name="one", when={"due_date": due_at.isoformat()})

    change.apply_all(engine, [once], author())
    for minute in range(2, 6):
        tick_at(clock, SEVEN + minute * MINUTE)

    (row,) = (one for one in rows_of(engine, action) if one["occurrence_at"] == due_at)
    assert row["state"] != "missed"


def test_of_two_daemons_one_sets_the_clock_right(engine: sa.Engine, clock: VirtualClock) -> None:
    make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN + HOUR)
    clock.set(SEVEN + HOUR / 2)
    found: list[Found] = []
    other = Thread(target=lambda: found.append(look(engine, None, Sweeper(LEASE, NO_ALERTS))))

    with engine.begin() as connection:
        # The first has set it right, and not committed yet.
        clock_steps.set_right(connection, clock.now)
        key_values.set_value(connection, key_values.LAST_NOW, clock.now.isoformat())
        other.start()
        assert wait_for(lambda: waits_for_lock(engine), 20)
    other.join()

    assert [one.set_back_s for one in found] == [0.0]


def test_a_daemon_frozen_before_it_writes_its_tick_hides_no_clock_that_was_ahead(
    engine: sa.Engine, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("on SQLite another daemon waits from the read on")
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN + MINUTE)
    read = tick_work.look

    def read_and_freeze(*asked: Any) -> Found:
        monkeypatch.undo()
        found = read(*asked)
        tick_at(clock, SEVEN + DAY)
        clock.set(SEVEN + 3 * MINUTE)
        return found

    monkeypatch.setattr(tick_work, "look", read_and_freeze)
    tick_at(clock, SEVEN + 2 * MINUTE)
    tick_at(clock, SEVEN + 4 * MINUTE)

    assert cursor_of(engine, action)["watermark"] == SEVEN + 4 * MINUTE


def test_small_steps_back_add_up(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN)
    tick_at(clock, SEVEN + 9 * MINUTE)
    update_operation(engine, rows_of(engine, action)[-1]["id"], state="cancelled")

    for minute in (5, 1):
        tick_at(clock, SEVEN + minute * MINUTE)

    assert cursor_of(engine, action)["watermark"] == SEVEN + MINUTE


def test_a_paused_action_is_not_filed_again(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, when=HOURLY)
    tick_at(clock, SEVEN)
    editing.set_active(engine, action.uid, active=False, author=author())
    tick_at(clock, SEVEN + DAY)

    tick_at(clock, SEVEN + MINUTE)

    assert cursor_of(engine, action)["next_occurrence_at"] is None


def test_a_change_made_while_the_clock_was_ahead_holds_from_the_right_one_on(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, name="one", when=HOURLY)
    tick_at(clock, SEVEN)
    tick_at(clock, SEVEN + 3 * DAY)
    half_past = {"cron_rule": "30 * * * *", "timezone": "UTC"}
    change.apply_all(engine, [make_document(name="one", when=half_past)], author())

    tick_at(clock, SEVEN + MINUTE)
    tick_at(clock, SEVEN + 30 * MINUTE)
    # An outage over the instant of the change by the clock that was wrong.
    tick_at(clock, SEVEN + 4 * DAY)

    said = [why(engine, action, SEVEN + n * 30 * MINUTE).verdict for n in (1, 2, 3, 144, 145)]
    assert said == ["queued", "not_an_occurrence", "missed", "queued", "missed"]


def test_after_a_deletion_while_the_clock_was_ahead_it_is_deleted_from_the_right_one_on(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, when=HOURLY)
    tick_at(clock, SEVEN)
    tick_at(clock, SEVEN + DAY)
    deletion.delete(engine, action.uid, author())

    tick_at(clock, SEVEN + MINUTE)
    clock.set(SEVEN + 2 * HOUR)

    asked = [SEVEN + HOUR, SEVEN + HOUR + MINUTE, SEVEN + 5 * HOUR]
    assert [why(engine, action, at).verdict for at in asked] == ["deleted"] * 3


def test_what_an_older_revision_missed_stays_missed(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, name="one", when=EVERY_MINUTE)
    tick_at(clock, SEVEN)
    tick_at(clock, SEVEN + 3 * HOUR)
    change.apply_all(engine, [make_document(name="one", when=HOURLY)], author())

    tick_at(clock, SEVEN + HOUR + 30 * MINUTE)

    asked = [SEVEN + 7 * MINUTE, SEVEN + 89 * MINUTE, SEVEN + 91 * MINUTE]
    said = [why(engine, action, at).verdict for at in asked]
    assert said == ["missed", "missed", "not_an_occurrence"]
    ((span, count),) = spans_of(engine)
    assert (span["last_at"], count) == (SEVEN + 90 * MINUTE, 90)


def quarantine(engine: sa.Engine, clock: VirtualClock, now: datetime) -> None:
    with engine.begin() as connection:
        spoil(connection, plan="{}")
        connection.execute(sa.update(action_cursor).values(next_occurrence_at=now))
    assert tick_at(clock, now).quarantined == 1


def delete(engine: sa.Engine, clock: VirtualClock, now: datetime) -> None:
    clock.set(now)
    uid: UUID = fetched(engine, sa.select(actions.c.uid)).scalar_one()
    deletion.delete(engine, uid, author())


@pytest.mark.parametrize("ended", [quarantine, delete])
def test_what_was_missed_before_the_right_clock_stays_missed_if_nothing_decides_it_again(
    engine: sa.Engine,
    clock: VirtualClock,
    ended: Callable[[sa.Engine, VirtualClock, datetime], None],
) -> None:
    action = make_action(engine, name="one", when=EVERY_MINUTE)
    tick_at(clock, SEVEN)
    tick_at(clock, SEVEN + 3 * HOUR)
    ended(engine, clock, SEVEN + 3 * HOUR + MINUTE)

    tick_at(clock, SEVEN + HOUR + 30 * MINUTE)
    tick_at(clock, SEVEN + HOUR + 31 * MINUTE)
    if ended is quarantine:
        change.apply_all(engine, [make_document(name="one", when=HOURLY)], author())

    ((span, count),) = spans_of(engine)
    assert (span["last_at"], count) == (SEVEN + 90 * MINUTE, 90)
    assert why(engine, action, SEVEN + 7 * MINUTE).verdict == "missed"


def test_a_tick_that_began_by_a_wrong_clock_decides_nothing_after_it_was_set_right(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN)
    clock.set(SEVEN + DAY)
    found = look(engine, None, Sweeper(LEASE, NO_ALERTS))
    begun = Tick(engine, TickReport(found.now))
    tick_at(clock, SEVEN + MINUTE)

    begun.decide_by_clock(100)

    assert begun.report.decided == 0
    assert cursor_of(engine, action)["watermark"] == SEVEN + MINUTE


def minutes_later(minutes: int) -> str:
    return (SEVEN + minutes * MINUTE).isoformat()


DATES = st.integers(2, 2_000).map(minutes_later)
CRONS = [{"cron_rule": rule, "timezone": "UTC"} for rule in ("*/20 * * * *", "7 * * * *")]
OF_PARIS = [
    {"cron_rule": rule, "timezone": "Europe/Paris"}
    for rule in ("30 2 * * *", "*/20 1-3 * * *", "0 */2 * * *")
]
# Rules of each kind, of a day or so.
WHENS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([*CRONS, CRONS, *OF_PARIS, OF_PARIS]),
    st.lists(DATES, min_size=1, max_size=4, unique=True).map(
        lambda dates: [{"due_date": one} for one in dates]
    ),
    st.fixed_dictionaries(
        {
            "every": st.sampled_from([660, 2_700, 42_000]),
            "starting_at": st.just(minutes_later(0)),
            "jitter": st.sampled_from(["PT0S", "PT9M"]),
        }
    ),
    DATES.map(lambda one: [*CRONS, {"due_date": one}]),
)
POLICIES = st.fixed_dictionaries(
    {
        "catch_up": st.sampled_from(["latest", "all"]),
        "overlap": st.just("allow"),
        "look_back": st.sampled_from(["PT5M", "PT1H", "P2D"]),
    },
    optional={"ends_at": st.integers(3, 2_000).map(minutes_later)},
)
# In one database each example lives with an action of its own.
PROPERTY = hypothesis_settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def lived(engine: sa.Engine, clock: VirtualClock, when: Any, policy: dict[str, Any]) -> Change:
    """Store an action, as if no other had lived before."""
    clock.set(SEVEN)
    execute(engine, sa.delete(installation))
    execute(engine, sa.update(actions).values(name=actions.c.uid))
    action = make_action(engine, name="lived", when=when, policy=policy)
    tick_at(clock, SEVEN)
    return action


# Seconds by which the clock moves from one tick to the next.
JUMPS = st.one_of(
    st.integers(-200_000, 200_000),
    st.sampled_from([-1, -59, -299, -300, -301, -3_600, 1, 60, 60, 120, 300, 3_600, 90_000]),
)


@PROPERTY
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@given(when=WHENS, policy=POLICIES, steps=st.lists(JUMPS, max_size=8))
@example(when={"due_date": minutes_later(9)}, policy={"look_back": "PT5M"}, steps=[90_000, -89_900])
@example(
    when=[{"cron_rule": "7 * * * *", "timezone": "UTC"}],
    policy={"ends_at": minutes_later(200)},
    steps=[60, 20_000, -19_000, 60],
)
# A span of missed ones lies across the right clock; a clock is behind for a tick.
@example(when=EVERY_MINUTE, policy={"overlap": "allow"}, steps=[90_000, -45_000, 60])
@example(when=EVERY_MINUTE, policy={"overlap": "allow"}, steps=[*[60] * 20, -3_600, 3_700])
def test_whatever_the_clock_does_each_occurrence_has_one_outcome(
    engine: sa.Engine, clock: VirtualClock, when: Any, policy: dict[str, Any], steps: list[int]
) -> None:
    action = lived(engine, clock, when, policy)
    recorded, now = 0, SEVEN
    for step in (*steps, 3_600, 60):
        now = max(now + timedelta(seconds=step), SEVEN + timedelta(seconds=1))
        recorded += tick_at(clock, now).recorded

    rows = rows_of(engine, action)
    own = {row["occurrence_at"] for row in rows}
    wanted = occurrences_between(action.plan, action.uid, SEVEN, now)
    without_row = [at for at in wanted if at not in own]
    said, beside = (
        {why(engine, action, at + off).verdict for at in wanted[::9]}
        for off in (timedelta(0), timedelta(seconds=1))
    )
    spans = spans_of(engine, missed_spans.c.action_uid == action.uid)
    deletion.delete(engine, action.uid, author())

    assert {row["id"] for row in rows} == {operation_id(action.uid, at) for at in own}
    assert sum(row["state"] != "missed" for row in rows) == recorded
    assert sum(count for _, count in spans) == len(without_row)
    assert all(
        any(one["first_at"] <= at <= one["last_at"] for one, _ in spans) for at in without_row
    )
    assert said <= {"pending", "queued", "missed", "skipped"}
    assert beside <= {"not_an_occurrence"}


@PROPERTY
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@given(
    when=WHENS,
    moves=st.lists(
        st.tuples(st.integers(0, 7_200_000).map(lambda ms: ms / 1000), st.booleans()), max_size=6
    ),
)
@example(when=EVERY_MINUTE, moves=[(60.0, False), (0.0, True), (59.999, False), (0.001, False)])
def test_a_rename_at_any_instant_loses_and_doubles_nothing(
    engine: sa.Engine, clock: VirtualClock, when: Any, moves: list[tuple[float, bool]]
) -> None:
    policy = {"catch_up": "all", "look_back": "P2D", "overlap": "allow"}
    action = lived(engine, clock, when, policy)
    now = SEVEN
    for number, (seconds, is_tick) in enumerate(moves):
        now += timedelta(seconds=seconds)
        clock.set(now)
        if is_tick:
            tick_at(clock, now)
        else:
            editing.rename(engine, action.uid, f"new {number}", author())
    tick_at(clock, now + MINUTE)

    rows = rows_of(engine, action)
    wanted = list(occurrences_between(action.plan, action.uid, SEVEN, now + MINUTE))
    query = sa.select(actions.c.revision).where(actions.c.uid == action.uid)
    revision = fetched(engine, query).scalar_one()
    deletion.delete(engine, action.uid, author())
    assert [(row["id"], row["occurrence_at"]) for row in rows] == [
        (operation_id(action.uid, at), at) for at in wanted
    ]
    assert revision == 1 + sum(not is_tick for _, is_tick in moves)
