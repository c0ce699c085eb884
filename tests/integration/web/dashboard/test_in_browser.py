"""The pages in a real Chromium: how they look, what one can do there, and what must not get in.

PICTURES=docs/img writes the pictures of the README there.
"""

import os
import random
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from models.roles import Role
from models.sql import upsert
from models.tables import action_cursor, action_state, operation_logs, operations
from services import changes
from services.runs import run
from tests.browser import Chromium, Tab
from tests.factories import row_of, update_operation
from tests.integration.web.conftest import APP, NIGHTLY, Web, begin
from tests.integration.web.test_overview import tick
from tests.ticks import HOUR, MINUTE
from tests.transactions import act, clock_of, execute

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
def hostile(site: Web) -> list[str]:
    """Text that would break out, in each field that pages show; return every page."""
    [made] = changes.add(site.shop, [{**NIGHTLY, "name": HOSTILE, "owner": HOSTILE}]).root
    id = run(site.shop, str(made.uid)).id
    now = clock_of(site.engine)
    begin(site, id, now - timedelta(seconds=5), heartbeat_at=now, worker=HOSTILE)
    said = dict.fromkeys(("error", "reason", "message", "triggerer"), HOSTILE)
    steps = [{"name": HOSTILE, "state": "failed", "error": HOSTILE}]
    ends = {"finished_at": now, "steps": steps, "result": {HOSTILE: HOSTILE}}
    update_operation(site.engine, id, state="failed", **said, **ends)
    action = f"/apps/shop/actions/{made.uid}"
    return [*EVERY_PAGE, action, f"{action}/edit", f"/operations/{id}"]


@pytest.mark.parametrize("opens", [{"width": 390}, {"width": 1440}], ids=["390", "1440"])
def test_every_page_is_sound(tab: Tab, page: Page, hostile: list[str]) -> None:
    for path in hostile:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        assert tab.serious() == []
        page.emulate_media(color_scheme="dark")
        assert tab.serious("color-contrast") == []
        page.emulate_media(color_scheme="light")

    assert HOSTILE in page.inner_text("main")


def test_no_page_loses_what_it_shows(tab: Tab, page: Page, hostile: list[str]) -> None:
    wide, lost = [], []
    for path in hostile:
        page.goto(path)
        for width, text in SIZES:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("size => { document.documentElement.style.fontSize = size }", text)
            wide += [(path, width)] if tab.is_wider_than_the_screen() else []
            lost += tab.lost()

    assert (wide, lost) == ([], [])


def test_an_action_is_made_run_and_cancelled_without_leaving_the_browser(page: Page) -> None:
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

    page.click("text=Run now")
    expect(page).to_have_url(re.compile("/operations/"))
    state = page.locator("#live .verdict h2")
    expect(state).to_have_text(re.compile("Pending|Queued"))
    page.click("text=Cancel")
    expect(state).to_have_text("Cancelled")


def test_several_actions_are_found_and_changed_at_once(page: Page, site: Web) -> None:
    document = {"when": {"every": 3600}, "operations": {"maintenance": {}}}
    changes.add(site.shop, [{"name": f"report {number}", **document} for number in range(60)])
    rows, said = page.locator("tbody tr"), page.locator(".notice span")
    page.goto("/actions")
    expect(rows).to_have_count(50)
    page.click("text=Next page")
    page.goto("/actions?q=report")
    page.check("[data-all]")
    page.check("text=all that match (60)")
    page.click(".chosen >> text=Pause")
    expect(page.locator("main p").first).to_have_text("Pause 60 actions?")
    page.click("text=Yes, do it")
    expect(said).to_contain_text("60 actions are paused")
    page.fill("input[type=search]", "report 1")
    expect(rows).to_have_count(15)
    page.check("[data-all]")
    page.click(".chosen >> text=Resume")
    expect(said).to_contain_text("15 actions are resumed")
    expect(page.locator("input[type=search]")).to_have_value("report 1")
    page.check("[data-all]")
    with page.expect_event("dialog") as asked:
        page.click(".chosen >> text=Delete")
    assert asked.value.message.splitlines()[1:4] == ["report 1", "report 10", "report 11"]
    expect(said).to_contain_text("15 actions are deleted")
    expect(rows).to_have_count(0)


def test_the_way_back_from_a_search_is_the_page_before(page: Page) -> None:
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


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("opens", [{"width": 390}], ids=["phone"])
def test_a_live_page_leaves_chart_and_focus_where_the_reader_put_them(page: Page) -> None:
    page.goto("/?view=time")
    chart, lane = page.locator(".scroll.timeline"), page.locator(".lane .named a").first
    assert chart.evaluate("one => one.scrollLeft") > 0
    lane.focus()
    chart.evaluate("one => { one.scrollLeft = 7 }")
    page.evaluate(SWAPPED)

    expect(lane).to_be_focused()
    assert chart.evaluate("one => one.scrollLeft") == 7


def test_the_keyboard_is_enough(page: Page) -> None:
    keyboard = page.keyboard
    page.goto("/")
    keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    keyboard.press("g")
    keyboard.press("a")
    expect(page).to_have_url(re.compile("/actions$"))
    # The keys of the new page work once its scripts have run.
    page.wait_for_load_state()
    page.locator("input[type=search]").focus()
    keyboard.type("nightly")
    expect(page).to_have_url(re.compile("q=nightly"))
    expect(page.locator("[data-row]")).to_have_count(1)
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("nightly")


COPIES = {"permissions": ["clipboard-read", "clipboard-write"]}


@pytest.mark.parametrize("opens", [COPIES], ids=["copies"])
def test_a_log_is_copied_by_one_key(page: Page, site: Web) -> None:
    id = run(site.shop, "nightly").id
    line = {"at": "2026-11-22T20:30:05+00:00", "level": "ERROR", "message": "no such host"}
    execute(site.engine, sa.insert(operation_logs).values(operation_id=id, lines=[line]))
    page.goto(f"/operations/{id}")
    page.locator("[data-copy=log]").press("Enter")
    expect(page.locator("[data-copy=log]")).to_have_text("Copied")

    assert page.evaluate("navigator.clipboard.readText()").strip() == "21:30:05 no such host"


ERROR = "SMTP server mail.example.com:587 refused the connection after 3 tries"
# Name, rule, hours between two runs, days of history, and the states of its last runs.
ACTIONS: tuple[tuple[str, dict[str, Any], float, int, tuple[str, ...]], ...] = (
    ("refresh rates", {"cron_rule": "*/30 * * * *"}, 0.5, 4, ("success",)),
    ("nightly import", {"cron_rule": "30 2 * * *"}, 24, 300, ("success",)),
    ("invoice reminders", {"cron_rule": "0 */4 * * *"}, 4, 300, ("failed", "failed", "failed")),
    ("backup", {"cron_rule": "20 */3 * * *"}, 3, 200, ("missed", "success")),
    ("weekly update", {"cron_rule": "0 7 * * mon"}, 168, 300, ("success",)),
)


@pytest.fixture
def lived_in(site: Web) -> Web:
    client, chance = site.client(Role.ADMIN, APP), random.Random(4)
    now = clock_of(site.engine).replace(second=0, microsecond=0)
    for name, when, hours, days, last in ACTIONS:
        changes.add(site.shop, [{**NIGHTLY, "name": name, "owner": "billing", "when": when}])
        coming = client.get(f"/api/actions/{name}/next").json()[0]["utc"]
        next_at = datetime.fromisoformat(coming)
        id = run(site.shop, name).id
        row = row_of(site.engine, id)
        count = int(days * 24 / hours)
        odd = chance.choices(("success", "failed", "partial"), (96, 2, 2), k=count)
        states = [*odd[len(last) :], *reversed(last)]
        instants = [next_at - number * hours * HOUR for number in range(count, 0, -1)]
        rows = [row | _past(at, state, chance) for at, state in zip(instants, states, strict=True)]
        execute(site.engine, sa.insert(operations), rows)
        succeeded = [one for one in rows if one["state"] == "success"]
        in_row = sum(state == "failed" for state in last)
        known = {
            "action_uid": row["action_uid"],
            "subject": "",
            "last_state": last[0] if last[0] != "missed" else "success",
            "last_run_at": rows[-1]["finished_at"],
            "last_success_at": succeeded[-1]["finished_at"],
            "run_number": count,
            "failures_in_row": in_row,
            "bad_runs_in_a_row": in_row,
        }
        act(site.engine, upsert, action_state, [known])
        cursor = sa.update(action_cursor).where(action_cursor.c.action_uid == row["action_uid"])
        execute(site.engine, cursor.values(next_occurrence_at=next_at))
        if name != ACTIONS[-1][0]:
            execute(site.engine, sa.delete(operations).where(operations.c.id == id))
    sends = {"progress": 0.61, "message": "sending 6,120 of 10,000 mails"}
    begin(site, id, now - 2 * MINUTE, heartbeat_at=now, eta_at=now + 2 * MINUTE, **sends)
    tick(site, recorded=2, sent=2, decided=5)
    return site


def _past(at: datetime, state: str, chance: random.Random) -> dict[str, Any]:
    """Return what a run of the past knows, beside what all of its action do."""
    has_run, has_failed = state != "missed", state in {"failed", "partial"}
    times = ("sent_at", "first_started_at", "started_at")
    return {
        **dict.fromkeys(("occurrence_at", "recorded_at", "not_before"), at),
        **dict.fromkeys(times, at if has_run else None),
        "finished_at": at + timedelta(seconds=chance.gammavariate(4, 2)),
        "id": uuid4(),
        "state": state,
        "reason": None if has_run else "too late",
        "triggerer": "Scheduled action",
        "cause": "schedule",
        "worker": "quick@shop:1" if has_run else None,
        "error": ERROR if has_failed else None,
    }


@pytest.mark.parametrize(("scheme", "suffix"), [("light", ""), ("dark", "-dark")])
def test_pictures(
    chromium: Chromium, lived_in: Web, tmp_path: Path, scheme: Any, suffix: str
) -> None:
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    with chromium.tab(lived_in.url, lived_in.token(), color_scheme=scheme) as tab:
        page = tab.page
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto("/")
        expect(page.locator(".verdict h1")).to_have_text("2 actions need attention.")
        page.screenshot(path=folder / f"dashboard{suffix}.png")
        page.click("main a:text-is('invoice reminders') >> nth=0")
        expect(page.locator(".verdict h2")).to_have_text("Failed 3 times in a row")
        expect(page.locator(".verdict a")).to_have_text(ERROR)
        expect(page.locator(".verdict button")).to_have_text("Retry")
        page.screenshot(path=folder / f"dashboard-action{suffix}.png")

    assert tab.faults == []
    assert (folder / f"dashboard{suffix}.png").stat().st_size > 10_000
