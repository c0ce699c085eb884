"""The pages of Django's admin in a real Chromium: PICTURES=docs/img writes one there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from models.roles import Role
from tests.browser import Chromium, Tab
from tests.django_project import ACTIONS, PASSWORD, Browser
from tests.integration.web.conftest import APP, Web
from tests.integration.web.test_django import site, staff

__all__ = ["site", "staff"]


@pytest.fixture
def page(chromium: Chromium, site: Web, staff: Callable[[str], Browser]) -> Iterator[Tab]:
    """A page of the admin, at which an admin is signed in."""
    url = str(staff("admin").http.base_url)
    with chromium.blank(1100, base_url=url) as blank:
        blank.goto(ACTIONS)
        blank.fill("#id_username", "admin")
        blank.fill("#id_password", PASSWORD)
        blank.press("#id_password", "Enter")
        blank.wait_for_selector("#result_list")
        yield Tab(blank)


def test_an_action_is_made_by_fields(page: Tab, site: Web) -> None:
    its = page.page
    its.click("text=Add scheduled action")
    its.fill("[name=name]", "remind of order 42")
    its.fill("[name=task]", "shop.remind")
    its.fill("[name=rule]", "0 7 * * mon-fri")
    its.click("text=Show arguments")
    its.wait_for_selector("[name=argument_order]")
    its.fill("[name=argument_order]", "42")
    its.fill("[name=notify]", "ann@example.com")
    its.click("text=Show arguments")
    its.wait_for_selector("text=It would be created")
    its.click("text=Save")
    its.wait_for_selector("text=Run now")
    its.click("text=Run now")
    its.wait_for_selector("text=Last run")
    if folder := os.environ.get("PICTURES"):
        its.screenshot(path=str(Path(folder) / "django-action.png"), full_page=True)
    its.click("text=Pause")
    its.wait_for_selector("text=Resume")

    found = site.client(Role.VIEWER, APP).get("/api/actions/remind of order 42").json()
    step = {"task": "shop.remind", "kwargs": {"order": 42}}
    assert (found["document"]["operations"], found["active"]) == ({"celery_task": step}, False)
    assert page.faults == []
