"""What people do every day, in a real Chromium, by counted steps: clicks, and fields filled."""

import pytest
from playwright.sync_api import Page, expect

from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import TASK


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
