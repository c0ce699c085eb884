"""The pages of runs: one run, and the list with its filters."""

from datetime import UTC, datetime

import sqlalchemy as sa

from models.tables import operation_logs
from tests.celery_messages import TASK, celery_action
from tests.factories import make_operation, update_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse, csrf_of
from views.runs import run

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_the_log_of_a_run_is_on_the_clock_of_the_viewer(web_on_sqlite: Web, browse: Browse) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    id = run(shop, "nightly").id
    said = {"level": "INFO", "message": "hello"}
    lines = [{"at": "2026-11-22T20:30:05.123+00:00", **said}, {"at": "unreadable", **said}]
    with web_on_sqlite.engine.begin() as connection:
        connection.execute(sa.insert(operation_logs).values(operation_id=id, lines=lines))
    browser = browse(web_on_sqlite)
    browser.cookies.set("mb_zone", "Asia/Tokyo")

    page = browser.get(f"/operations/{id}").text

    assert "05:30:05 hello" in page
    assert "unreadable hello" in page


def test_a_wrong_address_is_told_in_words_of_the_page(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite)
    data = {"csrf": csrf_of(browser), "to": "ann"}

    refused = browser.post(f"/apps/{APP}/templates/hello/send-test", data=data)

    assert refused.status_code == 409
    assert "&#39;ann&#39; is not an e-mail address" in refused.text
    assert "--" not in refused.text.partition("<main")[2]


def test_what_a_filter_cannot_read_is_not_an_unknown_page(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite)
    asked = {"since": "soon"}, {"action": "none"}

    answers = [browser.get("/operations", params={"app": APP, **one}) for one in asked]

    assert [one.status_code for one in answers] == [422, 404]


def test_a_run_of_a_task_shows_the_task_and_why_no_more_is_known(
    web_on_sqlite: Web, browse: Browse
) -> None:
    step = {"args": ["Paris", 3], "kwargs": {"dry_run": False}}
    action = celery_action(web_on_sqlite.engine, step=step)
    id = make_operation(web_on_sqlite.engine, action, NOON)
    update_operation(web_on_sqlite.engine, id, state="handed_over", reason="no worker follows it")

    page = browse(web_on_sqlite).get(f"/operations/{id}").text

    assert f"{TASK}</dd>" in page
    assert "[&#34;Paris&#34;, 3]" in page or '["Paris", 3]' in page
    assert "dry_run</dt>" in page
    assert "minutebook.follow(app)" in page
    assert "It reported no steps" not in page
    assert "logged nothing" not in page
