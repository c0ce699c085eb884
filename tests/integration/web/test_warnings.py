"""Warnings ask for what a document names, at any number of users."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from models.store.workers import Heartbeat, beat
from runtime.config import Settings
from services import changes, users
from services.apps import trust
from tests.factories import installation_on
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


def test_a_dry_run_reads_what_the_document_names(
    home_of: Callable[[str], Settings], serve: Serve
) -> None:
    web = crowded(with_shop(serve(home_of("postgresql"))))
    everybody = {"groups": ["all", "crowd"], "include_inactivated_users": True}
    document = {**MAIL, "recipients": {**everybody, "users": ["user-07@example.com"]}}

    with rows_read(web.engine) as read:
        changes.apply(web.shop, [document], dry_run=True)

    assert max(read) == 2


@pytest.fixture
def remarks(engine: sa.Engine, settings: Settings) -> Callable[..., list[str]]:
    """Return what is remarked on an action that sends a task, of which a live worker has one."""
    celery = settings.celery.model_copy(update={"tasks": ("shop.*",)})
    opened = installation_on(engine, settings.model_copy(update={"celery": celery}))
    web = with_shop(Web(opened, "", FastAPI()))
    trusted = trust.TrustChange(tasks=("shop.tasks.*",), queues=("orders",))
    trust.trust_app(web.opened, APP, trusted)
    takes, has = {TASK: ["city", "limit=5"]}, (TASK, "shop.taskz.reimburse_invoices")
    worker = Heartbeat("celery@shop", "celery, orders", 1, follows=has, signatures=takes)
    with web.engine.begin() as connection:
        beat(connection, worker)

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
