"""Calendars are read when it is decided: a tick passes over what they leave out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from data.store.status import statuses_of
from models.parsing import Calendars
from models.store.tenants import app_overview
from runtime.config import Settings
from scheduler.changes import Change
from scheduler.changes.change import create_all
from services.overview import overview_of
from tests.factories import (
    author,
    cursor_of,
    installation_on,
    make_app,
    make_document,
    rows_of,
    set_back,
)
from tests.ticks import DAY, LEASE, run_tick
from tests.transactions import act, clock_of, why

SEVEN = datetime(2027, 1, 4, 7, tzinfo=UTC)
DAILY = {"cron_rule": "0 7 * * *", "timezone": "UTC", "except": [{"calendar": "closed"}]}


@pytest.fixture
def daily(engine: sa.Engine) -> Change:
    """Store an action that leaves out 4 January, and was decided up to the day before."""
    holds(engine, "2027-01-04")
    changes = author(calendars={"closed": ["2027-01-04"]})
    document = make_document(name="daily", when=DAILY, operations={"refresh": True})
    (made,) = create_all(engine, [document], changes)
    set_back(engine, made.uid, SEVEN - DAY)
    return made


def holds(engine: sa.Engine, *dates: str) -> None:
    make_app(engine, "default", calendars={"closed": [*dates]})


def test_a_changed_calendar_needs_no_new_revision(engine: sa.Engine, daily: Change) -> None:
    run_tick(engine, SEVEN - timedelta(hours=1))
    filed = cursor_of(engine, daily)["next_occurrence_at"]

    holds(engine, "2027-01-05")

    assert cursor_of(engine, daily)["next_occurrence_at"] == filed
    run_tick(engine, SEVEN)
    run_tick(engine, SEVEN + DAY)
    found = [(row["occurrence_at"], row["revision"]) for row in rows_of(engine, daily)]
    assert found == [(SEVEN, 1)]


def test_an_explanation_names_the_calendar(engine: sa.Engine, daily: Change) -> None:
    for _ in range(2):
        found = why(engine, daily, SEVEN)

        assert found.verdict == "not_an_occurrence"
        assert "`except` leaves it out: 2027-01-04 of calendar closed" in found.text
        run_tick(engine, SEVEN + timedelta(hours=1))


def test_the_next_is_found_behind_what_is_left_out(engine: sa.Engine, settings: Settings) -> None:
    now = clock_of(engine)
    dates: Calendars = {"closed": [f"{now - DAY:%Y-%m-%d}/{now + 9 * DAY:%Y-%m-%d}"]}
    app = make_app(engine, "default", calendars=dates)
    soon = (now + timedelta(minutes=50)).replace(microsecond=0)
    whens = {f"closed {number}": {**DAILY, "cron_rule": "* * * * *"} for number in range(25)}
    whens["open"] = {"due_date": soon.isoformat()}
    refresh: Any = {"operations": {"refresh": True}}
    documents = [make_document(name=name, when=whens[name], **refresh) for name in whens]
    create_all(engine, documents, author(calendars=dates))
    run_tick(engine, now)

    shown = overview_of(installation_on(engine, settings))
    of_app = act(engine, app_overview.overview, app.id)
    status = act(engine, statuses_of, [app.id], now, LEASE)[app.id]

    assert of_app["next"] == {"action": "open", "at": soon}
    assert status["next_run_at"] == soon
    assert (shown.actions[0].name, shown.figures.due, shown.figures.next_at) == ("open", 1, soon)
