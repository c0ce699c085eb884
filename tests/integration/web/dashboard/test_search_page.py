"""The page of the search everywhere."""

from models.roles import Role
from tests.celery_messages import celery_action
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_overview import ended


def test_the_page_shows_each_kind_with_a_way_to_it(web: Web, browse: Browse) -> None:
    celery_action(web.engine, name="mail people", owner="mail team")
    users = [{"id": "mail@example.com", "email": "mail@example.com"}]
    admin = web.client(Role.ADMIN, APP)
    admin.post(f"/api/apps/{APP}/users:import", json=users).raise_for_status()
    failed = ended(web, "nightly", "failed", error="no mail server")
    browser = browse(web)

    page = browser.get("/search?q=mail").text

    assert "mail people</a>" in page
    assert 'href="/actions?owner=mail+team"' in page
    assert f'href="/apps/{APP}?user=mail%40example.com#people"' in page
    assert f'href="/operations/{failed}"' in page
    assert 'href="/operations?reason=mail"' in page
    assert "Nothing has nope in its name" in browser.get("/search?q=nope").text
    assert browser.get(f"/search?q={failed}").headers["location"] == f"/operations/{failed}"
    assert browser.get("/search").status_code == 200
    assert browser.get(f"/search?q={'x' * 201}").status_code == 422
    people_of = browser.get(f"/apps/{APP}?user=mail%40example.com").text
    assert "ann@example.com" not in people_of
    assert "mail@example.com" in people_of
    assert browser.get(f"/apps/{APP}?user=nobody").status_code == 404
