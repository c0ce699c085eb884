"""`minutebook.django` in a real Django project, and `minutebook.actions`, against a real server."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from minutebook import actions
from models.roles import Role
from tests.django_project import ACTIONS, Browser, project, text_of
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.servers import free_port


@pytest.fixture
def staff(web_on_sqlite: Web, tmp_path: Path) -> Iterator[Callable[[str], Browser]]:
    """Sign in to a project's admin whose server has the action `nightly`."""
    token = web_on_sqlite.token(Role.EDITOR, APP)
    settings = {"MINUTEBOOK_URL": web_on_sqlite.url, "MINUTEBOOK_TOKEN": token}
    with project(tmp_path, **settings) as url:
        yield lambda name: Browser(url, name)


def shown(web: Web, name: str = "nightly") -> dict[str, Any]:
    found: dict[str, Any] = web.client(Role.VIEWER, APP).get(f"/api/actions/{name}").json()
    return found


def test_the_admin_lists_edits_explains_and_deletes(
    web_on_sqlite: Web, staff: Callable[[str], Browser]
) -> None:
    admin = staff("admin")
    uid = shown(web_on_sqlite)["uid"]
    change = f"{ACTIONS}{uid}/change/"

    listed = text_of(admin.get(ACTIONS))
    page = admin.get(change)
    document = {**shown(web_on_sqlite)["document"], "description": "new <b>words</b>"}
    planned = admin.post(change, document=json.dumps(document), revision="1", check="1")
    unchanged = shown(web_on_sqlite)["revision"]
    stored = admin.post(change, document=json.dumps(document), revision="1")
    outdated = admin.post(change, document=json.dumps({**document, "owner": "mine"}), revision="1")
    explained = admin.get(change, at="2026-11-23T12:34:00")

    assert "nightly" in listed
    assert uid in listed
    assert "Run now" in page.text
    assert "It would be changed, revision 2." in text_of(planned)
    assert unchanged == 1
    assert "Stored nightly, revision 2." in text_of(stored)
    assert "<b>words</b>" not in stored.text
    assert "another change came first" in text_of(outdated)
    assert '"owner": "mine"' in text_of(outdated)
    assert "not_an_occurrence" in text_of(explained)
    deleted = admin.post(f"{ACTIONS}{uid}/delete/")
    assert "Deleted nightly; its history stays." in text_of(deleted)
    assert shown(web_on_sqlite)["status"] == 404


def test_the_admin_pauses_resumes_and_runs(
    web_on_sqlite: Web, staff: Callable[[str], Browser]
) -> None:
    admin = staff("admin")
    uid = shown(web_on_sqlite)["uid"]

    paused = admin.post(f"{ACTIONS}{uid}/pause/", name="nightly")
    is_active = shown(web_on_sqlite)["active"]
    refused = admin.post(f"{ACTIONS}{uid}/run/", name="nightly")
    resumed = admin.post(f"{ACTIONS}{uid}/resume/", name="nightly")
    ran = admin.post(f"{ACTIONS}{uid}/run/", name="nightly")

    assert "The action is paused." in text_of(paused)
    assert is_active is False
    assert "'nightly' is paused" in text_of(refused)
    assert "The action is active." in text_of(resumed)
    assert re.search(r"Operation [0-9a-f-]{36} is (pending|queued)\.", text_of(ran))


def test_a_faulty_document_comes_back_with_its_faults(
    web_on_sqlite: Web, staff: Callable[[str], Browser]
) -> None:
    editor = staff("editor")
    wrong = {**NIGHTLY, "name": "new", "when": {"cron_rule": "99 * * * *"}}

    faulty = editor.post(f"{ACTIONS}add/", document=json.dumps(wrong))
    broken = editor.post(f"{ACTIONS}add/", document="{")
    made = editor.post(f"{ACTIONS}add/", document=json.dumps({**NIGHTLY, "name": "new"}))

    assert "Not stored: when.cron_rule '99 * * * *'" in text_of(faulty)
    assert '"99 * * * *"' in text_of(faulty)
    assert "The document is not JSON" in text_of(broken)
    assert "Stored new." in text_of(made)
    assert shown(web_on_sqlite, "new")["revision"] == 1


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ('{"name": NaN}', "cannot be sent"),
        ('{"name": "\\ud800"}', "cannot be sent"),
        ("[" * 100_000, "is not JSON"),
    ],
    ids=["not a number", "half a character", "too deep"],
)
def test_what_no_json_can_say_is_told(
    staff: Callable[[str], Browser], document: str, fault: str
) -> None:
    answer = staff("editor").post(f"{ACTIONS}add/", document=document)

    assert answer.status_code == 200
    assert f"Not stored: The document {fault}" in text_of(answer)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("viewer", set()),
        ("editor", {"change", "pause"}),
        ("runner", {"run"}),
        ("nobody", set()),
    ],
)
def test_permissions_are_django_s(
    web_on_sqlite: Web, staff: Callable[[str], Browser], name: str, allowed: set[str]
) -> None:
    one = staff(name)
    uid = shown(web_on_sqlite)["uid"]
    text = json.dumps(shown(web_on_sqlite)["document"])

    codes = {
        "change": one.post(f"{ACTIONS}{uid}/change/", document=text, revision="1").status_code,
        "pause": one.post(f"{ACTIONS}{uid}/pause/").status_code,
        "run": one.post(f"{ACTIONS}{uid}/run/").status_code,
        "delete": one.post(f"{ACTIONS}{uid}/delete/").status_code,
    }

    assert one.get(ACTIONS).status_code == (403 if name == "nobody" else 200)
    assert {verb for verb, code in codes.items() if code == 200} == allowed
    assert {code for verb, code in codes.items() if verb not in allowed} == {403}


def test_what_is_no_form_of_the_page_is_refused(
    web_on_sqlite: Web, staff: Callable[[str], Browser]
) -> None:
    admin = staff("admin")
    uid = shown(web_on_sqlite)["uid"]

    forged = admin.http.post(f"{ACTIONS}{uid}/pause/")
    read = admin.get(f"{ACTIONS}{uid}/pause/")
    unknown = admin.get(f"{ACTIONS}00000000-0000-4000-8000-000000000000/change/")
    stranger = httpx.get(str(admin.http.base_url) + ACTIONS)

    assert (forged.status_code, read.status_code, unknown.status_code) == (403, 405, 404)
    assert stranger.status_code == 302
    assert shown(web_on_sqlite)["active"] is True


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "set MINUTEBOOK_URL and MINUTEBOOK_TOKEN in Django's settings"),
        (
            {"MINUTEBOOK_URL": "http://127.0.0.1:{port}", "MINUTEBOOK_TOKEN": "mbt_x"},
            "The server does not answer",
        ),
    ],
)
def test_what_keeps_the_pages_from_the_server_is_said(
    tmp_path: Path, settings: dict[str, str], told: str
) -> None:
    named = {key: value.format(port=free_port()) for key, value in settings.items()}
    with project(tmp_path, **named) as url:
        page = Browser(url, "admin").get(ACTIONS)

    assert page.status_code == 200
    assert told in text_of(page)


def test_actions_are_made_from_code(web_on_sqlite: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHED_URL", web_on_sqlite.url)
    monkeypatch.setenv("SCHED_TOKEN", web_on_sqlite.token(Role.EDITOR, APP))

    made = actions.apply({**NIGHTLY, "name": "a b"}, {**NIGHTLY, "name": "c"})
    ran = actions.run("a b", key="once")
    actions.pause("c")
    explained = actions.explain("c", "2026-11-23T12:34:00")
    is_active = shown(web_on_sqlite, "c")["active"]
    actions.resume("c")

    assert [(one.name, one.change) for one in made] == [("a b", "created"), ("c", "created")]
    assert ran.state in {"pending", "queued"}
    assert explained.verdict == "not_an_occurrence"
    assert (is_active, shown(web_on_sqlite, "c")["active"]) == (False, True)
    actions.delete("c")
    assert shown(web_on_sqlite, "c")["status"] == 404


def test_without_settings_the_names_of_the_settings_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SCHED_URL", raising=False)

    with pytest.raises(actions.NotConfigured, match="MINUTEBOOK_URL and MINUTEBOOK_TOKEN"):
        actions.run("nightly")
