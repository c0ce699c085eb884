"""Two who edit one action, of which neither overwrites the other unasked; and its revisions."""

import json
import re
from html import unescape

import httpx
import pytest

from models.roles import Role
from runtime.config import Settings
from services import changes, tokens
from services.apps import trust
from tests.celery_messages import allowing, follow_by_name
from tests.integration.web.conftest import APP, NIGHTLY, Serve, SiteWith, Web, with_shop
from tests.integration.web.dashboard.conftest import Browse
from web.dashboard.texts import person

FIELDS = re.compile(r'<input type="hidden" name="(uid|revision)" value="([^"]*)">')
OVERWRITE = re.compile(r'<button name="revision" value="(\d+)"')


def document(hour: int) -> str:
    return json.dumps({**NIGHTLY, "when": {"cron_rule": f"0 {hour} * * *"}})


def opened(browser: httpx.Client) -> dict[str, str]:
    """Return the hidden fields of the form that edits `nightly`."""
    return dict(FIELDS.findall(browser.get(f"/apps/{APP}/actions/nightly/edit").text))


def test_a_change_made_meanwhile_is_overwritten_only_when_asked(
    site: Web, browser: httpx.Client
) -> None:
    first, second = opened(browser), opened(browser)

    def save(fields: dict[str, str], hour: int) -> httpx.Response:
        values = {**fields, "document": document(hour)}
        return browser.post(f"/apps/{APP}/store", data=values)

    assert save(first, 4).status_code == 303
    refused = save(second, 5)
    again = save(dict(FIELDS.findall(refused.text)), 5)

    assert (refused.status_code, again.status_code) == (422, 422)
    assert "The action was changed while you edited it." in again.text
    wanted = OVERWRITE.search(again.text)
    assert wanted is not None
    assert save({**second, "revision": wanted[1]}, 5).status_code == 303
    shown = site.client().get(f"/api/actions/nightly?app={APP}").json()
    assert (shown["revision"], shown["document"]["when"]["cron_rule"]) == (3, "0 5 * * *")


def test_a_change_is_undone_by_the_document_before(site: Web, browser: httpx.Client) -> None:
    browser.post(f"/apps/{APP}/store", data={**opened(browser), "document": document(4)})
    page = browser.get(f"/apps/{APP}/actions/nightly").text
    form = page.partition("Undo revision 2")[0].rpartition("<form")[2]
    fields = re.findall(r'name="(\w+)" value="([^"]*)"', form)

    browser.post(f"/apps/{APP}/store", data={name: unescape(value) for name, value in fields})

    shown = site.client().get(f"/api/actions/nightly?app={APP}").json()
    assert (shown["revision"], shown["document"]["when"]["cron_rule"]) == (3, "0 3 * * *")


@pytest.mark.parametrize(
    ("cookie", "zone"),
    [
        pytest.param("Asia/Tokyo", "Asia/Tokyo", id="of_the_browser"),
        pytest.param("Asia/Tokio", "Europe/Paris", id="of_the_small_app"),
    ],
)
def test_a_new_action_begins_with_a_zone(browser: httpx.Client, cookie: str, zone: str) -> None:
    browser.cookies.set("mb_zone", cookie)

    page = browser.get(f"/apps/{APP}/new-action")

    assert f"&#34;timezone&#34;: &#34;{zone}&#34;" in page.text


def test_the_next_occurrences_stand_beside_the_form(browser: httpx.Client) -> None:
    text = browser.post(
        f"/apps/{APP}/check", data={**opened(browser), "document": document(4)}
    ).text

    assert text.partition("Next runs")[2].partition("</ul>")[0].count("<li>") == 5


def test_an_older_revision_opens_in_the_form(site: Web, browse: Browse) -> None:
    browser = browse(site)
    browser.post(f"/apps/{APP}/store", data={**opened(browser), "document": document(4)})

    page = browser.get(f"/apps/{APP}/actions/nightly/edit?revision=1")
    listed = browser.get(f"/apps/{APP}/actions/nightly").text

    assert "the document of revision 1" in page.text
    assert dict(FIELDS.findall(page.text))["revision"] == "2"
    assert "/edit?revision=1" in listed
    assert "/edit?revision=2" not in listed
    viewer = browse(site, role=Role.VIEWER).get(f"/apps/{APP}/actions/nightly").text
    assert "/edit?revision=1" not in viewer


def test_a_test_goes_only_where_the_small_app_may_tell(browser: httpx.Client) -> None:
    sent = {"action": "nightly"}
    path = f"/apps/{APP}/try-hook"

    chat = browser.post(path, data={**sent, "kind": "notify", "to": "ops"})
    secret = browser.post(path, data={**sent, "kind": "webhook", "to": "env:SCHED_DB_URL"})
    private = browser.post(path, data={**sent, "kind": "webhook", "to": "http://127.0.0.1:1/"})
    unknown = browser.post(path, data={**sent, "kind": "pager", "to": "nightly"})

    assert "not for this restricted small app" in chat.text
    assert "the test was not taken" in secret.text
    assert "the test was not taken" in private.text
    assert unknown.status_code == 409


def test_the_form_offers_the_tasks_that_the_small_app_may_send(
    settings: Settings, serve: Serve, browse: Browse
) -> None:
    web = with_shop(serve(allowing(settings, "shop.*")))
    trust.trust_app(web.opened, APP, trust.TrustChange(trusted=True))
    step = {"task": "shop.tasks.sent", "queue": "night"}
    changes.add(web.shop, [{**NIGHTLY, "name": "sends", "operations": {"celery_task": step}}])
    follow_by_name(web.engine, "shop.tasks.followed", "hr.tasks.pay")

    page = browse(web).get(f"/apps/{APP}/new-action").text

    assert offered(page, "tasks") == ["shop.tasks.followed", "shop.tasks.sent"]
    assert offered(page, "queues") == ["night"]


def offered(page: str, name: str) -> list[str]:
    listed = page.partition(f'<datalist id="{name}">')[2].partition("</datalist>")[0]
    return re.findall(r'<option value="([^"]*)"', listed)


def test_tests_of_hooks_count_as_mails(site_with: SiteWith, browse: Browse) -> None:
    web = site_with(limits={"mails": 1})
    browser = browse(web)
    sent = {"action": "nightly", "kind": "mail", "to": "ann@example.com"}

    first, second = (browser.post(f"/apps/{APP}/try-hook", data=sent).text for _ in range(2))

    (mail,) = (web.opened.settings.home / "mail").rglob("*.eml")
    audited = web.client().get("/api/audit", params={"app": APP})
    assert "Sent." in first
    assert "a test: nothing ran" in mail.read_text()
    assert '"object":"ann@example.com"' in audited.text
    assert "SCHED_LIMITS_MAILS" in second


def test_the_page_of_an_action_shows_a_page_of_its_revisions(
    web: Web, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2, 8):
        changes.apply(web.shop, [{**NIGHTLY, "description": f"revision {number}"}])
    monkeypatch.setattr("services.actions.page.MOST_REVISIONS", 3)
    browser = browse(web)

    def shown(query: str) -> tuple[list[int], list[str]]:
        """The revisions of a page, and what they changed."""
        text = browser.get(f"/apps/{APP}/actions/nightly{query}").text
        listed = text[text.index('id="document"') :]
        numbers = re.findall(r"<summary>revision (\d+)", listed, re.IGNORECASE)
        return [int(one) for one in numbers], re.findall(r"\?before=\d+#document", listed)

    assert shown("") == ([7, 6, 5], ["?before=5#document"])
    assert shown("?before=5") == ([4, 3, 2], ["?before=2#document"])
    assert shown("?before=2") == ([1], [])
    # The oldest of a page is compared with the one before it, which is not shown.
    page = browser.get(f"/apps/{APP}/actions/nightly").text
    changed = re.findall(r'<span class="(?:old|new)">([^<]*)</span>', page)
    assert [line for line in changed if "revision 5" in line]
    assert not [line for line in changed if "cron_rule" in line]


def test_a_revision_names_the_person_of_its_token(web: Web, browse: Browse) -> None:
    ann = tokens.create(web.opened, Role.EDITOR, None, "Ann").token
    browser = browse(web, token=ann)
    document = json.dumps({**NIGHTLY, "description": "hers"})
    values = {"document": document, "uid": "nightly", "revision": "1"}
    assert browser.post(f"/apps/{APP}/store", data=values).status_code == 303

    page = browser.get(f"/apps/{APP}/actions/nightly").text
    stored = web.client().get("/api/actions/nightly/revisions", params={"app": APP}).json()

    assert ">Ann</span>" in page
    assert re.fullmatch(r"token \w+ \(Ann\)", stored[0]["author"])


@pytest.mark.parametrize(
    ("author", "whose"),
    [
        ("link 12ab (Ann (Paris))", "Ann (Paris)"),
        ("token 34cd (CI)", "CI"),
        ("sso ann@example.com", "ann@example.com"),
        ("token 34cd", "token 34cd"),
        ("root", "root"),
    ],
)
def test_an_author_is_shown_as_its_person(author: str, whose: str) -> None:
    assert person(author) == whose
