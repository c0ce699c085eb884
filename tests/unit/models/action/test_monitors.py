"""What Sentry is told of an action: the name of its monitor, and its schedule."""

import re
from datetime import UTC, datetime

import pytest

from models.action.document import ParseContext, parse_action, plan_of
from models.action.monitors import config_of, slug_of
from tests.factories import STEPS, make_document

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TAKEN = re.compile(r"(?![0-9]+$)[a-z0-9_-]{1,50}")


@pytest.mark.parametrize(
    ("app", "action", "slug"),
    [
        ("default", "Close the day (Paris)", "close-the-day-paris"),
        ("shop", "nightly", "shop-nightly"),
        ("shop", "2024", "shop-2024"),
    ],
)
def test_a_monitor_is_named_after_its_action(app: str, action: str, slug: str) -> None:
    assert slug_of(app, action) == slug


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Отчёт", "Сводка", id="no_letter_that_sentry_takes"),
        pytest.param("日報 1", "月報 1", id="a_digit_alone"),
        pytest.param("2024", "2025", id="digits"),
        pytest.param("a" * 60 + "1", "a" * 60 + "2", id="long"),
        pytest.param("!", "?", id="signs"),
    ],
)
def test_names_that_differ_in_what_sentry_does_not_take_differ(one: str, other: str) -> None:
    slugs = {slug_of("default", one), slug_of("default", other)}

    assert len(slugs) == 2
    assert all(TAKEN.fullmatch(slug) for slug in slugs)


def test_the_margin_covers_the_jitter() -> None:
    rule = {"cron_rule": "0 2 * * *", "timezone": "UTC", "jitter": "PT59M30S"}

    action = parse_action(make_document(when=rule), ParseContext("UTC", NOW, STEPS))
    config = config_of(plan_of(action))

    assert config is not None
    assert config["checkin_margin"] == 70
