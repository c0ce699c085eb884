"""Every door gives the same verdict at the same instant, whatever is wrong."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.sql import database_now
from models.store import celery_queues, ticks
from models.store import workers as worker_store
from models.store.celery_queues import Watched
from models.store.notices.overdue import alert
from models.tables import actions, notices, operations, workers
from runtime.sections import AlertSettings
from services import changes, status
from services.apps import changes as app_changes
from services.runs import run
from tests.factories import update_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_overview import ended, missed, tick

Make = Callable[[Web], object]


def worker(web: Web, name: str = "quick@here:1", **values: Any) -> None:
    """Let a worker of all our queues be alive."""
    with web.engine.begin() as connection:
        queues = values.pop("queues", "quick,heavy,default")
        seen = worker_store.Heartbeat(name, queues, 1, 0.0, values.pop("follows", None))
        worker_store.beat(connection, seen)
        if values:
            changed = sa.update(workers).where(workers.c.name == name)
            connection.execute(changed.values(**values))


def waits(web: Web, **values: Any) -> None:
    """Let an operation wait for a minute."""
    id = run(web.shop, "nightly").id
    recorded = database_now(-60.0)
    update_operation(web.engine, id, recorded_at=recorded, state="queued", **values)


def stored(write: Callable[[sa.Connection], object]) -> Make:
    """Return what writes that to the database of an installation."""

    def make(web: Web) -> None:
        with web.engine.begin() as connection:
            write(connection)

    return make


def changed(table: sa.Table, **values: Any) -> Make:
    """Return what changes these columns of all rows."""
    return stored(lambda connection: connection.execute(sa.update(table).values(**values)))


ALIVE: tuple[Make, ...] = (tick, worker)
DOWN = (
    worker,
    partial(tick, ago=timedelta(minutes=2), broker_error="refused"),
    partial(tick, broker_error="refused"),
)
GROWS = {"reports": Watched(2156, 0, 0, datetime(2027, 1, 4, tzinfo=UTC))}
LOST: dict[str, Any] = {
    "queues": "celery",
    "follows": ["shop.close_day"],
    "seen_at": database_now(-300.0),
}
REFUSED = {
    "id": uuid4(), "small_app_id": 1, "kind": "run_ended", "target": {}, "payload": {},
    "state": "failed",
    **dict.fromkeys(("not_before", "created_at", "finished_at"), database_now()),
}  # fmt: skip
SLOW = {
    "state": "running", "worker": "quick@here:1", "heartbeat_at": database_now(),
    "started_at": database_now(-3700.0),
}  # fmt: skip
MAILS = {
    "name": "mails", "when": {"cron_rule": "@daily"}, "operations": {"send_execsum": True},
    "recipients": {"groups": ["all"]},
}  # fmt: skip
FAILED = partial(ended, action="nightly", state="failed", error="no")
LATE = changed(operations, recorded_at=database_now(-3600.0), cause="schedule")
# What happened, the state, and the kinds of the findings.
SITUATIONS: dict[str, tuple[tuple[Make, ...], str, str]] = {
    "well": (ALIVE, "ok", ""),
    "a stopped daemon": (
        (*ALIVE, stored(lambda one: ticks.daemon_stopped(one, "here:1"))), "broken", "no_daemon",
    ),
    "a broker, and what follows": (
        (*DOWN, waits, LATE, stored(lambda one: alert(one, AlertSettings(), 10))),
        "broken", "broker_down queue_behind action_overdue",
    ),
    "a run is slow": ((*ALIVE, waits, changed(operations, **SLOW)), "attention", "run_slow"),
    "no worker": ((tick, waits), "broken", "no_worker"),
    "no worker of an application": (
        (*ALIVE, partial(waits, queue="orders", task="shop.close_day")), "broken", "no_worker",
    ),
    "no worker for jobs": (
        (*ALIVE, partial(waits, queue="scrape", task="job")), "broken", "no_worker",
    ),
    "a follower is lost": (
        (*ALIVE, partial(worker, name="celery@here", **LOST)), "attention", "workers_lost",
    ),
    "nothing reads a queue": (
        (*ALIVE, stored(lambda one: celery_queues.store(one, None, GROWS))),
        "broken", "queue_unread",
    ),
    "a notice is refused": (
        (*ALIVE, stored(lambda one: one.execute(sa.insert(notices).values(**REFUSED)))),
        "attention", "notice_refused",
    ),
    "a step module is broken": (
        (*ALIVE, changed(workers, step_failures={"shop": "ImportError: no"})),
        "broken", "step_failed",
    ),
    "an action failed": ((*ALIVE, FAILED), "attention", "action_failed"),
    "an action was missed": (
        (*ALIVE, partial(ended, action="nightly", state="success"), missed),
        "attention", "action_missed",
    ),
    "an action is quarantined": (
        (*ALIVE, changed(actions, quarantined="it cannot be read")), "broken", "quarantined",
    ),
    "mail has no server": (
        (*ALIVE, lambda web: changes.add(web.shop, [MAILS])), "ok|attention", "mail_unset",
    ),
}  # fmt: skip


def come_about(web: Web, situation: str) -> None:
    for make in SITUATIONS[situation][0]:
        make(web)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_situation_has_its_verdict(unserved: Web, situation: str) -> None:
    _, state, kinds = SITUATIONS[situation]
    come_about(unserved, situation)

    verdict = status.status(unserved.opened).verdict

    assert verdict.state in state.split("|")
    assert set(verdict.counts) == set(kinds.split())


@pytest.mark.parametrize("situation", ["a broker, and what follows", "an action failed"])
def test_all_doors_agree(web: Web, browse: Browse, situation: str) -> None:
    come_about(web, situation)
    client, viewer = web.client(), web.client(Role.VIEWER, APP)
    browser = browse(web)
    web.app.state.overviews.forget()
    web.app.state.status.forget()

    shown = client.get("/api/status").raise_for_status().json()
    verdict = shown["verdict"]

    assert client.get("/api/overview").json()["verdict"] == verdict
    assert verdict["sentence"] in _text(browser.get("/"))
    assert verdict["sentence"] in _text(browser.get("/health"))
    of_app = viewer.get("/api/overview").json()["verdict"]
    assert of_app["sentence"] in _text(browser.get(f"/apps/{APP}"))
    counted = IN_METRICS.findall(client.get("/metrics").text)
    assert {kind: int(float(count)) for kind, count in counted} == verdict["counts"]
    of_actions = sum(verdict["counts"].get(one, 0) for one in OF_ACTIONS)
    assert shown["actions"]["unhealthy"] == of_actions
    listed = client.get("/api/actions", params={"standing": "troubled", "all_apps": True}).json()
    assert len(listed) == of_actions
    troubles = [one["text"] for one in client.get("/api/doctor").json() if one["level"] != "ok"]
    for one in verdict["findings"]:
        assert one["kind"] in OF_ACTIONS or one["text"] in troubles


def test_a_small_app_is_judged_by_its_own(web: Web) -> None:
    for situation in ("an action failed", "a follower is lost"):
        come_about(web, situation)
    app_changes.create(web.opened, ("", {"name": "bakery"}))

    shop, bakery = (
        web.client(Role.VIEWER, app).get("/api/overview").json()["verdict"]
        for app in (APP, "bakery")
    )

    assert (shop["state"], shop["counts"]) == ("attention", {"action_failed": 1})
    assert (bakery["state"], bakery["counts"]) == ("ok", {})


IN_METRICS = re.compile(r'^minutebook_findings\{kind="(\w+)",severity="\w+"\} (\S+)$', re.M)
OF_ACTIONS = ("quarantined", "action_failed", "action_missed", "action_overdue", "never_ran")


def _text(page: httpx.Response) -> str:
    plain = re.sub(r"<[^>]+>", "", page.text)
    return plain.replace("&#39;", "'").replace("&#34;", '"').replace("&quot;", '"')
