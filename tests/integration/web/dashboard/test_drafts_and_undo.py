"""What is not lost: a draft whose session ended, a change that one takes back, a deleted past."""

import json
import re
from html import unescape
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.tables import actions
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from web.dashboard.action import ActionQuery, answers
from web.dashboard.session import Visitor

HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
ANSWER = re.compile(r"<strong>.*?</p>")
ACTION = f"/apps/{APP}/actions/nightly"
DRAFT = '{"name": "mine", "oops'


def fields(page: httpx.Response, form: str) -> dict[str, str]:
    """Return the hidden fields of the form that posts to a path."""
    _, _, rest = page.text.partition(f'action="{form}"')
    found = HIDDEN.findall(rest.partition("</form>")[0])
    return {name: unescape(value) for name, value in found}


def test_a_draft_outlives_its_session(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite)
    browser.cookies.clear()

    asked = browser.post(f"/apps/{APP}/store", data={"document": DRAFT})
    kept = fields(asked, "/sign-in")
    offered = browser.post("/sign-in", data={**kept, "token": web_on_sqlite.token()})
    went_on = browser.post(f"/apps/{APP}/draft", data=fields(offered, f"/apps/{APP}/draft"))

    assert (asked.status_code, offered.status_code, went_on.status_code) == (401, 200, 200)
    assert "mine" in kept["document"]
    assert "It is not saved yet." in went_on.text
    assert f">{DRAFT}</textarea>" in unescape(went_on.text)


@pytest.mark.parametrize(("verb", "back"), [("pause", "resume"), ("resume", "pause")])
def test_a_change_is_taken_back_by_the_button_beside_its_notice(
    web_on_sqlite: Web, browse: Browse, verb: str, back: str
) -> None:
    browser = browse(web_on_sqlite)
    if verb == "resume":
        browser.post(f"{ACTION}/pause")
        browser.get("/actions")
    browser.post(f"{ACTION}/{verb}")
    page = browser.get(ACTION)
    notice = page.text.partition('class="notice"')[2].partition("</div>")[0]

    assert f'action="{ACTION}/{back}"' in notice
    assert browser.post(f"{ACTION}/{back}").status_code == 303
    shown = web_on_sqlite.client().get("/api/actions/nightly", params={"app": APP}).json()
    assert shown["active"] is (verb == "pause")


@pytest.mark.parametrize(
    "cookie",
    [
        pytest.param(["Done.", [f"{ACTION}/delete", "Go on", {}]], id="without_seal"),
        pytest.param(["Done.", [f"{ACTION}/delete", "Go on", {}], "0" * 64], id="wrong_seal"),
        pytest.param(["Done.", [f"{ACTION}/delete", "Go on", {}], "\u00e9"], id="strange_seal"),
        pytest.param(["Done.", 7, {}], id="no_button"),
        pytest.param(["half of a character: \ud800", None, ""], id="not_a_text"),
    ],
)
def test_a_cookie_of_another_program_makes_no_button(
    web_on_sqlite: Web, browse: Browse, cookie: object
) -> None:
    browser = browse(web_on_sqlite)
    browser.cookies.set("mb_notice", quote(json.dumps(cookie)))

    page = browser.get("/actions")

    assert (page.status_code, f"{ACTION}/delete" in page.text) == (200, False)


@pytest.mark.parametrize(("role", "plans"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
def test_who_may_not_backfill_makes_the_server_plan_none(
    web_on_sqlite: Web, role: Role, plans: bool
) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    visitor = Visitor(shop, shop, role, APP, "")
    backwards = ActionQuery(**{"from": "2026-07-02T00:00:00Z", "to": "2026-07-01T00:00:00Z"})

    fault = answers(visitor, "nightly", backwards)["fault"]

    assert ("the range begins at" in fault) is plans


def test_a_draft_that_is_too_long_is_refused_without_a_session_too(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite, role=None)
    answer = browser.post(f"/apps/{APP}/store", data={"document": "x" * (2**20 + 1)})

    assert answer.status_code == 413


def test_several_changes_are_taken_back_together(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite)
    client = web_on_sqlite.client()
    uid = client.get("/api/actions/nightly", params={"app": APP}).json()["uid"]
    data = {"verb": "pause", "uid": [uid]}

    browser.post("/actions", data=data)
    notice = browser.get("/actions").text.partition('class="notice"')[2]

    assert f'name="uid" value="{uid}"' in notice.partition("</div>")[0]
    assert 'name="verb" value="resume"' in notice.partition("</div>")[0]


def test_a_deleted_action_keeps_its_page_and_can_be_created_again(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite)
    client = web_on_sqlite.client()
    uid = client.get("/api/actions/nightly", params={"app": APP}).json()["uid"]

    deleted = browser.post(f"{ACTION}/delete", data={"sure": "1"})
    listed = browser.get(deleted.headers["Location"])
    page = browser.get(f"/apps/{APP}/actions/{uid}")

    assert f"/apps/{APP}/actions/{uid}/restore" in listed.text
    assert (page.status_code, browser.get(ACTION).status_code) == (200, 404)
    assert "Its history stays; it never runs again." in page.text
    assert "Run now" not in page.text
    assert browser.post(f"/apps/{APP}/actions/{uid}/restore").status_code == 303
    made = client.get("/api/actions/nightly", params={"app": APP}).json()
    assert made["uid"] != uid
    assert made["document"]["when"]["cron_rule"] == "0 3 * * *"


def test_a_field_without_an_offset_is_read_in_the_viewers_zone(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite)
    browser.cookies.set("mb_zone", "Asia/Tokyo")

    local = browser.get(ACTION, params={"at": "2026-07-01T10:00"}).text
    written = browser.get(ACTION, params={"at": "2026-07-01T03:00:00+02:00"}).text
    wrong = browser.get(ACTION, params={"at": "soon"}).text

    assert ANSWER.findall(local) == ANSWER.findall(written) != []
    assert 'value="2026-07-01T10:00:00"' in written
    assert "the instant 'soon': is not an instant" in unescape(wrong)


def test_a_message_names_what_the_page_offers_and_no_command(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite)

    unknown = browser.get(f"/apps/{APP}/actions/none").text
    backwards = browser.get(
        ACTION, params={"from": "2026-07-02T00:00", "to": "2026-07-01T00:00"}
    ).text

    assert "look for it among the actions" in unknown
    assert "the range begins at" in backwards
    for text in (unknown, backwards):
        assert "`minutebook" not in text
        assert "--from" not in text


def test_a_page_of_an_error_has_the_navigation(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite)

    for path in ("/nothing", f"/apps/{APP}/actions/none", "/operations/none"):
        answer = browser.get(path)
        assert (answer.status_code, "/actions" in answer.text) == (404, True)
    assert "<nav" not in browse(web_on_sqlite, role=None).get("/nothing").text


def test_one_that_cannot_be_resumed_does_not_stop_the_others(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite)
    client = web_on_sqlite.client()
    found = client.get("/api/actions", params={"app": APP}).json()
    chosen = {"uid": [one["uid"] for one in found]}
    browser.post("/actions", data={**chosen, "verb": "pause"})
    with web_on_sqlite.engine.begin() as connection:
        wrong = '{"name": "maintenance", "when": {}, "operations": {}}'
        first = sa.update(actions).where(actions.c.name == "maintenance").values(document=wrong)
        connection.execute(first.where(actions.c.uid == UUID(found[0]["uid"])))

    done = browser.post("/actions", data={**chosen, "verb": "resume"})
    notice = browser.get("/actions").text.partition('class="notice"')[2].partition("</div>")[0]

    assert (found[0]["name"], done.status_code) == ("maintenance", 303)
    assert "Resumed. One was refused: " in notice
    after = client.get("/api/actions", params={"app": APP}).json()
    assert [one["active"] for one in after] == [False, True]
