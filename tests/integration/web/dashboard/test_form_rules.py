"""Rules in the form, in a real Chromium: the calendar's fields, a rule as text, and words."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from runtime.clock import utc_now
from tests import browser
from tests.browser import Chromium
from tests.integration.web.conftest import APP, Web
from views import changes


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with browser.started() as found:
        yield found


def _written(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.input_value("#text"))
    return found


def _start(page: Page) -> None:
    page.goto(f"/apps/{APP}/new-action")
    page.evaluate("document.getElementById('as-json').open = true")
    page.fill("[data-path=name]", "tidy")
    page.check("[data-step=maintenance]")


SHOWN = [
    pytest.param("FREQ=DAILY;INTERVAL=3", {"unit": "days", "interval": "3"}, id="days"),
    pytest.param("FREQ=WEEKLY", {"unit": "weeks", "weekdays": []}, id="weeks_from_the_first_day"),
    pytest.param(
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;COUNT=5",
        {"unit": "weeks", "weekdays": ["MO", "TH"], "end": "count", "count": "5"},
        id="weeks_on_weekdays",
    ),
    pytest.param(
        "FREQ=MONTHLY;BYMONTHDAY=1,15;UNTIL=20271231",
        {"nth": "", "dates": "1, 15", "end": "until", "until": "2027-12-31"},
        id="days_of_a_month",
    ),
    pytest.param(
        "FREQ=MONTHLY;BYMONTHDAY=-1", {"nth": "-1", "kind": "day"}, id="last_day_of_a_month"
    ),
    pytest.param(
        "FREQ=MONTHLY;INTERVAL=3;BYDAY=2TU", {"nth": "2", "kind": "TU"}, id="second_tuesday"
    ),
    pytest.param(
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        {"nth": "-1", "kind": "working"},
        id="last_working_day",
    ),
    pytest.param(
        "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", {"month": "11", "nth": "4", "kind": "TH"}, id="yearly"
    ),
]
BEYOND = [
    "FREQ=DAILY;BYDAY=MO",
    "FREQ=WEEKLY;BYDAY=MO;WKST=SU",
    "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9",
    "FREQ=MONTHLY;BYDAY=MO,FR;BYSETPOS=1",
    "FREQ=MONTHLY;BYDAY=5FR",
    "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=MONTHLY;BYMONTHDAY=-3",
    "FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1",
    "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    "FREQ=DAILY;UNTIL=20271231T180000",
    "FREQ=DAILY;COUNT=2;UNTIL=20271231",
    "FREQ=HOURLY",
    "oops",
]


def test_the_calendars_fields_show_a_rule_and_write_it_back(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        tab.page.goto(f"/apps/{APP}/new-action")
        for one in SHOWN:
            rrule, fields = one.values
            said = tab.page.evaluate("rule => formCalendar.show(rule)", rrule)
            assert said | fields == said, one.id
            assert tab.page.evaluate("said => formCalendar.read(said)", said) == rrule, one.id
        beyond = {rule: tab.page.evaluate("one => formCalendar.show(one)", rule) for rule in BEYOND}

    assert beyond == dict.fromkeys(BEYOND)


def test_a_rule_of_the_calendar_is_built_without_a_text(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.select_option("[name=rhythm]", "calendar")
        page.select_option("[name=unit]", "months")
        page.fill("[name=interval]", "1")
        page.select_option("[name=which]", "-1")
        page.select_option("[name=kind]", "FR")
        page.fill("[name=time]", "17:00")
        page.select_option("[name=stop]", "count")
        page.fill("[name=count]", "12")
        meaning = page.locator("#meaning")
        expect(meaning).to_contain_text("FREQ=MONTHLY;BYDAY=-1FR;COUNT=12 at 17:00")
        assert tab.serious() == []
        page.click("button:text-is('Save')")
        expect(page.locator(".notice span")).to_have_text("tidy is saved.")
        page.click("text=Edit")
        expect(page.locator("[name=which]")).to_have_value("-1")
        expect(page.locator("[name=byday]").first).to_be_hidden()
        before = _written(page)["when"]
        page.fill("[name=time]", "18:00")
        after = _written(page)["when"]

    assert before["rrule"] == "FREQ=MONTHLY;BYDAY=-1FR;COUNT=12"
    # The first day stays the stored instant: a rule with a COUNT counts from it.
    assert after == before | {"at": "18:00"}
    assert tab.faults == []


def test_a_rule_beyond_the_fields_says_so_and_is_changed_as_text(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    when = {"rrule": "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "at": ["09:00", "17:30"]}
    changes.add(shop, [{"name": "odd", "when": when, "operations": {"maintenance": {}}}])
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/actions/odd/edit")
        page.evaluate("document.getElementById('as-json').open = true")
        expect(page.locator("[data-beyond]")).to_be_visible()
        expect(page.locator("[name=times]")).to_have_value("09:00, 17:30")
        page.fill("[name=rrule]", "FREQ=YEARLY;BYWEEKNO=21;BYDAY=MO")
        changed = _written(page)["when"]
        page.fill("[name=rrule]", "FREQ=WEEKLY;BYDAY=MO")
        page.fill("[name=times]", "09:00")
        page.locator("[name=times]").blur()
        expect(page.locator("[data-beyond]")).to_be_hidden()

    assert (changed["rrule"], changed["at"]) == (
        "FREQ=YEARLY;BYWEEKNO=21;BYDAY=MO", ["09:00", "17:30"],
    )  # fmt: skip
    assert tab.faults == []


def test_words_become_the_rule_that_the_fields_show(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.fill("[name=phrase]", "every second Monday at 9 from 2126-11-25")
        expect(page.locator("[name=rhythm]")).to_have_value("calendar")
        expect(page.locator("[name=byday][value=MO]")).to_be_checked()
        second = _written(page)["when"]
        page.fill("[name=phrase]", "weekdays 7:30")
        expect(page.locator("[name=rhythm]")).to_have_value("weekdays")
        expect(page.locator("#meaning")).to_contain_text("at 07:30 on Monday to Friday")
        page.fill("[name=phrase]", "third friday at 9")
        expect(page.locator("#phrase-read")).to_contain_text("could mean two rules")
        assert tab.serious() == []
        kept = _written(page)["when"]

    zone = {"timezone": "Europe/Paris"}
    assert second == {
        "rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "at": "09:00", "starting_at": "2126-11-25",
    } | zone  # fmt: skip
    assert kept == {"cron_rule": "30 7 * * mon-fri"} | zone
    assert tab.faults == []


@pytest.mark.parametrize("name", ["rhythm", "weekday", "zone"])
def test_words_change_the_field_that_has_the_focus_too(
    chromium: Chromium, web_on_sqlite: Web, name: str
) -> None:
    """Else the next change of a field would write the rule of before."""
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.fill("[name=phrase]", "every second Friday at 9 from 2126-11-25")
        page.focus(f"[name={name}]")
        expect(page.locator("[name=rhythm]")).to_have_value("calendar")
        expect(page.locator("[name=byday][value=FR]")).to_be_checked()
        page.fill("[name=interval]", "3")
        changed = _written(page)["when"]

    assert changed["rrule"] == "FREQ=WEEKLY;INTERVAL=3;BYDAY=FR"


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_words_begin_on_the_next_day_of_the_rules_own_zone(
    chromium: Chromium, web_on_sqlite: Web, zone: str
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.fill("[name=zone]", zone)
        before = utc_now().astimezone(ZoneInfo(zone)).date()
        page.fill("[name=phrase]", "every other day at 23:59")
        expect(page.locator("[name=rhythm]")).to_have_value("calendar")
        when = _written(page)["when"]

    assert when["timezone"] == zone
    assert when["starting_at"] in {str(before), str(before + timedelta(days=1))}
