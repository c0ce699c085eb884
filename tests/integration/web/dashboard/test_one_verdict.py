"""Every door gives the same verdict at the same instant, whatever is wrong."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.sql import database_now
from models.store import celery_queues, pauses, ticks
from models.store import workers as worker_store
from models.store.celery_queues import Watched
from models.store.notices.overdue import alert
from models.store.pauses import PauseKind, Target
from models.tables import actions, notices, operations, workers
from runtime.sections import AlertSettings
from services.runs import run
from tests.factories import update_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_overview import ended, missed, tick

HOUR = timedelta(hours=1)
Make = Callable[[Web], object]


def worker(web: Web, name: str = "quick@here:1", **values: Any) -> None:
    """Let a worker of all our queues be alive."""
    with web.engine.begin() as connection:
        queues = values.pop("queues", "quick,heavy,default")
        seen = worker_store.Heartbeat(
            name, queues, 1, values.pop("skew_s", 0.0), values.pop("follows", None)
        )
        worker_store.beat(connection, seen)
        if values:
            changed = sa.update(workers).where(workers.c.name == name)
            connection.execute(changed.values(**values))


def waits(web: Web, **values: Any) -> None:
    """Let an operation wait for a minute."""
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    id = run(shop, "nightly").id
    recorded = database_now(-60.0)
    update_operation(web.engine, id, recorded_at=recorded, state="queued", **values)


def alive(web: Web) -> None:
    tick(web)
    worker(web)


def no_daemon(web: Web) -> None:
    worker(web)


def stopped(web: Web) -> None:
    alive(web)
    with web.engine.begin() as connection:
        ticks.daemon_stopped(connection, "here:1")


def broker_down(web: Web) -> None:
    worker(web)
    tick(web, timedelta(minutes=2), broker_error="refused")
    tick(web, broker_error="refused")


def no_worker(web: Web) -> None:
    tick(web)
    waits(web)


def no_worker_of_an_application(web: Web) -> None:
    alive(web)
    waits(web, queue="orders", task="shop.close_day")


def no_job_worker(web: Web) -> None:
    alive(web)
    waits(web, queue="scrape", task="job")


def follower_lost(web: Web) -> None:
    alive(web)
    gone = database_now(-300.0)
    worker(web, "celery@here", queues="celery", follows=["shop.close_day"], seen_at=gone)


def behind(web: Web) -> None:
    alive(web)
    waits(web)
    with web.engine.begin() as connection:
        connection.execute(sa.update(operations).values(recorded_at=database_now(-3600.0)))


def unread(web: Web) -> None:
    alive(web)
    with web.engine.begin() as connection:
        grows = Watched(2156, 0, 0, datetime(2027, 1, 4, tzinfo=UTC))
        celery_queues.store(connection, None, {"reports": grows})


def paused(web: Web) -> None:
    alive(web)
    with web.engine.begin() as connection:
        pauses.begin(connection, Target(PauseKind.ALL), None, "ann", None)


def skewed(web: Web) -> None:
    alive(web)
    worker(web, skew_s=-90.0)


def locked(web: Web) -> None:
    worker(web)
    tick(web, locked="pid 7 (psql, idle, for 60 s)")


def undelivered(web: Web) -> None:
    alive(web)
    with web.engine.begin() as connection:
        connection.execute(
            sa.insert(notices).values(
                id=uuid4(), small_app_id=1,
                kind="run_ended", target={}, payload={}, state="failed", not_before=database_now(),
                created_at=database_now(), finished_at=database_now(),
            )
        )  # fmt: skip


def unloaded(web: Web) -> None:
    alive(web)
    with web.engine.begin() as connection:
        worker_store.note_step_failures(connection, "quick@here:1", {"shop": "ImportError: no"})


def failed(web: Web) -> None:
    alive(web)
    ended(web, "nightly", "failed", error="no")


def missed_one(web: Web) -> None:
    alive(web)
    ended(web, "nightly", "success")
    missed(web)


def quarantined(web: Web) -> None:
    alive(web)
    with web.engine.begin() as connection:
        broken = sa.update(actions).where(actions.c.name == "nightly")
        connection.execute(broken.values(quarantined="it cannot be read"))


def slow(web: Web) -> None:
    alive(web)
    waits(web)
    with web.engine.begin() as connection:
        its = {"state": "running", "worker": "quick@here:1", "heartbeat_at": database_now()}
        changed = sa.update(operations).values(**its, started_at=database_now(-3700.0))
        connection.execute(changed)


def down_with_all(web: Web) -> None:
    """Let a broker be down, and an action be overdue because of it."""
    broker_down(web)
    waits(web)
    with web.engine.begin() as connection:
        late = sa.update(operations).values(recorded_at=database_now(-3600.0), cause="schedule")
        connection.execute(late)
        alert(connection, AlertSettings(), 10)


def mails(web: Web) -> None:
    alive(web)
    document = {
        "name": "mails", "when": {"cron_rule": "@daily"}, "operations": {"send_execsum": True},
        "recipients": {"groups": ["all"]},
    }  # fmt: skip
    web.client(app=APP).post("/api/actions", json=document).raise_for_status()


SITUATIONS: dict[str, tuple[Make, str, str]] = {
    "well": (alive, "ok", ""),
    "no daemon": (no_daemon, "broken", "no_daemon"),
    "a stopped daemon": (stopped, "broken", "no_daemon"),
    "the broker is down": (broker_down, "broken", "broker_down"),
    "a broker, and what follows": (
        down_with_all, "broken", "broker_down queue_behind action_overdue"
    ),
    "a run is slow": (slow, "attention", "run_slow"),
    "no worker": (no_worker, "broken", "no_worker"),
    "no worker of an application": (no_worker_of_an_application, "broken", "no_worker"),
    "no worker for jobs": (no_job_worker, "broken", "no_worker"),
    "a follower is lost": (follower_lost, "attention", "workers_lost"),
    "a queue is behind": (behind, "attention", "queue_behind"),
    "nothing reads a queue": (unread, "broken", "queue_unread"),
    "a pause": (paused, "attention", "paused"),
    "a clock is off": (skewed, "attention", "clock"),
    "locked rows": (locked, "attention", "locked"),
    "a notice is refused": (undelivered, "attention", "notice_refused"),
    "a step module is broken": (unloaded, "broken", "step_failed"),
    "an action failed": (failed, "attention", "action_failed"),
    "an action was missed": (missed_one, "attention", "action_missed"),
    "an action is quarantined": (quarantined, "broken", "quarantined"),
    "mail has no server": (mails, "ok|attention", "mail_unset"),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_all_doors_agree(web: Web, browse: Browse, situation: str) -> None:
    make, state, kinds = SITUATIONS[situation]
    make(web)
    client, viewer = web.client(), web.client(Role.VIEWER, APP)
    browser = browse(web)
    web.app.state.overviews.forget()
    web.app.state.status.forget()

    status = client.get("/api/status").raise_for_status().json()
    verdict = status["verdict"]

    assert verdict["state"] in state.split("|")
    assert set(verdict["counts"]) == set(kinds.split())
    assert client.get("/api/overview").json()["verdict"] == verdict
    assert verdict["sentence"] in _text(browser.get("/"))
    assert verdict["sentence"] in _text(browser.get("/health"))
    of_app = viewer.get("/api/overview").json()["verdict"]
    assert of_app["sentence"] in _text(browser.get(f"/apps/{APP}"))
    assert _in_metrics(client) == verdict["counts"]
    of_actions = sum(verdict["counts"].get(one, 0) for one in OF_ACTIONS)
    assert status["actions"]["unhealthy"] == of_actions
    listed = client.get("/api/actions", params={"standing": "troubled", "all_apps": True}).json()
    assert len(listed) == of_actions
    troubles = [one["text"] for one in client.get("/api/doctor").json() if one["level"] != "ok"]
    for one in verdict["findings"]:
        assert one["kind"] in OF_ACTIONS or one["text"] in troubles


def test_a_small_app_is_judged_by_its_own(web: Web) -> None:
    failed(web)
    follower_lost(web)
    web.client().put(
        "/api/apps/bakery", json={"name": "bakery"}, headers={"If-None-Match": "*"}
    ).raise_for_status()

    shop, bakery = (
        web.client(Role.VIEWER, app).get("/api/overview").json()["verdict"]
        for app in (APP, "bakery")
    )

    assert (shop["state"], shop["counts"]) == ("attention", {"action_failed": 1})
    assert (bakery["state"], bakery["counts"]) == ("ok", {})


OF_ACTIONS = ("quarantined", "action_failed", "action_missed", "action_overdue", "never_ran")


def _text(page: httpx.Response) -> str:
    plain = re.sub(r"<[^>]+>", "", page.text)
    return plain.replace("&#39;", "'").replace("&#34;", '"').replace("&quot;", '"')


def _in_metrics(client: httpx.Client) -> dict[str, int]:
    sample = re.compile(r'^minutebook_findings\{kind="(\w+)",severity="\w+"\} (\S+)$', re.M)
    found = sample.findall(client.get("/metrics").text)
    return {kind: int(float(count)) for kind, count in found}
