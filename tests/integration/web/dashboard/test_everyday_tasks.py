"""What people do every day, in a real Chromium, by counted steps: clicks, and fields filled."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from playwright.sync_api import Page, expect

from models.roles import Role
from models.tables import operation_logs
from services.status import pauses
from tests.browser import Chromium
from tests.factories import make_action, make_operation, update_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import TASK, make_failed

LAST_NIGHT = datetime(2026, 1, 5, 3, tzinfo=UTC)
REASON = "the run before was not over"


class Steps:
    """A person at a page; each click and each field is one step."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.taken = 0

    def click(self, selector: str) -> None:
        self.taken += 1
        self.page.click(selector)

    def fill(self, selector: str, value: str) -> None:
        self.taken += 1
        self.page.fill(selector, value)

    def choose(self, selector: str, value: str) -> None:
        self.taken += 1
        self.page.select_option(selector, value)


def test_a_task_each_weekday_with_retries_and_mail_takes_eight_steps_and_no_json(
    chromium: Chromium, shop: Web
) -> None:
    with chromium.tab(shop.url, shop.token()) as tab:
        tab.page.goto(f"/actions?app={APP}")
        person = Steps(tab.page)
        person.click("text=New action")
        person.click("text=Celery task")
        person.fill("label:has-text('Task') >> input[list=tasks]", TASK)
        person.choose("[name=rhythm]", "weekdays")
        person.fill("[name=time]", "07:30")
        person.fill("label:has-text('Retries') >> input", "2")
        person.fill("[data-hook=to]", "ann@example.com")
        expect(tab.page.locator("#meaning")).to_contain_text("at 07:30 on Monday to Friday")
        assert not tab.page.locator("#text").is_visible()
        person.click("button:text-is('Save')")
        expect(tab.page.locator(".notice span")).to_have_text("close day is saved.")

    stored = shop.client().get("/api/actions/close day", params={"app": APP}).json()["document"]
    assert person.taken == 8
    assert stored["operations"] == {"celery_task": {"task": TASK}}
    assert stored["when"] == {"cron_rule": "30 7 * * mon-fri", "timezone": "Europe/Paris"}
    assert stored["policy"]["retry"] == {"max_attempts": 3}
    assert stored["hooks"] == {"on_failure": [{"mail": "ann@example.com"}]}
    assert tab.faults == []


def test_why_it_did_not_run_last_night_takes_two_steps(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    action = make_action(web_on_sqlite.engine, name="backup")
    id = make_operation(web_on_sqlite.engine, action, LAST_NIGHT)
    update_operation(web_on_sqlite.engine, id, state="skipped", reason=REASON)
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        tab.page.goto("/apps/default/actions/backup")
        person = Steps(tab.page)
        person.fill("[name=at]", f"{LAST_NIGHT + timedelta(hours=1):%Y-%m-%dT%H:%M}")
        person.click("button:text-is('Explain')")
        expect(tab.page.locator("main p", has_text=REASON)).to_be_visible()

    assert person.taken == 2
    assert tab.faults == []


def test_forty_failed_runs_are_run_again_in_three_steps(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    make_failed(web_on_sqlite, 40)
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        tab.page.goto("/operations?state=failed")
        person = Steps(tab.page)
        person.click("[data-all]")
        person.click(".chosen >> text=Retry")
        person.click("text=Yes, retry 40")
        expect(tab.page.locator(".notice span")).to_have_text("40 runs are being retried.")

    assert person.taken == 3
    assert tab.faults == []


def test_everything_is_paused_for_an_hour_in_two_steps(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        tab.page.goto("/")
        person = Steps(tab.page)
        person.click("text=Pause everything until")
        person.click(".menu button")
        expect(tab.page.locator(".notice.warn")).to_contain_text("Everything is paused until in 59")

    (pause,) = pauses.list_pauses(web_on_sqlite.opened).root
    assert pause.kind == "all"
    assert person.taken == 2
    assert tab.faults == []


def test_a_change_is_made_compared_and_undone_in_four_steps(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/actions/nightly")
        person = Steps(page)
        person.click("text=Edit")
        person.fill("[name=time]", "10:15")
        expect(page.locator("#meaning")).to_contain_text("at 10:15")
        expect(page.locator("#meaning .diff .new")).to_contain_text("15 10 * * *")
        person.click("button:text-is('Save')")
        expect(page.locator(".notice span")).to_contain_text("nightly is now at revision 2.")
        expect(page.locator("pre .new").first).to_contain_text("15 10 * * *")
        person.click("button:text-is('Undo revision 2')")
        expect(page.locator(".notice span")).to_contain_text("nightly is now at revision 3.")

    stored = web_on_sqlite.client().get("/api/actions/nightly", params={"app": APP}).json()
    assert person.taken == 4
    assert stored["document"]["when"]["cron_rule"] == "0 3 * * *"
    assert tab.faults == []


def test_a_traceback_is_one_step_from_the_list_of_failed_runs(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    (id,) = make_failed(web_on_sqlite, 1)
    line = {"at": "2026-01-05T12:00:01Z", "level": "ERROR", "message": "Traceback (most recent"}
    with web_on_sqlite.engine.begin() as connection:
        connection.execute(sa.insert(operation_logs).values(operation_id=id, lines=[line]))
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        tab.page.goto("/operations?state=failed")
        person = Steps(tab.page)
        person.click("[data-row] a.name")
        expect(tab.page.get_by_text("Traceback (most recent")).to_be_visible()

    assert person.taken == 1
    assert tab.faults == []


def test_a_colleague_is_invited_in_three_steps(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(Role.ADMIN)) as tab:
        tab.page.goto("/")
        person = Steps(tab.page)
        person.click(".who >> text=Invite")
        person.fill("[name=name]", "ann@example.com")
        person.click("main button:text-is('Invite')")
        expect(tab.page.locator("#link")).to_contain_text("/sign-in/")

    assert person.taken == 3
    assert tab.faults == []
