"""Calendars of a small app: rules leave out their days, also after they change."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from runtime.clock import utc_now
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Result, Write

DAILY = {"cron_rule": "59 23 * * *", "timezone": "UTC", "except": [{"calendar": "closed"}]}
Apply = Callable[..., Result]


def days(*ahead: int) -> list[str]:
    """Return the dates so many days from today, in UTC."""
    today = utc_now().date()
    return [str(today + timedelta(days=one)) for one in ahead]


@pytest.fixture
def apply(call: Call, write: Write) -> Apply:
    """Apply the document of the small app with these calendars."""

    def apply(*options: str, **calendars: Any) -> Result:
        document = {"name": "default", "zone": "UTC", "calendars": calendars}
        return call("app", "apply", *options, write(document, "app.json"))

    return apply


@pytest.fixture
def daily(call: Call, write: Write, apply: Apply) -> Callable[..., list[str]]:
    """Add an action that leaves out two days of a calendar; return what asks for its next dates."""
    assert apply(closed=days(2, 3)).code == 0
    made = call("action", "add", write(make_document(name="daily", when=DAILY)))
    assert made.code == 0, made.err

    def next_dates(count: int) -> list[str]:
        found = call("--json", "action", "next", "daily", "--count", str(count)).json
        return [one["utc"][:10] for one in found]

    return next_dates


def test_a_changed_calendar_changes_the_next_occurrences(
    call: Call, daily: Any, apply: Apply
) -> None:
    foreseen = apply("--dry-run", closed=days(4))
    assert days(2)[0] not in daily(4)

    changed = apply(closed=days(4))

    assert 'calendar "closed" changed' in changed.out
    assert 'calendar "closed" changed' in foreseen.out
    assert days(2)[0] in daily(4)
    assert days(4)[0] not in daily(4)
    assert call("--json", "action", "show", "daily").json["revision"] == 1
    again = apply(closed=days(4))
    assert "unchanged" in again.out


def test_a_calendar_that_an_action_names_stays(daily: Any, apply: Apply) -> None:
    refused = apply(other=["12-25"])

    assert refused.code == 2
    assert "calendars 'closed': the action 'daily' leaves it out" in refused.err
    assert days(2)[0] not in daily(4)


def test_an_export_says_that_no_other_scheduler_has_exceptions(call: Call, daily: Any) -> None:
    refused = call("export", "--format", "beat")

    assert "its rule has an `except`" in refused.out + refused.err
