"""The part of an action's page that lists its revisions."""

import json
import re

import pytest

from models.roles import Role
from services import changes, tokens
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.integration.web.dashboard.conftest import Browse
from web.dashboard.texts import person


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
