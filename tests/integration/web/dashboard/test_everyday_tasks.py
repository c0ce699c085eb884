"""What people do every day, in a real Chromium, by counted steps: clicks, and fields filled."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from models.tables import operation_logs
from services.status import pauses
from tests.factories import make_action, make_operation, update_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import TASK, make_failed

LAST_NIGHT = datetime(2026, 1, 5, 3, tzinfo=UTC)
REASON = "the run before was not over"


@pytest.fixture
def site(shop: Web) -> Web:
    """A server whose small app may send tasks."""
    return shop


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
    page: Page, site: Web
) -> None:
    page.goto(f"/actions?app={APP}")
    person = Steps(page)
    person.click("text=New action")
    person.click("text=Celery task")
    person.fill("label:has-text('Task') >> input[list=tasks]", TASK)
    person.choose("[name=rhythm]", "weekdays")
    person.fill("[name=time]", "07:30")
    person.fill("label:has-text('Retries') >> input", "2")
    person.fill("[data-hook=to]", "ann@example.com")
    expect(page.locator("#meaning")).to_contain_text("at 07:30 on Monday to Friday")
    assert not page.locator("#text").is_visible()
    person.click("button:text-is('Save')")
    expect(page.locator(".notice span")).to_have_text("close day is saved.")

    stored = site.client().get("/api/actions/close day", params={"app": APP}).json()["document"]
    assert person.taken == 8
    assert stored["operations"] == {"celery_task": {"task": TASK}}
    assert stored["when"] == {"cron_rule": "30 7 * * mon-fri", "timezone": "Europe/Paris"}
    assert stored["policy"]["retry"] == {"max_attempts": 3}
    assert stored["hooks"] == {"on_failure": [{"mail": "ann@example.com"}]}


def test_why_it_did_not_run_last_night_takes_two_steps(page: Page, site: Web) -> None:
    action = make_action(site.engine, name="backup")
    id = make_operation(site.engine, action, LAST_NIGHT)
    update_operation(site.engine, id, state="skipped", reason=REASON)
    page.goto("/apps/default/actions/backup")
    person = Steps(page)
    person.fill("[name=at]", f"{LAST_NIGHT + timedelta(hours=1):%Y-%m-%dT%H:%M}")
    person.click("button:text-is('Explain')")
    expect(page.locator("main p", has_text=REASON)).to_be_visible()

    assert person.taken == 2


def test_forty_failed_runs_are_run_again_in_three_steps(page: Page, site: Web) -> None:
    make_failed(site, 40)
    page.goto("/operations?state=failed")
    person = Steps(page)
    person.click("[data-all]")
    person.click(".chosen >> text=Retry")
    person.click("text=Yes, retry 40")
    expect(page.locator(".notice span")).to_have_text("40 runs are being retried.")

    assert person.taken == 3


def test_everything_is_paused_for_an_hour_in_two_steps(page: Page, site: Web) -> None:
    page.goto("/")
    person = Steps(page)
    person.click("text=Pause everything until")
    person.click(".menu button")
    expect(page.locator(".notice.warn")).to_contain_text("Everything is paused until in 59")

    (pause,) = pauses.list_pauses(site.opened).root
    assert pause.kind == "all"
    assert person.taken == 2


def test_a_change_is_made_compared_and_undone_in_four_steps(page: Page, site: Web) -> None:
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

    stored = site.client().get("/api/actions/nightly", params={"app": APP}).json()
    assert person.taken == 4
    assert stored["document"]["when"]["cron_rule"] == "0 3 * * *"


def test_a_traceback_is_one_step_from_the_list_of_failed_runs(page: Page, site: Web) -> None:
    (id,) = make_failed(site, 1)
    line = {"at": "2026-01-05T12:00:01Z", "level": "ERROR", "message": "Traceback (most recent"}
    with site.engine.begin() as connection:
        connection.execute(sa.insert(operation_logs).values(operation_id=id, lines=[line]))
    page.goto("/operations?state=failed")
    person = Steps(page)
    person.click("[data-row] a.name")
    expect(page.get_by_text("Traceback (most recent")).to_be_visible()

    assert person.taken == 1


def test_a_colleague_is_invited_in_three_steps(page: Page) -> None:
    page.goto("/")
    person = Steps(page)
    person.click(".who >> text=Invite")
    person.fill("[name=name]", "ann@example.com")
    person.click("main button:text-is('Invite')")
    expect(page.locator("#link")).to_contain_text("/sign-in/")

    assert person.taken == 3
