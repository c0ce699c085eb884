"""The pages of runs: one run, the list with its filters, and many of the list at once."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa

from models.tables import operation_logs
from services.apps import changes
from services.runs import run
from tests.celery_messages import TASK, celery_action
from tests.factories import make_action, make_operation, row_of, update_operation
from tests.integration.web.conftest import APP, Web, begin
from tests.integration.web.dashboard.conftest import Browse
from tests.ticks import HOUR
from tests.transactions import clock_of, execute

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_the_log_of_a_run_is_on_the_clock_of_the_viewer(site: Web, browser: httpx.Client) -> None:
    id = run(site.shop, "nightly").id
    said = {"level": "INFO", "message": "hello"}
    lines = [{"at": "2026-11-22T20:30:05.123+00:00", **said}, {"at": "unreadable", **said}]
    lines.append({"at": "9999-12-31T23:59:59Z", **said})
    execute(site.engine, sa.insert(operation_logs).values(operation_id=id, lines=lines))
    browser.cookies.set("mb_zone", "Asia/Tokyo")

    page = browser.get(f"/operations/{id}").text

    assert "05:30:05 hello" in page
    assert 'title="2026-11-22T20:30:05.123+00:00"' in page
    assert "unreadable hello" in page
    assert "9999-12-31T23:59:59Z hello" in page


def test_an_instant_in_a_sentence_is_on_the_clock_of_the_viewer(
    site: Web, browser: httpx.Client
) -> None:
    id = run(site.shop, "nightly").id
    error = "<b> not before 2026-01-05T20:30:00Z, 2026-02-31T20:30:00Z, 9999-12-31T23:59:59Z"
    ended(site, id, "failed", 4, error=error)
    browser.cookies.set("mb_zone", "Asia/Tokyo")

    page = browser.get(f"/operations/{id}").text

    shown = r'&lt;b&gt; not before <time [^>]*title="2026-01-05T20:30:00Z">[^<]* 05:30</time>, '
    assert re.search(shown + "2026-02-31T20:30:00Z, 9999-12-31T23:59:59Z</p>", page)


def test_a_run_of_a_task_shows_the_task_and_why_no_more_is_known(
    site: Web, browser: httpx.Client
) -> None:
    step = {"args": ["Paris", 3], "kwargs": {"dry_run": False}}
    action = celery_action(site.engine, step=step)
    id = make_operation(site.engine, action, NOON)
    update_operation(site.engine, id, state="handed_over", reason="no worker follows it")

    page = browser.get(f"/operations/{id}").text

    assert f"{TASK}</dd>" in page
    assert "[&#34;Paris&#34;, 3]" in page or '["Paris", 3]' in page
    assert "dry_run</dt>" in page
    assert "minutebook.follow(app)" in page
    assert "logged nothing" not in page


def ended(web: Web, id: UUID, state: str, seconds: float, **known: Any) -> None:
    """Let a run have begun in the past and ended after so many seconds."""
    begin(web, id, BEGAN)
    finished_at = BEGAN + timedelta(seconds=seconds)
    update_operation(web.engine, id, state=state, finished_at=finished_at, **known)


def test_the_chart_of_a_run_is_a_table_with_bars(site: Web, browser: httpx.Client) -> None:
    id = run(site.shop, "nightly").id
    until = (BEGAN + timedelta(seconds=4)).isoformat()
    step = {"name": "own_step", "started_at": BEGAN.isoformat(), "finished_at": until}
    steps = [{**step, "state": "failed", "error": "no"}, {"name": "next", "state": "waiting"}]
    ended(site, id, "failed", 4, steps=steps)

    page = browser.get(f"/operations/{id}").text

    rows = page.partition("<tbody")[2].partition("</tbody>")[0].split("</tr>")
    texts = [" ".join(re.sub(r"<.*?>", " ", one).split()) for one in rows]
    assert re.search(r"own step failed .* 12:00 4\.0 s no$", texts[-3])
    assert texts[-2] == "next waiting"
    assert [one.count("<svg aria-hidden") for one in rows[-3:]] == [1, 0, 0]


def test_the_progress_of_a_run_is_shown_once_there_is_some(site: Web, browse: Browse) -> None:
    id, browser = run(site.shop, "nightly").id, browse(site)
    now = clock_of(site.engine)

    def shown(progress: float, total: int | None = None) -> tuple[bool, bool]:
        begin(site, id, now, progress=progress, processed=3, total=total)
        page = browser.get(f"/operations/{id}", headers={"HX-Request": "true"}).text
        return "<progress" in page, "3 of 4" in page

    assert [shown(0.0), shown(0.5, total=4)] == [(False, False), (True, True)]


def test_runs_are_found_by_their_error_in_the_last_days(site: Web, browser: httpx.Client) -> None:
    action = celery_action(site.engine)
    found, old, other = (
        make_operation(site.engine, action, NOON + hour * HOUR) for hour in range(3)
    )
    for id in (found, old, other):
        ended(site, id, "failed", 1, error="b" if id == other else "no such host")
    update_operation(site.engine, old, recorded_at=clock_of(site.engine) - timedelta(days=8))

    page = browser.get("/operations?reason=such+host").text

    assert f'href="/operations/{found}"' in page
    assert not any(f'href="/operations/{id}"' in page for id in (old, other))
    assert "in the runs of the last 7 days" in page
    assert f'href="/operations/{old}"' in browser.get("/operations?reason=host&since=P9D").text


def test_a_run_that_ended_in_part_says_first_which_step_did_not(
    site: Web, browser: httpx.Client
) -> None:
    id = run(site.shop, "nightly").id
    ended(site, id, "partial", 4, error="other_step: a.csv is gone")

    page = browser.get(f"/operations/{id}").text

    verdict = page.partition('<section class="verdict')[2].partition("</section>")[0]
    assert "other_step: a.csv is gone" in verdict


def test_the_list_and_the_api_name_the_small_app_of_each_run(site: Web, browse: Browse) -> None:
    changes.create(site.opened, ("", {"name": "other", "zone": "UTC"}))
    run(site.shop, "nightly")
    everything, bound = browse(site), browse(site, app=APP)
    cell = re.compile(r"<td>shop</td>")
    api = site.client()

    assert cell.search(everything.get("/operations").text)
    assert not cell.search(everything.get("/operations", params={"app": APP}).text)
    assert not cell.search(bound.get("/operations").text)
    assert APP in api.get("/api/operations", params={"all_apps": True}).text
    assert APP not in api.get("/api/operations").text


def test_an_action_is_found_by_its_uid_whatever_its_small_app(site: Web) -> None:
    ran = run(site.shop, "nightly")
    everything, bound = site.client(), site.client(app=APP)
    operation = everything.get(f"/api/operations/{ran.id}").json()

    wanted = {"action": operation["action_uid"]}
    for client in (everything, bound):
        page = client.get("/api/operations", params=wanted).json()["items"]
        assert [one["id"] for one in page] == [operation["id"]]


def make_failed(web: Web, count: int) -> list[str]:
    """Return the ids of failed runs of an action of `default`, the last recorded first."""
    action = make_action(web.engine, name="import orders")
    ids = [make_operation(web.engine, action, BEGAN + number * HOUR) for number in range(count)]
    for id in ids:
        ended(web, id, "failed", 1, error="no such host")
    return [str(id) for id in ids[::-1]]


@pytest.mark.parametrize(("more", "count"), [({}, 2), ({"all": "1"}, 3)], ids=["some", "all"])
def test_runs_are_retried_after_a_plan_and_no_others(
    site: Web, browser: httpx.Client, more: dict[str, str], count: int
) -> None:
    ids = make_failed(site, 3)
    path, form = "/operations?state=failed", {"verb": "retry"}

    asked = browser.post(path, data={**form, "id": ids[:2], **more})
    planned = re.findall(r'name="id" value="(.*?)"', asked.text)
    before = row_of(site.engine, UUID(ids[0]))["state"]
    done = browser.post(path, data={**form, "id": planned, "sure": "1"}, follow_redirects=True)

    assert f"Retry {count} runs?" in asked.text
    assert (before, sorted(planned)) == ("failed", sorted(ids[:count]))
    assert f"{count} runs are being retried." in done.text
    left = [row_of(site.engine, UUID(id))["state"] for id in ids[count:]]
    assert left == ["failed"] * (3 - count)


@pytest.mark.parametrize("digits", [8, 36])
def test_an_id_in_the_search_opens_its_run(site: Web, browse: Browse, digits: int) -> None:
    (id,) = make_failed(site, 1)
    whole, own = browse(site), browse(site, app=APP)

    found, theirs = (one.get("/operations", params={"q": id[:digits]}) for one in (whole, own))

    assert (found.status_code, found.headers["location"]) == (303, f"/operations/{id}")
    assert theirs.status_code == 200
