"""`minutebook.django` in a real Django project, and `minutebook.actions`, against a real server."""

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from minutebook import actions
from models.roles import Role
from models.store import workers
from services.apps import trust
from tests.django_project import ACTIONS, Browser, project, text_of
from tests.integration.web.conftest import APP, NIGHTLY, SiteWith, Web
from tests.servers import free_port
from tests.transactions import act

TASKS = {
    "shop.remind": ["order", "city='Paris'", "*", "dry_run=False"],
    "shop.anything": ["*args", "**kwargs"],
}
FIELDS = {"name": "nightly", "active": "on", "rest": '{"operations": {"maintenance": {}}}'}
FIELDS |= {"kind": "cron_rule", "rule": "0 3 * * *", "timezone": "Europe/Paris"}
REMIND = {**FIELDS, "name": "remind", "task": "shop.remind", "rest": ""}


@pytest.fixture
def site(site_with: SiteWith) -> Web:
    """A server that may send the shop's tasks, which a worker follows."""
    web = site_with(celery={"tasks": ("shop.*",)})
    trust.trust_app(web.opened, APP, trust.TrustChange(trusted=True))
    worker = workers.Heartbeat("shop", "celery", 1, follows=[*TASKS], signatures=TASKS)
    act(web.engine, workers.beat, worker)
    return web


@pytest.fixture
def staff(site: Web, tmp_path: Path) -> Iterator[Callable[[str], Browser]]:
    """Sign in to a project's admin whose server has the action `nightly`."""
    token = site.token(Role.EDITOR, APP)
    settings = {"MINUTEBOOK_URL": site.url, "MINUTEBOOK_TOKEN": token}
    settings["TIME_ZONE"] = "Europe/Paris"
    with project(tmp_path, **settings) as url:
        yield lambda name: Browser(url, name)


def shown(web: Web, name: str = "nightly") -> dict[str, Any]:
    found: dict[str, Any] = web.client(Role.VIEWER, APP).get(f"/api/actions/{name}").json()
    return found


def document(web: Web, name: str) -> Any:
    return shown(web, name)["document"]


def value_of(page: httpx.Response, field: str) -> str | None:
    tag = re.search(rf'<input[^>]*name="{field}"[^>]*>', page.text)
    value = re.search(r'value="([^"]*)"', tag[0]) if tag else None
    return unescape(value[1]) if value else None


def test_the_admin_lists_edits_and_deletes(site: Web, staff: Callable[[str], Browser]) -> None:
    admin = staff("admin")
    uid = shown(site)["uid"]
    change = f"{ACTIONS}{uid}/change/"
    words = {**FIELDS, "rest": '{"operations": {"maintenance": {}}, "description": "<b>new</b>"}'}

    listed = text_of(admin.get(ACTIONS))
    page = admin.get(change)
    planned = admin.post(change, **{**words, "rule": "30 4 * * *"}, revision="1", check="1")
    stored = admin.post(change, **words, revision="1")
    outdated = admin.post(change, **{**FIELDS, "timezone": "Asia/Tokyo"}, revision="1")

    assert "nightly" in listed
    assert uid in listed
    assert "Run now" in page.text
    assert "It has not run yet." in page.text
    assert len(re.findall(r" 03:00 \+", page.text)) == 5
    assert "It would be changed, revision 2." in text_of(planned)
    assert len(re.findall(r" 04:30 \+", planned.text)) == 5
    assert "Stored nightly, revision 2." in text_of(stored)
    assert "<b>new</b>" not in stored.text
    assert document(site, "nightly")["description"] == "<b>new</b>"
    assert "another change came first" in text_of(outdated)
    assert value_of(outdated, "timezone") == "Asia/Tokyo"
    deleted = admin.post(f"{ACTIONS}{uid}/delete/")
    assert "Deleted nightly; its history stays." in text_of(deleted)
    assert shown(site)["status"] == 404


def test_each_argument_of_a_task_has_a_field(site: Web, staff: Callable[[str], Browser]) -> None:
    editor, add = staff("editor"), f"{ACTIONS}add/"

    offered = editor.get(add)
    checked = editor.post(add, **REMIND, check="1")
    given = {"argument_order": "42", "argument_city": "Lille", "argument_dry_run": "true"}
    made = editor.post(add, **REMIND, **given, notify="ann@example.com, https://example.com/x")

    assert '<option value="shop.remind">' in offered.text
    assert "This field is required." in text_of(checked)
    assert "Without a value it is 'Paris'." in text_of(checked)
    assert "Stored remind." in text_of(made)
    assert {name: value_of(made, name) for name in given} == given
    assert document(site, "remind") == {
        "name": "remind",
        "active": True,
        "operations": {
            "celery_task": {
                "task": "shop.remind",
                "kwargs": {"order": 42, "city": "Lille", "dry_run": True},
            }
        },
        "when": {"cron_rule": "0 3 * * *", "timezone": "Europe/Paris"},
        "hooks": {
            "on_failure": [{"mail": "ann@example.com"}, {"webhook": "https://example.com/x"}]
        },
    }


def test_what_has_no_field_of_its_own_is_kept(site: Web, staff: Callable[[str], Browser]) -> None:
    call = {"task": "shop.remind", "args": ["42", " x"], "queue": "slow", "kwargs": {}}
    told = [{"mail": "ann@example.com"}, {"mail": "bob@example.com", "when": "first"}]
    given = {
        "name": "kept",
        "active": False,
        "operations": {"celery_task": call},
        "when": {"every": "PT5M", "jitter": "PT1M"},
        "hooks": {"on_failure": told, "alert_after": 2},
        "policy": {"overlap": "skip"},
    }
    with_token = site.client(Role.EDITOR, APP)
    uid = with_token.post("/api/actions", json=given).json()["uid"]
    before = document(site, "kept")
    editor, change = staff("editor"), f"{ACTIONS}{uid}/change/"

    page = editor.get(change)
    names = ("name", "task", "rule", "timezone", "notify", "argument_order", "argument_city")
    fields = {name: value_of(page, name) or "" for name in names}
    (rest,) = re.findall(r'<textarea name="rest".*?>(.*?)</textarea>', page.text, re.DOTALL)
    rest = unescape(rest)
    editor.post(change, **fields, kind="every", rest=rest, revision="1")

    assert fields["argument_order"] == '"42"'
    assert fields["argument_city"] == '" x"'
    assert json.loads(rest)["hooks"] == {"alert_after": 2, "on_failure": told[1:]}
    step = {**call, "args": None, "kwargs": {"order": "42", "city": " x"}}
    del step["args"]
    after = document(site, "kept")
    assert after == {**before, "operations": {"celery_task": step}}


def test_a_task_without_a_field_for_each_argument_has_json(
    site: Web, staff: Callable[[str], Browser]
) -> None:
    editor, add = staff("editor"), f"{ACTIONS}add/"
    any_task = {**REMIND, "task": "shop.anything"}

    checked = editor.post(add, **any_task, check="1")
    lost = editor.post(add, **any_task, argument_order="42")
    made = editor.post(add, **any_task, args="[1]", kwargs='{"b": 2}')

    assert "A JSON list." in text_of(checked)
    assert "This task takes other arguments" in text_of(lost)
    assert "Stored remind." in text_of(made)
    step = {"task": "shop.anything", "args": [1], "kwargs": {"b": 2}}
    assert document(site, "remind")["operations"] == {"celery_task": step}


def test_the_last_run_is_shown_with_its_page(site: Web, staff: Callable[[str], Browser]) -> None:
    uid = shown(site)["uid"]
    ran = site.client(Role.EDITOR, APP).post(f"/api/actions/{uid}:run").json()

    page = staff("viewer").get(f"{ACTIONS}{uid}/change/")

    assert f'<a href="{site.url}/operations/{ran["id"]}">' in page.text
    assert "disabled" in page.text
    assert "Save" not in page.text


def test_the_admin_pauses_resumes_and_runs(site: Web, staff: Callable[[str], Browser]) -> None:
    admin = staff("admin")
    uid = shown(site)["uid"]

    paused = admin.post(f"{ACTIONS}{uid}/pause/", name="nightly")
    is_active = shown(site)["active"]
    refused = admin.post(f"{ACTIONS}{uid}/run/", name="nightly")
    resumed = admin.post(f"{ACTIONS}{uid}/resume/", name="nightly")
    ran = admin.post(f"{ACTIONS}{uid}/run/", name="nightly")

    assert "The action is paused." in text_of(paused)
    assert is_active is False
    assert "'nightly' is paused" in text_of(refused)
    assert "The action is active." in text_of(resumed)
    assert re.search(r"Run [0-9a-f-]{36} is (pending|queued)\.", text_of(ran))


def test_schedules_of_objects_are_shown_and_not_changed(
    site: Web, staff: Callable[[str], Browser]
) -> None:
    admin, rows = staff("admin"), "/admin/minutebook/schedule/"

    listed, row = admin.get(rows), admin.get(f"{rows}nightly/change/")
    owned = admin.get(f"{ACTIONS}{shown(site)['uid']}/change/")

    assert "the server&#x27;s reason" in listed.text
    assert "the server&#x27;s reason" in row.text
    assert 'name="_save"' not in row.text
    assert admin.get(f"{rows}add/").status_code == 403
    assert "Code of this project owns this action" in text_of(owned)


def test_a_faulty_form_comes_back_with_its_faults(
    site: Web, staff: Callable[[str], Browser]
) -> None:
    editor, add = staff("editor"), f"{ACTIONS}add/"
    new = {**FIELDS, "name": "new"}

    faulty = editor.post(add, **{**new, "rule": "99 * * * *"})
    no_rule = editor.post(add, **{**new, "rule": ""})
    two_rules = editor.post(add, **{**new, "rest": '{"when": []}'})

    assert "Not stored: when.cron_rule '99 * * * *'" in text_of(faulty)
    assert value_of(faulty, "rule") == "99 * * * *"
    assert "Write when it is due." in text_of(no_rule)
    assert "The JSON has several rules" in text_of(two_rules)
    assert shown(site, "new")["status"] == 404


FAULTS = [
    ("{", "It is not JSON"),
    ("[]", "It is not a JSON object."),
    ('{"description": NaN}', "Not stored: The document cannot be sent"),
    ('{"description": "\\ud800"}', "Not stored: The document cannot be sent"),
    ('{"hooks": {"on_failure": 5}}', "Not stored: hooks.on_failure"),
    ("[" * 100_000, "It is not JSON"),
]


def test_what_no_document_may_say_is_refused(staff: Callable[[str], Browser]) -> None:
    editor = staff("editor")
    for rest, fault in FAULTS:
        given = {**FIELDS, "rest": rest, "notify": "ann@example.com"}
        answer = editor.post(f"{ACTIONS}add/", **given)

        assert answer.status_code == 200
        assert fault in text_of(answer)


# The pages that each member of the staff may open and the verbs that they may use.
ALLOWED = {
    "viewer": {"list"},
    "editor": {"list", "change", "pause"},
    "runner": {"list", "run"},
    "nobody": set[str](),
}


def test_permissions_are_django_s(site: Web, staff: Callable[[str], Browser]) -> None:
    uid, allowed = shown(site)["uid"], {}
    for name in ALLOWED:
        one = staff(name)
        codes = {"list": one.get(ACTIONS).status_code}
        for verb in ("change", "pause", "run", "delete"):
            fields = {**FIELDS, "revision": "1"} if verb == "change" else {}
            codes[verb] = one.post(f"{ACTIONS}{uid}/{verb}/", **fields).status_code
        assert {*codes.values()} <= {200, 403}
        allowed[name] = {verb for verb, code in codes.items() if code == 200}

    assert allowed == ALLOWED


def test_what_is_no_form_of_the_page_is_refused(site: Web, staff: Callable[[str], Browser]) -> None:
    admin = staff("admin")
    uid = shown(site)["uid"]

    forged = admin.http.post(f"{ACTIONS}{uid}/pause/")
    read = admin.get(f"{ACTIONS}{uid}/pause/")
    unknown = admin.get(f"{ACTIONS}00000000-0000-4000-8000-000000000000/change/")
    stranger = httpx.get(str(admin.http.base_url) + ACTIONS)

    assert (forged.status_code, read.status_code, unknown.status_code) == (403, 405, 404)
    assert stranger.status_code == 302
    assert shown(site)["active"] is True


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


def test_actions_are_made_from_code(site: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHED_URL", site.url)
    monkeypatch.setenv("SCHED_TOKEN", site.token(Role.EDITOR, APP))

    made = actions.apply({**NIGHTLY, "name": "a b"}, {**NIGHTLY, "name": "c"})
    ran = actions.run("a b", key="once")
    actions.pause("c")
    explained = actions.explain("c", "2026-11-23T12:34:00")
    is_active = shown(site, "c")["active"]
    actions.resume("c")

    assert [(one.name, one.change) for one in made] == [("a b", "created"), ("c", "created")]
    assert ran.state in {"pending", "queued"}
    assert explained.verdict == "not_an_occurrence"
    assert (is_active, shown(site, "c")["active"]) == (False, True)
    actions.delete("c")
    assert shown(site, "c")["status"] == 404


def test_without_settings_the_names_of_the_settings_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SCHED_URL", raising=False)

    with pytest.raises(actions.NotConfigured, match="MINUTEBOOK_URL and MINUTEBOOK_TOKEN"):
        actions.run("nightly")
