"""Rules in the form, in a real Chromium: the calendar's fields, and a rule as text."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from services import changes
from tests.browser import Chromium, hold_back
from tests.integration.web.conftest import APP, Web


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
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH",
        {"unit": "weeks", "weekdays": ["MO", "TH"]},
        id="weeks_on_weekdays",
    ),
    pytest.param(
        "FREQ=MONTHLY;BYMONTHDAY=1,15", {"nth": "", "dates": "1, 15"}, id="days_of_a_month"
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
    "FREQ=DAILY;COUNT=2",
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
        meaning = page.locator("#meaning")
        expect(meaning).to_contain_text("FREQ=MONTHLY;BYDAY=-1FR at 17:00")
        assert tab.serious() == []
        page.click("button:text-is('Save')")
        expect(page.locator(".notice span")).to_have_text("tidy is saved.")
        page.click("text=Edit")
        expect(page.locator("[name=which]")).to_have_value("-1")
        expect(page.locator("[name=weekday]").first).to_be_hidden()
        before = _written(page)["when"]
        page.fill("[name=time]", "18:00")
        after = _written(page)["when"]

    assert before["rrule"] == "FREQ=MONTHLY;BYDAY=-1FR"
    # The first day stays the stored instant: each second or third one counts from it.
    assert after == before | {"at": "18:00"}
    assert tab.faults == []


def test_the_preview_shows_the_last_change_though_an_earlier_answer_is_late(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.clock.install()
        page.goto(f"/apps/{APP}/new-action")
        page.route("**/check", hold_the_first)
        page.select_option("[name=rhythm]", "cron")
        page.check("[data-step=maintenance]")
        for name in ("one", "two", "three"):
            page.fill("[data-path=name]", name)
            page.fill("[name=cron]", "0 3 * * *")
            page.clock.run_for(1000)
        held[0].continue_()

        expect(page.locator("#meaning h2")).to_have_text("three")


def test_a_rule_beyond_the_fields_is_changed_as_text(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    when = {"rrule": "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "at": ["09:00", "17:30"]}
    changes.add(shop, [{"name": "odd", "when": when, "operations": {"maintenance": {}}}])
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/actions/odd/edit")
        page.evaluate("document.getElementById('as-json').open = true")
        expect(page.locator("[name=rhythm]")).to_have_value("rrule")
        expect(page.locator("[name=times]")).to_have_value("09:00, 17:30")
        page.fill("[name=rrule]", "FREQ=YEARLY;BYWEEKNO=21;BYDAY=MO")
        changed = _written(page)["when"]
        text = page.input_value("#text").replace("FREQ=YEARLY;BYWEEKNO=21", "FREQ=WEEKLY")
        page.fill("#text", json.dumps(json.loads(text) | {"when": {**changed, "at": "09:00"}}))
        expect(page.locator("[name=rhythm]")).to_have_value("rrule")

    assert (changed["rrule"], changed["at"]) == (
        "FREQ=YEARLY;BYWEEKNO=21;BYDAY=MO", ["09:00", "17:30"],
    )  # fmt: skip
    assert tab.faults == []


def test_no_rule_is_saved_that_nobody_wrote(chromium: Chromium, web_on_sqlite: Web) -> None:
    """Neither a preselected one, nor the one before in place of a text that cannot be read."""
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        save, why = page.locator("button:text-is('Save')"), page.locator("#why-not")
        _start(page)
        expect(why).to_have_text("Still to fill in: When it runs.")
        page.select_option("[name=rhythm]", "cron")
        page.fill("[name=cron]", "every weekday at 7:30 in Paris")
        expect(why).to_have_text("Still to fill in: When it runs.")
        expect(page.locator("#meaning li")).to_be_hidden()
        page.locator("[name=cron]").blur()
        expect(page.locator("#meaning li")).to_be_visible()
        expect(page.locator("#meaning li")).to_contain_text("write five fields")
        expect(why).to_have_text("Correct what the preview marks.")
        expect(save).to_be_disabled()
        expect(page.locator("[name=cron]")).to_have_value("every weekday at 7:30 in Paris")
        page.fill("[name=cron]", "30 7 * * mon-fri")
        expect(save).to_be_enabled()
        expect(why).to_be_empty()


def test_save_waits_for_the_preview_of_what_is_written(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        save = page.locator("button:text-is('Save')")
        page.goto(f"/apps/{APP}/actions/nightly/edit")
        expect(save).to_be_enabled()
        held = hold_back(page, "**/check")
        with page.expect_request("**/check"):
            page.fill("[name=time]", "10:15")
            expect(save).to_be_disabled()
        expect(page.locator("#why-not")).to_have_text("The preview is being made.")
        held[0].continue_()
        expect(save).to_be_enabled()
        expect(page.locator("#meaning .diff .new")).to_contain_text("15 10 * * *")


def test_days_of_the_week_are_chosen_by_their_boxes(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.select_option("[name=rhythm]", "weekdays")
        page.fill("[name=time]", "07:30")
        rules = [_written(page)["when"]["cron_rule"]]
        page.uncheck("[name=weekday][value=wed]")
        expect(page.locator("[name=rhythm]")).to_have_value("week")
        rules.append(_written(page)["when"]["cron_rule"])
        for day in ("wed", "sat", "sun"):
            page.check(f"[name=weekday][value={day}]")
        expect(page.locator("[name=rhythm]")).to_have_value("day")
        rules.append(_written(page)["when"]["cron_rule"])
        assert tab.serious() == []
        page.fill("#text", page.input_value("#text").replace("7 * * *", "7 * * 1,wed-fri"))
        ticked = page.locator("[name=weekday]:checked")
        days = ticked.evaluate_all("all => all.map((one) => one.value)")

    assert rules == ["30 7 * * mon-fri", "30 7 * * mon,tue,thu,fri", "30 7 * * *"]
    assert days == ["mon", "wed", "thu", "fri"]
    assert tab.faults == []


def test_the_zone_stays_while_a_rule_without_one_is_chosen(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.select_option("[name=rhythm]", "day")
        page.fill("[name=zone]", "Asia/Tokyo")
        page.select_option("[name=rhythm]", "every")
        page.fill("[name=every]", "90")
        page.select_option("[name=rhythm]", "day")
        page.fill("[name=time]", "07:00")

        assert _written(page)["when"] == {"cron_rule": "0 7 * * *", "timezone": "Asia/Tokyo"}


@pytest.mark.parametrize(
    ("rhythm", "name", "remedy"),
    [
        ("every", "every", "is too short"),
        ("day", "time", "write five fields"),
        ("date", "due", "is not an instant"),
        ("cron", "cron", "write five fields"),
        ("calendar", "interval", "write a rule such as"),
    ],
)
def test_an_emptied_field_does_not_leave_the_rule_of_before(
    chromium: Chromium, web_on_sqlite: Web, rhythm: str, name: str, remedy: str
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        _start(page)
        page.select_option("[name=rhythm]", "weekdays")
        page.fill("[name=time]", "07:00")
        expect(page.locator("#meaning")).to_contain_text("at 07:00 on Monday")
        page.select_option("[name=rhythm]", rhythm)
        page.fill(f"#fields [name={name}]", "")
        page.locator(f"#fields [name={name}]").blur()

        expect(page.locator("#meaning .faults")).to_contain_text(remedy)
        expect(page.locator("#meaning .faults li").first).to_be_visible()
        expect(page.locator("[name=rhythm]")).to_have_value(rhythm)
