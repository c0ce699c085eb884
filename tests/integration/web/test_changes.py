"""Changes over HTTP: no lost update, every fault and warning at once, one run for one key."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from models.roles import Role
from models.store.workers import Heartbeat, beat
from runtime.config import Settings
from services import changes, users
from services.apps import trust
from tests.celery_messages import allowing
from tests.factories import installation_on
from tests.integration.web.conftest import APP, NIGHTLY, SiteWith, Web, with_shop
from tests.statements import rows_read
from tests.transactions import act

HOURLY = {**NIGHTLY, "when": {"cron_rule": "0 * * * *"}}


@pytest.fixture
def editor(web: Web) -> httpx.Client:
    return web.client(Role.EDITOR, APP)


def test_a_change_is_made_to_the_revision_that_was_read(editor: httpx.Client) -> None:
    read = editor.get("/api/actions/nightly")
    tag = {"If-Match": read.headers["ETag"]}

    changed = editor.put("/api/actions/nightly", json=HOURLY, headers=tag)
    lost = editor.put("/api/actions/nightly", json=NIGHTLY, headers=tag)
    paused = editor.post("/api/actions/nightly:pause", headers=tag)
    deleted = editor.delete("/api/actions/nightly", headers=tag)

    assert (read.headers["ETag"], changed.headers["ETag"]) == ('"1"', '"2"')
    assert changed.json()["change"] == "changed"
    assert [one.status_code for one in (lost, paused, deleted)] == [412, 412, 412]
    assert "is at revision 2, not 1" in lost.json()["detail"]
    kept = editor.get("/api/actions/nightly").json()["document"]["when"]
    assert kept == {"cron_rule": "0 * * * *", "timezone": "Europe/Paris"}


def test_a_change_names_what_it_was_made_to(editor: httpx.Client) -> None:
    wrong = [("If-Match", '"abc"'), ("If-Match", '""'), ("If-None-Match", '"1"')]

    unnamed = editor.put("/api/actions/nightly", json=HOURLY)
    refused = [editor.put("/api/actions/nightly", json=HOURLY, headers=[one]) for one in wrong]

    assert [unnamed.status_code, *(one.status_code for one in refused)] == [428, 422, 422, 422]
    assert editor.get("/api/actions/nightly").json()["revision"] == 1


def test_a_put_creates_what_does_not_exist(editor: httpx.Client) -> None:
    new, none_yet = {**HOURLY, "name": "hourly"}, {"If-None-Match": "*"}

    created = editor.put("/api/actions/hourly", json=new, headers=none_yet)
    again = editor.put("/api/actions/hourly", json=new, headers=none_yet)
    elsewhere = editor.put("/api/actions/other", json=new, headers=none_yet)

    assert (created.status_code, created.json()["change"]) == (200, "created")
    assert again.status_code == 412
    assert elsewhere.status_code == 422
    assert elsewhere.json()["problems"][0]["path"] == "name"


def test_a_body_that_is_no_json_is_refused_with_its_place(editor: httpx.Client) -> None:
    for method, path in (("POST", "/api/actions"), ("PUT", "/api/actions/nightly")):
        refused = editor.request(method, path, content=b"{'name': 1}", headers={"If-Match": "*"})
        assert refused.status_code == 422
        assert "double quote" in refused.json()["detail"]


def test_many_documents_may_come_as_lines(editor: httpx.Client) -> None:
    lines = "\n".join(json.dumps({**HOURLY, "name": f"a{number}"}) for number in range(3))
    as_lines = {"Content-Type": "application/jsonl"}

    applied = editor.post("/api/actions:apply", content=lines, headers=as_lines).json()

    assert [(one["name"], one["change"]) for one in applied] == [
        (f"a{number}", "created") for number in range(3)
    ]


def test_a_small_app_is_changed_by_the_document_that_was_read(web: Web) -> None:
    admin, editor = web.client(), web.client(Role.EDITOR, APP)
    tag = {"If-Match": editor.get(f"/api/apps/{APP}").headers["ETag"]}
    document = {"name": APP, "zone": "Asia/Tokyo"}

    changed = editor.put(f"/api/apps/{APP}", json=document, headers=tag)
    lost = admin.put(f"/api/apps/{APP}", json={"name": APP}, headers=tag)
    tried = admin.put(
        f"/api/apps/{APP}?dry_run=true", json={"name": APP}, headers={"If-Match": "*"}
    )

    assert (changed.status_code, changed.json()["change"]) == (200, "changed")
    assert lost.status_code == 412
    made = admin.put("/api/apps/new", json={"name": "new"}, headers={"If-None-Match": "*"})
    gone = admin.put("/api/apps/old", json={"name": "old"}, headers=tag)
    assert (made.json()["change"], gone.status_code) == ("created", 412)
    none_yet = admin.put(f"/api/apps/{APP}", json=document, headers={"If-None-Match": "*"})
    told = f'small app "{APP}" already exists'
    assert (none_yet.status_code, none_yet.json()["detail"]) == (412, told)
    assert (tried.status_code, tried.json()["change"]) == (200, "changed")
    assert admin.get(f"/api/apps/{APP}").json()["zone"] == "Asia/Tokyo"


def test_every_change_is_in_the_audit_with_its_token(web: Web) -> None:
    admin = web.client(Role.ADMIN, APP)
    me = admin.get("/api/tokens").json()[0]["id"]
    admin.put("/api/actions/nightly", json=HOURLY, headers={"If-Match": '"1"'})
    admin.post("/api/actions/nightly:pause")
    admin.post(f"/api/apps/{APP}/users", json={"id": "ben@example.com"})

    page = admin.get("/api/audit", params={"limit": 3}).json()
    rest = admin.get("/api/audit", params={"cursor": page["next"]}).json()

    assert [one["verb"] for one in page["items"]] == ["user.add", "action.change", "action.change"]
    assert [one["name"] for one in page["items"]] == [None, "nightly", "nightly"]
    assert {one["actor"] for one in page["items"]} == {f"token {me}"}
    assert {one["app"] for one in page["items"] + rest["items"]} == {APP}


MAIL = {**NIGHTLY, "name": "mail", "operations": {"send_email": {"template": "hello"}}}
COUNT = 30
TASK = "shop.tasks.close_day"


def crowded(web: Web) -> Web:
    """Store many users, whom no flag keeps, in many groups."""
    rows = [
        {"id": f"user-{number:02}@example.com", "groups": [f"group {number:02}", "crowd"]}
        for number in range(COUNT)
    ]
    users.import_rows(web.shop, rows, raises_events=False)
    return web


@pytest.mark.parametrize("keeps", [False, True])
def test_a_filter_that_selects_nobody_is_warned_about(unserved: Web, keeps: bool) -> None:
    recipients = {"groups": ["crowd"], "include_inactivated_users": keeps}
    document = {**MAIL, "recipients": recipients}

    (found,) = changes.apply(crowded(unserved).shop, [document], dry_run=True).root

    assert any("no user is selected now" in one for one in found.warnings) != keeps


def test_a_dry_run_reads_what_the_document_names(site_with: SiteWith) -> None:
    web = crowded(site_with("postgresql"))
    everybody = {"groups": ["all", "crowd"], "include_inactivated_users": True}
    document = {**MAIL, "recipients": {**everybody, "users": ["user-07@example.com"]}}

    with rows_read(web.engine) as read:
        changes.apply(web.shop, [document], dry_run=True)

    assert max(read) == 2


@pytest.fixture
def remarks(engine: sa.Engine, settings: Settings) -> Callable[..., list[str]]:
    """Return what is remarked on an action that sends a task, of which a live worker has one."""
    opened = installation_on(engine, allowing(settings, "shop.*"))
    web = with_shop(Web(opened, "", FastAPI()))
    trusted = trust.TrustChange(tasks=("shop.tasks.*",), queues=("orders",))
    trust.trust_app(web.opened, APP, trusted)
    takes, has = {TASK: ["city", "limit=5"]}, (TASK, "shop.taskz.reimburse_invoices")
    worker = Heartbeat("celery@shop", "celery, orders", 1, follows=has, signatures=takes)
    act(web.engine, beat, worker)

    def asked(task: str = TASK, **more: Any) -> list[str]:
        its = {"celery_task": {"task": task, **more}}
        document = {**NIGHTLY, "name": "close", "operations": its}
        return list(changes.apply(web.shop, [document], dry_run=True).root[0].warnings)

    return asked


def test_arguments_that_a_task_does_not_take_are_a_remark_and_no_refusal(
    remarks: Callable[..., list[str]],
) -> None:
    its = "operations.celery_task"
    known = f"; a worker that runs now has {TASK}(city, limit=5)"
    fits, unknown = {"args": ["Paris"]}, {"args": ["Paris"], "kwargs": {"limt": 1}}

    assert remarks(**fits) == remarks(**fits, queue="orders") == []
    assert remarks(**unknown) == [f"{its}: got an unexpected keyword argument 'limt'{known}"]
    assert remarks() == [f"{its}: missing a required argument: 'city'{known}"]


def test_a_task_that_no_live_worker_of_its_queue_has_is_a_remark_with_the_nearest_name(
    remarks: Callable[..., list[str]],
) -> None:
    def said(task: str, queue: str) -> str:
        return (
            f'operations.celery_task.task "{task}": no live worker of queue {queue} has this task'
        )

    near = remarks("shop.tasks.clos_day", queue="orders")
    assert near == [f'{said("shop.tasks.clos_day", "orders")}; did you mean "{TASK}"?']
    # A task that the small app may not send is not named.
    assert remarks("shop.tasks.reimburse_invoices") == [
        said("shop.tasks.reimburse_invoices", "celery")
    ]
