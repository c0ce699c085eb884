"""The report of a downtime; its sums equal those of the tables."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from cli.render import text_of
from models.sql import database_now
from models.store import key_values
from models.store.actions.downtime import in_words, last_downtime
from models.store.notices.alerting import NO_ALERTS
from models.store.notices.missed import tell
from models.tables import findings, missed_spans, notices, operations
from runtime.config import Settings
from runtime.database import make_engine
from scheduler.loop import Daemon
from scheduler.on_demand import backfill
from scheduler.on_demand.backfill_range import BackfillRequest
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from services.status import status_in
from tasks import backfill as filling
from tests.factories import STEPS, make_action, make_many, spans_of
from tests.ticks import HOUR, LEASE, MINUTE, run_tick
from tests.transactions import act, clock_of, execute, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def in_tables(engine: sa.Engine) -> tuple[int, int, int]:
    """Return occurrences, sent and missed as the tables have them."""
    rows = sa.select(operations.c.state, sa.func.count()).group_by(operations.c.state)
    by_state = {row[0]: row[1] for row in fetched(engine, rows)}
    missed = by_state.pop("missed", 0) + sum(count for _, count in spans_of(engine))
    sent = sum(by_state.values())
    return sent + missed, sent, missed


def told(report: TickReport) -> tuple[int, int, int]:
    assert report.downtime is not None
    return report.downtime["occurrences"], report.downtime["sent"], report.downtime["missed"]


def test_after_a_downtime_the_sums_are_those_of_the_tables(
    engine: sa.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    run_tick(engine, NOON)
    make_action(engine, name="a", since=NOON)
    all_of_them = {"catch_up": "all", "look_back": "PT30M"}
    make_action(engine, name="b", policy=all_of_them, since=NOON)
    make_action(engine, name="c", when={"cron_rule": "30 12 * * *"}, since=NOON)

    report = run_tick(engine, NOON + 35 * MINUTE)

    assert told(report) == in_tables(engine) == (71, 31, 40)
    assert report.downtime is not None
    assert report.downtime["since"] == "2027-01-04T12:00:00Z"
    assert report.downtime["until"] == "2027-01-04T12:35:00Z"
    assert report.downtime["most_missed"] == [
        {"name": "a", "missed": 34},
        {"name": "b", "missed": 5},
        {"name": "c", "missed": 1},
    ]
    assert in_words(report.downtime) == (
        "2027-01-04T12:00:00Z to 2027-01-04T12:35:00Z: 71 occurrences, 31 sent, 40 missed: "
        '"a" 34, "b" 5, "c" 1'
    )
    lines = [line for line in caplog.messages if line.startswith("down ")]
    assert lines == [f"down {in_words(report.downtime)}"]
    assert json.loads(json.dumps(report.figures()))["downtime"] == report.downtime


def test_two_ticks_are_no_downtime_and_a_little_more_is(engine: sa.Engine) -> None:
    first = run_tick(engine, NOON)
    second = run_tick(engine, NOON + 2 * MINUTE)
    third = run_tick(engine, NOON + 4 * MINUTE + timedelta(seconds=1))

    assert [one.downtime is None for one in (first, second, third)] == [True, True, False]
    assert told(third) == (0, 0, 0)


def test_a_shorter_tick_notices_a_shorter_downtime(engine: sa.Engine) -> None:
    run_tick(engine, NOON)

    report = tick(
        engine,
        NOON + timedelta(seconds=15),
        Sweeper(LEASE, NO_ALERTS),
        longest_gap=timedelta(seconds=10),
    )

    assert report.downtime is not None


def test_what_was_before_and_what_was_asked_for_is_not_of_the_downtime(engine: sa.Engine) -> None:
    action = make_action(engine, since=NOON - 3 * MINUTE)
    run_tick(engine, NOON)
    before = in_tables(engine)

    report = run_tick(engine, NOON + 5 * MINUTE)

    assert told(report) == (5, 1, 4)
    assert in_tables(engine) == tuple(map(sum, zip(before, told(report), strict=True)))
    assert action.revision == 1


def test_batches_and_two_daemons_make_one_downtime(engine: sa.Engine) -> None:
    make_many(engine, 60)
    now = clock_of(engine)
    run_tick(engine, now)

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: run_tick(engine, now + 20 * MINUTE, 7), range(2)))

    noted = [one.downtime for one in reports if one.downtime is not None]
    assert noted
    counts = max((one["occurrences"], one["sent"], one["missed"]) for one in noted)
    assert counts == in_tables(engine) == (1200, 60, 1140)
    assert sum(one.recorded for one in reports) == 60
    assert len(noted[0]["most_missed"]) == 5


def notified(engine: sa.Engine) -> list[dict[str, Any]]:
    """Return what notices say half a minute later."""
    execute(engine, sa.update(findings).values(began_at=database_now(-60.0)))
    act(engine, tell, NO_ALERTS)
    return list(fetched(engine, sa.select(notices.c.payload)).scalars())


class KilledDaemon(BaseException):
    """The daemon ends here."""


def kill() -> None:
    raise KilledDaemon


@contextmanager
def after_its_first_transaction(engine: sa.Engine, do: Callable[[], object]) -> Iterator[None]:
    """Let something happen once, before the second transaction of this engine begins."""
    begun: list[object] = []

    def note(*connection: object) -> None:
        begun.append(connection)
        if len(begun) == 2:
            do()

    sa.event.listen(engine, "checkout", note)
    yield
    sa.event.remove(engine, "checkout", note)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "another ticks"])
def test_what_was_missed_has_its_cause_and_notice_whoever_decides_it(
    engine: sa.Engine, settings: Settings, is_killed: bool
) -> None:
    """The first daemon noticed the downtime: then it is killed, or another one ticks."""
    run_tick(engine, NOON)
    hooks = {"on_failure": [{"mail": "ann@example.com"}]}
    make_action(engine, hooks=hooks, since=NOON)
    now = NOON + 20 * MINUTE
    other = make_engine(settings)

    happens = kill if is_killed else partial(run_tick, other, now + timedelta(seconds=3))
    expected = pytest.raises(KilledDaemon) if is_killed else nullcontext()
    with after_its_first_transaction(engine, happens), expected:
        run_tick(engine, now)
    run_tick(other, now + timedelta(seconds=6))
    other.dispose()

    (notice,) = notified(engine)
    later = act(engine, last_downtime)
    its = sa.select(operations.c.reason).where(operations.c.state == "missed")
    reasons = fetched(engine, its).scalars().all()
    assert later is not None
    assert (later["occurrences"], later["sent"], later["missed"]) == in_tables(engine)
    assert reasons
    assert all("no daemon ticked" in reason for reason in reasons)
    assert notice["missed"] == 19


def test_a_tick_that_dies_leaves_a_cause_to_another(engine: sa.Engine, settings: Settings) -> None:
    Daemon(engine, settings, steps=STEPS).tick_once(NOON)
    make_action(engine, since=NOON)

    with after_its_first_transaction(engine, kill), pytest.raises(KilledDaemon):
        run_tick(engine, NOON + HOUR)
    run_tick(engine, NOON + HOUR + 20 * MINUTE)

    its = sa.select(operations.c.reason).where(operations.c.state == "missed")
    spans = fetched(engine, sa.select(missed_spans.c.reason)).scalars().all()
    reasons = [*fetched(engine, its).scalars(), *spans]
    assert reasons
    cause = "no daemon ticked from 2027-01-04T12:00:00Z to 2027-01-04T13:"
    assert [reason for reason in reasons if cause not in reason] == []


def test_each_of_two_outages_from_the_same_second_on_is_told(engine: sa.Engine) -> None:
    """A clock that was set back shows that second again."""
    hooks = {"on_failure": [{"mail": "ann@example.com"}]}
    missed = []
    for name in ("first", "second"):
        run_tick(engine, NOON)
        make_action(engine, name=name, hooks=hooks, since=NOON)
        run_tick(engine, NOON + 20 * MINUTE)
        missed = [(one["action"], one["missed"]) for one in notified(engine)]

    assert sorted(missed) == [("first", 19), ("second", 19)]


def test_status_shows_it_for_a_day_and_never_changed(engine: sa.Engine, settings: Settings) -> None:
    now = clock_of(engine).replace(second=0, microsecond=0)
    run_tick(engine, now - 40 * MINUTE)
    action = make_action(engine, since=now - 40 * MINUTE)
    run_tick(engine, now)
    shown = act(engine, status_in, settings)
    before = shown.downtime
    [line] = [str(line) for line in text_of(shown) if str(line).startswith("down ")]
    last = now - 20 * MINUTE
    asked = BackfillRequest(action.uid, last, last)
    id, _ = backfill.start(engine, asked, "ann", timedelta(days=90))
    filling.process(engine, id)

    after = act(engine, status_in, settings).downtime
    since, until = ((now - hours * HOUR).isoformat() for hours in (26, 25))
    fact = {"since": since, "until": until, "recorded_from": since}
    act(engine, key_values.set_value, key_values.DOWNTIME, json.dumps(fact))
    gone = act(engine, status_in, settings).downtime

    assert line.startswith("down        20")
    assert line.endswith('Z: 40 occurrences, 1 sent, 39 missed: "every minute" 39')
    assert before is not None
    assert after is not None
    counts = [(one.occurrences, one.sent, one.missed) for one in (before, after)]
    assert counts == [(40, 1, 39), (40, 1, 39)]
    assert gone is None
