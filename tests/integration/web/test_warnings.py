"""Warnings ask for what a document names, at any number of users."""

from collections.abc import Callable
from typing import Any

import pytest

from models.roles import Role
from models.store.workers import Heartbeat, beat
from runtime.config import Settings
from services import changes, users
from services.apps import trust
from tests.integration.web.conftest import (
    APP,
    NIGHTLY,
    Serve,
    Web,
    with_shop,
)
from tests.statements import rows_read

MAIL = {**NIGHTLY, "name": "mail", "operations": {"send_email": {"template": "hello"}}}
COUNT = 30
TASK = "shop.tasks.close_day"


def crowded(web: Web) -> Web:
    """Store many users, whom no flag keeps, in many groups."""
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    rows = [
        {"id": f"user-{number:02}@example.com", "groups": [f"group {number:02}", "crowd"]}
        for number in range(COUNT)
    ]
    users.import_rows(shop, rows, raises_events=False)
    return web


def warned(web: Web, **recipients: Any) -> list[str]:
    document = {**MAIL, "recipients": recipients}
    answer = web.client(Role.EDITOR, APP).post(
        "/api/actions:apply", json=document, params={"dry_run": True}
    )
    return list(answer.json()[0]["warnings"])


@pytest.mark.parametrize(
    ("recipients", "is_kept"),
    [
        ({"groups": ["crowd"]}, False),
        ({"groups": ["crowd"], "include_inactivated_users": True}, True),
        ({"users": ["user-07@example.com"]}, False),
        ({"users": ["user-07@example.com"], "include_inactivated_users": True}, True),
        ({"groups": ["all"]}, False),
    ],
    ids=str,
)
def test_a_filter_that_selects_nobody_is_warned_about(
    web: Web, recipients: dict[str, Any], is_kept: bool
) -> None:
    found = warned(crowded(web), **recipients)

    assert any("no user is selected now" in one for one in found) != is_kept


def test_a_dry_run_reads_what_the_document_names(
    home_of: Callable[[str], Settings], serve: Serve
) -> None:
    web = crowded(with_shop(serve(home_of("postgresql"))))
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    everybody = {"groups": ["all", "crowd"], "include_inactivated_users": True}
    document = {**MAIL, "recipients": {**everybody, "users": ["user-07@example.com"]}}

    with rows_read(web.engine) as read:
        changes.apply(shop, [document], dry_run=True)

    assert max(read) == 2


def test_arguments_that_a_task_does_not_take_are_a_remark_and_no_refusal(
    settings: Settings, serve: Serve
) -> None:
    celery = settings.celery.model_copy(update={"tasks": ("shop.*",)})
    web = with_shop(serve(settings.model_copy(update={"celery": celery})))
    trust.trust_app(web.opened, APP, trust.TrustChange(tasks=("shop.*",)))
    takes = {TASK: ["city", "limit=5"]}
    with web.engine.begin() as connection:
        beat(connection, Heartbeat("celery@shop", "celery", 1, follows=(TASK,), signatures=takes))
    client = web.client(Role.EDITOR, APP)

    def remarks(**task: Any) -> list[str]:
        document = {**NIGHTLY, "name": "close", "operations": {"celery_task": task}}
        answer = client.post("/api/actions:apply?dry_run=true", json=document)
        assert answer.status_code == 200, answer.text
        return list(answer.json()[0]["warnings"])

    fits, unknown, missing = (
        remarks(task=TASK, args=["Paris"]),
        remarks(task=TASK, args=["Paris"], kwargs={"limt": 1}),
        remarks(task=TASK),
    )

    known = f"; a worker that runs now has {TASK}(city, limit=5)"
    assert fits == []
    assert unknown == [f"operations.celery_task: got an unexpected keyword argument 'limt'{known}"]
    assert missing == [f"operations.celery_task: missing a required argument: 'city'{known}"]


def test_a_task_that_no_live_worker_of_its_queue_has_is_a_remark_with_the_nearest_name(
    settings: Settings, serve: Serve
) -> None:
    celery = settings.celery.model_copy(update={"tasks": ("shop.*",)})
    web = with_shop(serve(settings.model_copy(update={"celery": celery})))
    trust.trust_app(web.opened, APP, trust.TrustChange(tasks=("shop.*",), queues=("orders",)))
    with web.engine.begin() as connection:
        beat(connection, Heartbeat("celery@shop", "celery, orders", 1, follows=(TASK,)))
    client = web.client(Role.EDITOR, APP)

    def remarks(**task: Any) -> list[str]:
        document = {**NIGHTLY, "name": "close", "operations": {"celery_task": task}}
        answer = client.post("/api/actions:apply?dry_run=true", json=document)
        assert answer.status_code == 200, answer.text
        return list(answer.json()[0]["warnings"])

    path = "operations.celery_task.task"
    misspelt = f'{path} "shop.tasks.clos_day": no live worker of queue orders has this task'
    assert remarks(task="shop.tasks.clos_day", queue="orders") == [
        f'{misspelt}; did you mean "{TASK}"?'
    ]
    assert remarks(task=TASK, queue="orders") == remarks(task=TASK) == []


def test_no_task_that_the_small_app_may_not_send_is_the_nearest_name(
    settings: Settings, serve: Serve
) -> None:
    celery = settings.celery.model_copy(update={"tasks": ("shop.*",)})
    web = with_shop(serve(settings.model_copy(update={"celery": celery})))
    trust.trust_app(web.opened, APP, trust.TrustChange(tasks=("shop.tasks.*",)))
    with web.engine.begin() as connection:
        beat(connection, Heartbeat("celery@shop", "celery", 1, follows=("shop.task.close_day",)))
    operations = {"celery_task": {"task": "shop.tasks.close_day"}}

    answer = web.client(Role.EDITOR, APP).post(
        "/api/actions:apply?dry_run=true", json={**NIGHTLY, "name": "x", "operations": operations}
    )

    path = 'operations.celery_task.task "shop.tasks.close_day"'
    (remark,) = answer.json()[0]["warnings"]
    assert remark == f"{path}: no live worker of queue celery has this task"
