"""The pages in a real Chromium: how they look, what one can do there, and what must not get in."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from models.roles import Role
from models.sql import database_now, read_clock
from models.tables import operation_logs
from runtime.database import reading
from services.runs import run
from tests.browser import Chromium, Tab
from tests.factories import update_operation
from tests.integration.web.conftest import APP, Web

HOSTILE = "<img src=x onerror=alert(1)>\"'&<script>alert(2)</script>{{7*7}}"
EVERY_PAGE = (
    "/",
    "/actions",
    "/operations",
    "/operations?app=shop",
    "/apps",
    "/apps/shop",
    "/apps/shop/new-action",
    "/apps/shop/summary",
    "/apps/shop/templates/hello",
    "/health",
    "/account",
    "/invite",
)
# A phone, a tablet, two screens, each also at a zoom of 200 %; then with text twice as large.
SIZES = (
    *((width, "100%") for width in (320, 360, 390, 512, 720, 960, 1024, 1440, 1920)),
    (1280, "200%"),
    (720, "200%"),
)
# Ends when the live part of a page has come anew.
SWAPPED = """
new Promise((done) => document.addEventListener("htmx:after:swap", () => done(), { once: true }))
"""


@pytest.fixture
def hostile(web_on_sqlite: Web) -> dict[str, str]:
    """Text that would break out, in each field that pages show; return what to look at."""
    web = web_on_sqlite
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    editor = web.client(Role.ADMIN, APP)
    document = {
        "name": HOSTILE,
        "owner": HOSTILE,
        "when": {"cron_rule": "0 3 * * *"},
        "operations": {"maintenance": {}},
    }
    made = editor.post("/api/actions", json=document)
    assert made.status_code == 201, made.text
    uid = made.json()["uid"]
    id = run(shop, uid, None, None).id
    with reading(web.engine) as connection:
        now = read_clock(connection)
    running: dict[str, Any] = {
        "state": "running",
        "heartbeat_at": now,
        "worker": HOSTILE,
        "started_at": now - timedelta(seconds=5),
        "first_started_at": now - timedelta(seconds=5),
    }
    failed: dict[str, Any] = {
        "state": "failed",
        "error": HOSTILE,
        "reason": HOSTILE,
        "message": HOSTILE,
        "triggerer": HOSTILE,
        "finished_at": database_now(),
        "steps": [{"name": HOSTILE, "state": "failed", "error": HOSTILE}],
        "result": {HOSTILE: HOSTILE},
    }
    for values in (running, failed):
        update_operation(web.engine, id, **values)
    return {"action": f"/apps/shop/actions/{uid}", "operation": f"/operations/{id}"}


@pytest.mark.parametrize("width", [390, 1440])
def test_every_page_is_sound(
    chromium: Chromium, web_on_sqlite: Web, hostile: dict[str, str], width: int
) -> None:
    pages = (*EVERY_PAGE, hostile["action"], f"{hostile['action']}/edit", hostile["operation"])
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), width) as tab:
        for path in pages:
            answer = tab.page.goto(path)
            assert answer is not None
            assert answer.status == 200, path
            assert not tab.is_wider_than_the_screen(), path
            assert tab.serious() == []
            tab.page.emulate_media(color_scheme="dark")
            assert tab.serious() == []
            tab.page.emulate_media(color_scheme="light")
        shown = tab.page.inner_text("main")

    assert HOSTILE in shown
    assert tab.faults == []


def test_no_page_loses_what_it_shows(
    chromium: Chromium, web_on_sqlite: Web, hostile: dict[str, str]
) -> None:
    pages = (*EVERY_PAGE, hostile["action"], f"{hostile['action']}/edit", hostile["operation"])
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        wide, lost = [], []
        for path in pages:
            tab.page.goto(path)
            for width, text in SIZES:
                tab.page.set_viewport_size({"width": width, "height": 900})
                tab.page.evaluate(
                    "size => { document.documentElement.style.fontSize = size }", text
                )
                wide += [(path, width)] if tab.is_wider_than_the_screen() else []
                lost += tab.lost()

    assert (wide, lost) == ([], [])


def test_an_action_is_made_run_and_mended_without_leaving_the_browser(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto("/apps/shop/new-action")
        page.fill("[name=name]", "greet buyers")
        page.select_option("[name=rhythm]", "weekdays")
        page.fill("[name=time]", "09:30")
        page.click("summary:text-is('Data and mail')")
        page.check("[data-step=send_email]")
        page.fill("[name=groups]", "buyers")
        expect(page.locator("#meaning")).to_contain_text("at 09:30 on Monday to Friday")
        page.click("button:text-is('Save')")
        expect(page.locator(".notice span")).to_have_text("greet buyers is saved.")

        _run_and_cancel(page)
        _break_and_mend(page)

    assert tab.faults == []


def _run_and_cancel(page: Page) -> None:
    page.click("text=Run now")
    expect(page).to_have_url(re.compile("/operations/"))
    expect(page.locator("#live .verdict h2")).to_have_text(re.compile("Pending|Queued"))
    page.click("text=Cancel")
    expect(page.locator("#live .verdict h2")).to_have_text("Cancelled")


def _break_and_mend(page: Page) -> None:
    page.goto("/actions")
    page.click("text=greet buyers")
    page.click("text=Edit")
    page.click("summary:text-is('As JSON')")
    text = page.input_value("#text")
    page.fill("#text", text.replace("greet buyers", "greet all"))
    expect(page.locator("#meaning")).to_contain_text("greet all")
    # Another name renames it: the form says which action is edited.
    page.fill("#text", text.replace("30 9", "61 9"))
    expect(page.locator("#meaning")).to_contain_text("minute '61' is above 59")
    expect(page.locator("button:text-is('Save')")).to_be_disabled()
    page.fill("#text", text.replace("30 9", "45 9"))
    page.click("button:text-is('Save')")
    expect(page.locator(".notice span")).to_contain_text("greet buyers is now at revision 2.")
    expect(page.locator("pre .new").first).to_contain_text("45 9 * * mon-fri")


def _written(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.input_value("#text"))
    return found


def test_the_form_writes_intervals_events_and_policies_in_step_with_the_document(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto("/apps/shop/new-action")
        page.click("summary:text-is('As JSON')")
        page.fill("[name=name]", "call back")
        page.select_option("[name=rhythm]", "every")
        page.fill("[name=every]", "6")
        page.select_option("[name=each]", "3600")
        _leave_out_days(page)
        page.select_option("[name=rhythm]", "event")
        page.fill("[name=event]", "instance.user.created")
        page.fill("[name=delay]", "7 days")
        assert _written(page)["when"] == {"after": "instance.user.created", "delay": "P7D"}
        page.fill("#text", page.input_value("#text").replace("P7D", "P9D"))
        expect(page.locator("[name=delay]")).to_have_value("9 days")
        _write_an_end(page)
        _write_policies(page)
        page.check("[data-step=maintenance]")
        expect(page.locator("#meaning")).to_contain_text('when "nightly" ends as partial')
        page.click("button:text-is('Save')")
        expect(page.locator(".notice span")).to_have_text("call back is saved.")
        expect(page.locator(".verdict")).to_contain_text("nightly")

    assert tab.faults == []


def test_the_form_writes_weeks_weekdays_of_a_month_and_intervals_from_the_end(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto("/apps/shop/new-action")
        page.click("summary:text-is('As JSON')")
        page.fill("[name=name]", "sprint")
        page.check("[data-step=maintenance]")
        page.select_option("[name=rhythm]", "calendar")
        page.fill("[name=interval]", "2")
        page.check("[name=weekday][value=mon]")
        page.fill("[name=time]", "09:00")
        page.fill("[name=since]", "2126-11-25")
        found = _written(page)["when"]
        assert found.pop("timezone")
        assert found == {
            "rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO",
            "at": "09:00",
            "starting_at": "2126-11-25",
        }
        expect(page.locator("#meaning")).to_contain_text("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO at 09:00")
        page.fill("#text", page.input_value("#text").replace("INTERVAL=2", "INTERVAL=3"))
        expect(page.locator("[name=interval]")).to_have_value("3")
        _write_a_weekday_of_the_month(page)
        _write_an_interval_from_the_end(page)

    assert tab.faults == []


def _write_a_weekday_of_the_month(page: Page) -> None:
    page.select_option("[name=rhythm]", "cron")
    page.fill("[name=cron]", "0 9 * * fri#L")
    expect(page.locator("#meaning")).to_contain_text("on the last Friday of each month")
    page.click("summary:has-text('Leave out days')")
    page.fill("[data-path='when.jitter']", "5 min")
    expect(page.locator("#meaning")).to_contain_text("plus up to 5 minutes")
    page.fill("#text", page.input_value("#text").replace("fri#L", "tue#2"))
    expect(page.locator("[name=cron]")).to_have_value("0 9 * * tue#2")


def _write_an_interval_from_the_end(page: Page) -> None:
    page.fill("[data-path='when.jitter']", "")
    page.select_option("[name=rhythm]", "every")
    page.fill("[name=every]", "10")
    page.select_option("[name=counts]", "end")
    assert _written(page)["when"] == {"every": 600, "from": "end"}
    expect(page.locator("#meaning")).to_contain_text("10 minutes after the last run ended")
    page.fill("#text", page.input_value("#text").replace("600", "7200"))
    expect(page.locator("[name=every]")).to_have_value("2")
    expect(page.locator("[name=each]")).to_have_value("3600")
    expect(page.locator("[name=counts]")).to_have_value("end")


def _leave_out_days(page: Page) -> None:
    page.click("summary:has-text('Leave out days')")
    page.fill("[data-path='when.except']", "12-25, 2027-05-01")
    left_out = ["12-25", "2027-05-01"]
    assert _written(page)["when"] == {"every": 21600, "except": left_out}
    page.fill("[data-path='when.except']", "")
    assert _written(page)["when"] == {"every": 21600}


def _write_an_end(page: Page) -> None:
    page.select_option("[name=rhythm]", "end")
    page.fill("[name=action]", "nightly")
    page.select_option("[name=ends]", "failed")
    end = {"action": "nightly", "ends": "failed"}
    assert _written(page)["when"] == {"after": end, "delay": "P9D"}
    page.fill("[name=delay]", "")
    page.fill("#text", page.input_value("#text").replace('"failed"', '"partial"'))
    expect(page.locator("[name=ends]")).to_have_value("partial")


def _write_policies(page: Page) -> None:
    page.click("summary:has-text('If it runs long')")
    page.select_option("[data-path='policy.overlap']", "queue")
    page.fill("[data-path='policy.retry.max_attempts']", "2")
    assert _written(page)["policy"] == {"overlap": "queue", "retry": {"max_attempts": 3}}
    page.fill("[data-path='policy.expected']", "3 min")
    assert _written(page)["policy"]["expected"] == "PT3M"
    page.fill("[data-path='policy.expected']", "")
    page.fill("[data-path='policy.retry.max_attempts']", "")
    page.select_option("[data-path='policy.overlap']", "")
    _write_hooks(page)
    assert {"policy", "hooks"}.isdisjoint(_written(page))


def _write_hooks(page: Page) -> None:
    to = page.locator("[data-hook=to]")
    for place, name in enumerate(("ann", "bob")):
        to.nth(place).fill(f"{name}@example.com")
    mails = [{"mail": "ann@example.com"}, {"mail": "bob@example.com"}]
    assert _written(page)["hooks"] == {"on_failure": mails}
    page.locator("[data-hook=on]").nth(1).select_option("on_success")
    assert _written(page)["hooks"] == {"on_failure": mails[:1], "on_success": mails[1:]}
    # Its small app may reach no address outside.
    for place in range(2):
        to.nth(place).fill("")


def _search(tab: Tab, words: str, count: int) -> None:
    tab.page.fill("input[type=search]", words)
    expect(tab.page.locator("tbody tr")).to_have_count(count)


def test_several_actions_are_found_and_changed_at_once(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    client = web_on_sqlite.client(Role.EDITOR, APP)
    documents = [
        {"name": f"report {number}", "when": {"every": 3600}, "operations": {"maintenance": {}}}
        for number in range(60)
    ]
    assert client.post("/api/actions:apply", json=documents).status_code == 200
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto("/actions")
        expect(page.locator("tbody tr")).to_have_count(50)
        page.click("text=Next page")
        page.goto("/actions")
        _search(tab, "report 1", 15)
        page.check("[data-all]")
        page.click(".chosen >> text=Pause")
        expect(page.locator(".notice span")).to_contain_text("15 actions are paused")
        expect(page.locator("input[type=search]")).to_have_value("report 1")
        page.goto("/actions?standing=paused")
        expect(page.locator("tbody tr")).to_have_count(15)
        page.check("[data-all]")
        with page.expect_event("dialog") as asked:
            page.click(".chosen >> text=Delete")
        assert asked.value.message.splitlines()[1:4] == ["report 1", "report 10", "report 11"]
        expect(page.locator(".notice span")).to_contain_text("15 actions are deleted")
        expect(page.locator("tbody tr")).to_have_count(0)

    assert tab.faults == []


def test_the_way_back_from_a_search_is_the_page_before(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto("/apps")
        page.goto("/actions")
        for words in ("night", "nightly"):
            page.fill("input[type=search]", words)
            expect(page).to_have_url(re.compile(f"q={words}&"))
        page.go_back()
        expect(page.locator("h1")).to_have_text("Apps")
        page.go_forward()
        expect(page.locator("nav a[aria-current]")).to_have_text("Actions")
        expect(page.locator("tbody tr")).to_have_count(1)

    assert tab.faults == []


@pytest.mark.usefixtures("hostile")
def test_a_live_page_leaves_chart_and_focus_where_the_reader_put_them(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), 390) as tab:
        page = tab.page
        page.goto("/?view=time")
        chart, lane = page.locator(".scroll.timeline"), page.locator(".lane .named a").first
        assert chart.evaluate("one => one.scrollLeft") > 0
        lane.focus()
        chart.evaluate("one => { one.scrollLeft = 7 }")
        page.evaluate(SWAPPED)

        expect(lane).to_be_focused()
        assert chart.evaluate("one => one.scrollLeft") == 7

    assert tab.faults == []


def test_the_keyboard_is_enough(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        keyboard = tab.page.keyboard
        tab.page.goto("/")
        keyboard.press("?")
        expect(tab.page.locator("#keys")).to_be_visible()
        keyboard.press("Escape")
        expect(tab.page.locator("#keys")).to_be_hidden()
        keyboard.press("?")
        expect(tab.page.locator("#keys")).to_be_visible()
        keyboard.press("g")
        keyboard.press("a")
        expect(tab.page).to_have_url(re.compile("/actions$"))
        # The keys of the new page work once its scripts have run.
        tab.page.wait_for_load_state()
        tab.page.locator("input[type=search]").focus()
        keyboard.type("nightly")
        expect(tab.page).to_have_url(re.compile("q=nightly"))
        expect(tab.page.locator("[data-row]")).to_have_count(1)
        keyboard.press("ArrowDown")
        keyboard.press("Enter")
        expect(tab.page.locator("h1")).to_have_text("nightly")

    assert tab.faults == []


def test_a_viewer_sees_no_button_that_changes(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(Role.VIEWER, APP)) as tab:
        tab.page.goto("/apps/shop/actions/nightly")
        expect(tab.page.locator("h1")).to_have_text("nightly")
        for path in ("/", "/actions", "/apps/shop/actions/nightly", "/operations"):
            tab.page.goto(path)
            assert tab.page.locator("main form[method=post] button:visible").count() == 0, path

    assert tab.faults == []


def test_without_a_script_every_page_is_read_and_changed(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), java_script_enabled=False) as tab:
        page = tab.page
        page.goto("/actions?q=nightly")
        page.click("[data-row] a.name")
        page.click("main >> text=Pause")
        expect(page.locator(".notice span")).to_have_text("Paused, until you resume it.")
        page.click("button:text-is('Resume')")
        expect(page.locator(".notice span")).to_have_text("Resumed.")


def _delete(page: Page) -> None:
    """Press Delete, of the selected action of a list, or in the menu of its page."""
    page.locator("[name=uid], main .menu summary").first.click()
    page.click("main button.danger:text-is('Delete')")


@pytest.mark.parametrize("where", ["/actions?q=nightly", "/apps/shop/actions/nightly"])
def test_without_a_script_a_deletion_asks_first(
    chromium: Chromium, web_on_sqlite: Web, where: str
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), java_script_enabled=False) as tab:
        page = tab.page
        page.goto(where)
        _delete(page)
        expect(page.locator("main")).to_contain_text("nightly")
        page.goto(where)
        expect(page.locator("main")).to_contain_text("nightly")
        _delete(page)
        page.click("text=Yes, do it")
        expect(page.locator(".notice span")).to_have_text(re.compile("eleted"))


@pytest.mark.parametrize("width", [390, 1440])
def test_the_bars_of_a_run_stand_below_their_names(
    chromium: Chromium, web_on_sqlite: Web, width: int
) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    id = run(shop, "nightly").id
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), width) as tab:
        tab.page.goto(f"/operations/{id}")
        row = tab.page.locator(".gantt tbody tr").first
        name, since, took, bar = row.evaluate(
            "one => [...one.children].map(part => part.getBoundingClientRect().toJSON())"
        )

    assert name["right"] <= since["left"] < since["right"] <= took["left"]
    assert max(name["bottom"], took["bottom"]) <= bar["top"]
    assert bar["right"] <= width
    assert tab.faults == []


def test_a_log_is_copied_by_one_key(chromium: Chromium, web_on_sqlite: Web) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    id = run(shop, "nightly").id
    line = {"at": "2026-11-22T20:30:05+00:00", "level": "ERROR", "message": "no such host"}
    with web_on_sqlite.engine.begin() as connection:
        connection.execute(sa.insert(operation_logs).values(operation_id=id, lines=[line]))
    allowed = ["clipboard-read", "clipboard-write"]
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), permissions=allowed) as tab:
        tab.page.goto(f"/operations/{id}")
        tab.page.locator("[data-copy=log]").press("Enter")
        expect(tab.page.locator("[data-copy=log]")).to_have_text("Copied")
        copied = tab.page.evaluate("navigator.clipboard.readText()")

    assert copied.strip() == "21:30:05 no such host"
    assert tab.faults == []
