"""The form of an action in a real Chromium: it needs no JSON, and loses nothing of a document."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from services import changes
from tests.browser import Tab, hold_back
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.integration.web.dashboard.conftest import SHOWN, TASK, Browse, with_tasks

NEW = f"/apps/{APP}/new-action"
UNFOLDED = """
document.querySelectorAll("#fields details, #as-json").forEach((one) => { one.open = true })
"""
ZONE = {"timezone": "Europe/Paris"}


@pytest.fixture(scope="module")
def trusted(share: Callable[..., Web]) -> Web:
    """A server whose small app may send tasks, and mail Ann."""
    return share(celery={"tasks": ("shop.*",)})


@pytest.fixture
def site(trusted: Web) -> Web:
    """The server of all tests, where a worker was seen just now: in ten minutes it is forgotten."""
    return with_tasks(trusted)


def _written(page: Page, *path: str) -> Any:
    """Return what the form has written there in the document."""
    found = json.loads(page.input_value("#text"))
    for key in path:
        found = found[key]
    return found


def _write(page: Page, document: dict[str, Any]) -> None:
    page.fill("#text", json.dumps(document))


def _open(page: Page, path: str = NEW) -> None:
    page.goto(path)
    page.evaluate(UNFOLDED)


def _start(page: Page, rhythm: str = "", **fields: str) -> None:
    """Begin an action that tidies up by a rule of that kind."""
    _open(page)
    page.fill("[data-path=name]", "tidy")
    page.check("[data-step=maintenance]")
    _fill(page, {"rhythm": rhythm, **fields} if rhythm else {})


def _fill(page: Page, fields: dict[str, str]) -> None:
    for name, value in fields.items():
        field = _field(page, name)
        if field.evaluate("one => one.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def _field(page: Page, name: str) -> Locator:
    return page.locator(f"#fields [data-path='{name}'], #fields [name='{name}']").first


# The fields of a rule, the rule in the document, and its meaning in the preview.
RULES: list[tuple[dict[str, str], dict[str, Any], str]] = [
    (
        {"rhythm": "weekdays", "time": "07:30"},
        {"cron_rule": "30 7 * * mon-fri"} | ZONE, "at 07:30 on Monday to Friday",
    ),
    (
        {"rhythm": "cron", "cron": "0 9 * * fri#L", "when.jitter": "5 min"},
        {"cron_rule": "0 9 * * fri#L", "jitter": "PT5M"} | ZONE, "plus up to 5 minutes",
    ),
    ({"rhythm": "date", "due": "2126-03-01T09:00"}, {"due_date": "2126-03-01T09:00"} | ZONE,
     "2126-03-01"),
    ({"rhythm": "every", "every": "90", "each": "60"}, {"every": 5400}, "1 hour 30 minutes"),
    (
        {"rhythm": "every", "every": "6", "each": "3600", "when.except": "12-25, 2027-05-01"},
        {"every": 21600, "except": ["12-25", "2027-05-01"]}, "6 hours",
    ),
    ({"rhythm": "every", "every": "10", "each": "60", "counts": "end"},
     {"every": 600, "from": "end"}, "10 minutes after the last run ended"),
    ({"rhythm": "event", "event": "instance.user.created", "delay": "7 days"},
     {"after": "instance.user.created", "delay": "P7D"}, "instance.user.created"),
    ({"rhythm": "end", "action": "nightly", "ends": "partial", "delay": "9 days"},
     {"after": {"action": "nightly", "ends": "partial"}, "delay": "P9D"},
     '"nightly" ends as partial'),
    (
        {"rhythm": "calendar", "unit": "weeks", "interval": "2", "time": "09:00",
         "since": "2126-11-25"},
        {"rrule": "FREQ=WEEKLY;INTERVAL=2", "at": "09:00", "starting_at": "2126-11-25"} | ZONE,
        "FREQ=WEEKLY;INTERVAL=2 at 09:00",
    ),
]  # fmt: skip


def test_each_kind_of_rule_is_written_in_fields_and_read_back(page: Page) -> None:
    for fields, rule, meaning in RULES:
        _start(page, **fields)
        assert _written(page, "when") == rule
        expect(page.locator("#meaning")).to_contain_text(meaning)
        _open(page)
        _write(page, {"when": rule})
        for name, value in fields.items():
            expect(_field(page, name)).to_have_value(value)


# What a person writes in a field of some kind, and what the document gets.
KINDS = [
    ("duration", "5 min", "PT5M"),
    ("duration", "2 hours and 5s", "PT2H5S"),
    ("duration", "1 day 2 h", "P1DT2H"),
    ("duration", "PT5M", "PT5M"),
    ("duration", "5 parsecs", "5 parsecs"),
    ("duration", "5 min 1 h", "5 min 1 h"),
    ("durations", "1 min, 5 min", ["PT1M", "PT5M"]),
    ("argv", './a "b c" \'d "e\' f="g"', ["./a", "b c", 'd "e', "f=g"]),
    ("values", 'a, 1.5, null, "true"', ["a", 1.5, None, "true"]),
    ("values", '[["a", "b"]]', [["a", "b"]]),
    ("value", "a, b=c", "a, b=c"),
    ("value", '"5"', "5"),
    ("value", '{"a": [1]}', {"a": [1]}),
    ("value", "12e345678", "12e345678"),
    ("value", "0.10000000000000001", "0.10000000000000001"),
    ("values", "1e2, 0.5, 1234567890123456789", ["1e2", 0.5, "1234567890123456789"]),
    ("named", "commit=12e345678, rate=-1e-7", {"commit": "12e345678", "rate": -1e-7}),
    ("named", "a=1, b=x", {"a": 1, "b": "x"}),
    ("named", '{"a=b": [1]}', {"a=b": [1]}),
    ("named", "oops", "oops"),
    ("retries", "2", 3),
]
# Rules of the calendar that fields can show, and those that stay a text.
CALENDAR: list[tuple[str, dict[str, Any]]] = [
    ("FREQ=DAILY;INTERVAL=3", {"unit": "days", "interval": "3"}),
    ("FREQ=WEEKLY", {"unit": "weeks", "weekdays": []}),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", {"unit": "weeks", "weekdays": ["MO", "TH"]}),
    ("FREQ=MONTHLY;BYMONTHDAY=1,15", {"nth": "", "dates": "1, 15"}),
    ("FREQ=MONTHLY;BYMONTHDAY=-1", {"nth": "-1", "kind": "day"}),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", {"nth": "-1", "kind": "working"}),
    ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", {"month": "11", "nth": "4", "kind": "TH"}),
]
BEYOND = [
    *("FREQ=DAILY;BYDAY=MO", "FREQ=MONTHLY;BYDAY=MO,FR;BYSETPOS=1", "FREQ=MONTHLY;BYDAY=5FR"),
    *("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR", "FREQ=MONTHLY;BYMONTHDAY=-3", "FREQ=HOURLY"),
    *("FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1", "oops"),
]


def test_fields_write_what_people_write_and_read_it_back(page: Page) -> None:
    page.goto(NEW)
    for kind, text, value in KINDS:
        seen = "([kind, text]) => formKinds[kind].read(text)"
        assert page.evaluate(seen, [kind, text]) == value, text
        back = "([kind, value]) => formKinds[kind].read(String(formKinds[kind].show(value)))"
        assert page.evaluate(back, [kind, value]) == value, text
    for rrule, fields in CALENDAR:
        said = page.evaluate("rule => formCalendar.show(rule)", rrule)
        assert said | fields == said, rrule
        assert page.evaluate("said => formCalendar.read(said)", said) == rrule
    beyond = {rule: page.evaluate("one => formCalendar.show(one)", rule) for rule in BEYOND}

    assert beyond == dict.fromkeys(BEYOND)


def test_a_rule_of_the_calendar_is_built_without_a_text(tab: Tab, page: Page) -> None:
    _start(page, "calendar", unit="months", interval="1", which="-1", kind="FR", time="17:00")
    expect(page.locator("#meaning")).to_contain_text("FREQ=MONTHLY;BYDAY=-1FR at 17:00")
    assert tab.serious() == []
    _fill(page, {"name": "last friday"})
    page.click("button:text-is('Save')")
    expect(page.locator(".notice span")).to_have_text("last friday is saved.")
    page.click("text=Edit")
    expect(page.locator("[name=which]")).to_have_value("-1")
    expect(page.locator("[name=weekday]").first).to_be_hidden()
    before = _written(page, "when")
    page.fill("[name=time]", "18:00")

    assert before["rrule"] == "FREQ=MONTHLY;BYDAY=-1FR"
    # The first day stays the stored instant: each second or third one counts from it.
    assert _written(page, "when") == before | {"at": "18:00"}


BEGUN: dict[str, Any] = {"starting_at": "2026-12-01T00:07:00Z"}
KEPT: list[Any] = [
    *({"cron_rule": f"0 7 * * {days}"} | ZONE for days in ("0-7", "sun-tue", "fri-sun", "1-5/2")),
    *({"cron_rule": f"0 7 * * {days}"} | ZONE for days in ("*", "mon-fri", "mon,sun", "fri#L")),
    *({"cron_rule": f"*/{step} * * * *"} | ZONE for step in (7, 15, 60)),
    {"cron_rule": "* * * * *", "except": ["12-25"], "jitter": "PT5S", "jitter_each": True} | ZONE,
    {"every": 900, "tolerance": "PT5M", "except": ["12-25"]} | BEGUN | ZONE,
    {"every": 1800, "from": "grid", "jitter": "PT2M"} | ZONE,
    {"every": 60, "from": "end"} | BEGUN | ZONE,
    {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "at": "09:00", "except": "12-25"} | BEGUN | ZONE,
    {"rrule": "FREQ=DAILY;COUNT=9", "at": ["09:00", "17:30"]} | BEGUN | ZONE,
    {"rrule": "FREQ=YEARLY;BYMONTH=13", "at": "09:00"} | ZONE,
    {"due_date": "2126-03-01T09:00"} | ZONE,
    {"on": "instance.user.created"},
    {"on": {"action": "nightly"}},
    {"after": {"action": "nightly", "ends": "partial"}, "delay": "PT1H30M"},
    {"on": {"action": "nightly", "more": 1}} | ZONE,
    {"cron_rule": "0 7 * * *", "more": 1} | ZONE,
    [{"cron_rule": "0 7 * * *"} | ZONE],
]  # fmt: skip


def test_each_field_of_a_rule_leaves_the_rest_of_it(page: Page) -> None:
    _open(page)
    fields = page.locator("[data-section=when] [name]:not([name=rhythm]):visible")
    enter = "all => all.forEach(one => one.dispatchEvent(new Event('input', {bubbles: true})))"
    for when in KEPT:
        page.fill("#text", json.dumps({"when": when}))
        fields.evaluate_all(enter)

        assert _written(page, "when") == when


# A stored rule, the number that is typed, and the rule of it.
LENGTHS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"every": "PT45M", "tolerance": "PT5M"} | BEGUN, "50", {"every": 3000, "tolerance": "PT5M"}),
    ({"every": "PT15M", "jitter": "PT2M"} | BEGUN | ZONE, "20", {"every": 1200, "jitter": "PT2M"}),
    ({"cron_rule": "*/15 * * * *", "except": ["12-25"]} | ZONE, "45",
     {"every": 2700, "except": ["12-25"]}),
    ({"cron_rule": "*/15 * * * *"} | ZONE, "20", {"cron_rule": "*/20 * * * *"}),
]  # fmt: skip


def test_another_interval_keeps_what_the_stored_rule_has(page: Page) -> None:
    _open(page)
    every, rhythm = page.locator("[name=every]"), page.locator("[name=rhythm]")
    for when, typed, rule in LENGTHS:
        _write(page, {"when": when})
        every.fill("")
        every.press_sequentially(typed)
        kept = {key: when[key] for key in ("starting_at", "timezone") if key in when}
        assert _written(page, "when") == rule | kept
        rhythm.select_option("event")
        rhythm.select_option("every")
        assert _written(page, "when") == rule | kept

    _write(page, {"when": {"every": 900, "except": ["12-25"]} | BEGUN})
    every.fill("5")
    _fill(page, {"when.except": "12-26", "zone": "Asia/Tokyo"})
    every.fill("30")
    chosen = {"except": ["12-26"], "timezone": "Asia/Tokyo"}
    assert _written(page, "when") == {"every": 1800} | chosen | BEGUN


def test_the_text_of_a_rule_follows_its_fields(page: Page) -> None:
    _open(page)
    _write(page, {"when": {"cron_rule": "0 7 * * mon"} | ZONE})
    _fill(page, {"time": "08:00", "rhythm": "cron"})

    assert _written(page, "when") == {"cron_rule": "0 8 * * mon"} | ZONE


def test_a_rule_beyond_the_fields_is_changed_as_text(page: Page) -> None:
    _open(page)
    when = {"rrule": "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "at": ["09:00", "17:30"]}
    _write(page, {"when": when})
    expect(page.locator("[name=rhythm]")).to_have_value("rrule")
    expect(page.locator("[name=times]")).to_have_value("09:00, 17:30")
    page.fill("[name=rrule]", "FREQ=YEARLY;BYWEEKNO=21;BYDAY=MO")

    assert _written(page, "when") == when | {"rrule": "FREQ=YEARLY;BYWEEKNO=21;BYDAY=MO"} | ZONE


def test_days_of_the_week_are_chosen_by_their_boxes(page: Page) -> None:
    _start(page, "weekdays", time="07:30")
    page.uncheck("[name=weekday][value=wed]")
    expect(page.locator("[name=rhythm]")).to_have_value("week")
    rules = [_written(page, "when", "cron_rule")]
    for day in ("wed", "sat", "sun"):
        page.check(f"[name=weekday][value={day}]")
    expect(page.locator("[name=rhythm]")).to_have_value("day")
    rules.append(_written(page, "when", "cron_rule"))
    page.fill("#text", page.input_value("#text").replace("7 * * *", "7 * * 1,wed-fri"))
    ticked = page.locator("[name=weekday]:checked")
    days = ticked.evaluate_all("all => all.map((one) => one.value)")

    assert rules == ["30 7 * * mon,tue,thu,fri", "30 7 * * *"]
    assert days == ["mon", "wed", "thu", "fri"]


def test_the_zone_stays_while_a_rule_without_one_is_chosen(page: Page) -> None:
    _start(page, "day", zone="Asia/Tokyo")
    _fill(page, {"rhythm": "every", "every": "90"})
    _fill(page, {"rhythm": "day", "time": "07:00"})

    assert _written(page, "when") == {"cron_rule": "0 7 * * *", "timezone": "Asia/Tokyo"}


def test_an_emptied_field_does_not_leave_the_rule_of_before(page: Page) -> None:
    for rhythm, name, remedy in (
        ("every", "every", "is too short"),
        ("day", "time", "write five fields"),
        ("calendar", "interval", "write a rule such as"),
    ):
        _start(page, "weekdays", time="07:00")
        expect(page.locator("#meaning")).to_contain_text("at 07:00 on Monday")
        _fill(page, {"rhythm": rhythm, name: ""})
        _field(page, name).blur()

        expect(page.locator("#meaning .faults")).to_contain_text(remedy)
        expect(page.locator("#meaning .faults li").first).to_be_visible()
        expect(page.locator("[name=rhythm]")).to_have_value(rhythm)


def test_no_rule_is_saved_that_nobody_wrote(page: Page) -> None:
    """Neither a preselected one, nor the one before in place of a text that cannot be read."""
    save, why = page.locator("button:text-is('Save')"), page.locator("#why-not")
    _start(page)
    expect(why).to_have_text("Still to fill in: When it runs.")
    _fill(page, {"rhythm": "cron", "cron": "every weekday at 7:30 in Paris"})
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


def test_save_waits_for_the_preview_of_what_is_written(page: Page) -> None:
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


def test_the_preview_shows_the_last_change_though_an_earlier_answer_is_late(page: Page) -> None:
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.clock.install()
    page.goto(NEW)
    page.route("**/check", hold_the_first)
    page.select_option("[name=rhythm]", "cron")
    page.check("[data-step=maintenance]")
    for name in ("one", "two", "three"):
        _fill(page, {"name": name, "cron": "0 3 * * *"})
        page.clock.run_for(1000)
    held[0].continue_()

    expect(page.locator("#meaning h2")).to_have_text("three")


def test_a_preview_that_comes_before_the_script_shows_no_fault(page: Page) -> None:
    held = hold_back(page, "**/form-save.js*")
    with page.expect_response("**/check"):
        page.goto(NEW, wait_until="commit")
    held[0].continue_()
    missing = "Still to fill in: What it runs, When it runs, Name."
    expect(page.locator("#why-not")).to_have_text(missing)
    expect(page.locator("#meaning li").first).to_be_hidden()


def test_a_task_has_fields_for_its_arguments_its_queue_and_what_is_known(page: Page) -> None:
    its = "operations.celery_task"
    _open(page)
    page.check("[data-step=maintenance]")
    page.check("[data-step=celery_task]")
    offered = page.locator("#tasks option").evaluate_all("all => all.map((one) => one.value)")
    args, kwargs = 'Paris, 5, true, "5"', "limit=5, region=eu"
    _fill(page, {f"{its}.task": TASK, f"{its}.args": args, f"{its}.kwargs": kwargs})
    _fill(page, {f"{its}.queue": "night"})
    task, suggested = _written(page, "operations", "celery_task"), _written(page, "name")
    _fill(page, {f"{its}.args": '[["a, b"], {"c": 1}]'})
    nested = _written(page, "operations", "celery_task", "args")
    _fill(page, {"name": "kept", f"{its}.task": "shop.tasks.other"})

    assert (offered, suggested) == ([TASK, SHOWN], "close day")
    written = {"args": ["Paris", 5, True, "5"], "kwargs": {"limit": 5, "region": "eu"}}
    assert task == {"task": TASK, **written, "queue": "night"}
    assert (nested, _written(page, "name")) == ([["a, b"], {"c": 1}], "kept")


def test_a_task_has_a_field_for_each_parameter_that_its_worker_reports(
    tab: Tab, page: Page
) -> None:
    page.goto(NEW)
    _fill(page, {"rhythm": "day", "time": "07:00"})
    page.check("[data-step=celery_task]")
    meaning = page.locator("#meaning")
    expect(meaning.locator("li", has_text="operations.celery_task")).to_have_count(1)
    expect(meaning.locator("li:visible")).to_have_count(0)
    _fill(page, {"operations.celery_task.task": SHOWN})
    expect(meaning).to_contain_text("missing a required argument: 'city'")
    shown = page.locator("[data-parameters] label").evaluate_all(
        "all => all.map(one => [one.innerText.trim(), one.querySelector('input').placeholder])"
    )
    assert tab.serious() == []
    page.fill("[data-argument=city]", "Paris, 5e")
    page.fill("[data-argument=dry_run]", "true")
    expect(meaning).not_to_contain_text("missing a required argument")

    assert shown == [["city", "required"], ["limit", "5"], ["dry_run", "False"]]
    named = {"task": SHOWN, "kwargs": {"city": "Paris, 5e", "dry_run": True}}
    assert _written(page, "operations", "celery_task") == named


def test_arguments_that_no_parameter_has_are_left_to_the_arguments_as_a_whole(page: Page) -> None:
    _open(page)
    _write(page, {"operations": {"celery_task": {"task": SHOWN, "args": ["Lyon", 3]}}})
    expect(page.locator("[data-argument=limit]")).to_have_value("3")
    page.fill("[data-argument=limit]", "")
    emptied = _written(page, "operations", "celery_task")
    _write(page, {"operations": {"celery_task": {"task": SHOWN, "kwargs": {"more": 1}}}})
    expect(page.locator("[data-parameters]")).to_be_hidden()
    expect(_field(page, "operations.celery_task.kwargs")).to_have_value("more=1")

    assert emptied == {"task": SHOWN, "kwargs": {"city": "Lyon"}}


ODD: dict[str, Any] = {
    "name": "odd",
    "when": [{"cron_rule": "0 3 * * *"}, {"every": "PT2H", "starting_at": "2026-01-01T00:00:00Z"}],
    "operations": {"publish": {"data": ["sales"]}, "send_email": {"template": "hello"}},
    "recipients": "all",
    "policy": {"look_back": "PT1H", "retry": {"max_attempts": 2, "backoff": ["PT1M", 90]}},
    "hooks": {
        "on_failure": [{"pager": "ops"}, {"webhook": "env:A"}, {"mail": "a@b.c", "when": "first"}],
        "on_success": [{"notify": "ops"}],
        "on_missed": [],
        "monitor": True,
    },
    "more": {"deep": [None, 1.5]},
}  # fmt: skip


def test_a_change_in_a_field_leaves_what_no_field_can_show(page: Page) -> None:
    _open(page)
    _write(page, ODD)
    expect(page.locator("[name=rhythm]")).to_have_value("own")
    page.fill("[data-path=owner]", "ann")
    owned = _written(page)
    page.fill(".hook:last-child [data-hook=to]", "https://example.com/x")
    page.select_option(".hook:nth-last-child(2) [data-hook=kind]", "webhook")
    page.select_option(".hook:nth-last-child(2) [data-hook=on]", "on_success")
    hooks = _written(page, "hooks")
    page.fill("#text", "{oops")
    expect(page.locator("#fields")).to_be_hidden()

    assert owned == {**ODD, "owner": "ann"}
    successes = [{"notify": "ops"}, {"webhook": "https://example.com/x"}]
    assert hooks == {**ODD["hooks"], "on_success": successes}


NUMBERS = """{
  "name": "numbers", "when": {"cron_rule": "0 7 * * *", "timezone": "UTC"},
  "policy": {"look_back": 90.0},
  "operations": {"celery_task": {"task": "shop.tasks.export", "args": [1234567890123456789, 1.0],
    "kwargs": {"dry_run": {"deep": [1e2, -0, 5E-7, 0.1]}}, "headers": {"\\"1.0": "1.0"}}},
  "hooks": {"alert_after": 3.0}, "extra": [0.10000000000000001, 12e345678, 7]
}"""


def test_a_change_in_a_field_leaves_each_number_as_it_is_written(page: Page) -> None:
    _open(page)
    page.fill("#text", NUMBERS)
    page.fill("[name=time]", "08:00")
    changed = page.input_value("#text")
    expect(page.locator("[data-parameters]")).to_be_hidden()
    args = _field(page, "operations.celery_task.args")
    expect(args).to_have_value("[1234567890123456789,1.0]")
    args.fill("[1234567890123456790, 1.0]")

    assert _numbers(changed) == _numbers(NUMBERS.replace("0 7 *", "0 8 *"))
    assert _numbers(page.input_value("#text")) == _numbers(changed.replace("789,", "790,"))


def _numbers(text: str) -> Any:
    """Return a document in which a number is a list of its text."""
    return json.loads(text, parse_float=lambda one: [one], parse_int=lambda one: [one])


STRANGE: list[dict[str, Any]] = [
    {},
    {"when": 5},
    {"operations": []},
    {"hooks": [1]},
    {"recipients": ["x"]},
    {"name": {"a": 1}, "policy": "fast", "when": {"rrule": 7}},
    {"when": {"on": 3}},
    {"operations": {"celery_task": 5, "command": {"run": "x", "shell": ["a"]}}},
    {"hooks": {"on_failure": "a@b.c"}, "when": {"every": {"minutes": 5}}},
]


def test_every_document_opens_in_the_form(page: Page) -> None:
    _open(page)
    for document in STRANGE:
        _write(page, document)
        expect(page.locator("#fields")).to_be_visible()
        assert _written(page) == document


def test_policies_and_hooks_go_as_their_fields_are_emptied(page: Page) -> None:
    _start(page, "day", time="07:00")
    retries, expected = "policy.retry.max_attempts", "policy.expected"
    _fill(page, {"policy.overlap": "queue", retries: "2", expected: "3 min"})
    policy = {"overlap": "queue", "retry": {"max_attempts": 3}, "expected": "PT3M"}
    assert _written(page, "policy") == policy
    to, mails = page.locator("[data-hook=to]"), [{"mail": "a@b.c"}, {"mail": "d@e.f"}]
    for place, one in enumerate(mails):
        to.nth(place).fill(one["mail"])
    assert _written(page, "hooks") == {"on_failure": mails}
    page.locator("[data-hook=on]").nth(1).select_option("on_success")
    assert _written(page, "hooks") == {"on_failure": mails[:1], "on_success": mails[1:]}

    _fill(page, {"policy.overlap": "", retries: "", expected: ""})
    for place in range(2):
        to.nth(place).fill("")
    assert {"policy", "hooks"}.isdisjoint(_written(page))


def test_the_keyboard_alone_writes_an_action(page: Page) -> None:
    keyboard = page.keyboard
    page.goto(NEW)
    _tab_to(page, "[data-step=maintenance]")
    keyboard.press("Space")
    _tab_to(page, "[name=rhythm]")
    keyboard.type("by a cron")
    _tab_to(page, "[name=cron]")
    keyboard.press("ControlOrMeta+a")
    keyboard.type("30 7 * * mon-fri")
    _tab_to(page, "[data-path=name]")
    keyboard.type("by keyboard")
    expect(page.locator("#meaning")).to_contain_text("at 07:30 on Monday to Friday")
    expect(page.locator("#text")).to_be_hidden()
    _tab_to(page, "button:text-is('Save')")
    keyboard.press("Enter")
    expect(page.locator(".notice span")).to_have_text("by keyboard is saved.")


def _tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    wanted = page.locator(selector)
    for _ in range(40):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"{selector} cannot be reached by the keyboard")


def test_the_form_opens_in_a_small_app_without_templates(site: Web, browse: Browse) -> None:
    changes.add(site.opened, [NIGHTLY])
    browser, paths = browse(site), ("/new-action", "/actions/nightly/edit")

    assert [browser.get(f"/apps/default{one}").status_code for one in paths] == [200, 200]
