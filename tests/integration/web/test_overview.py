"""The overview, the search and the history of actions, on each store."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.roles import Role
from models.sql import read_clock, upsert_one
from models.store import overview as stored
from models.store import ticks
from models.store.operations.end import known_after
from models.tables import action_state, operations
from services import changes
from services.actions.page import action_page
from services.overview import figures as counted
from services.runs import run
from tests.celery_messages import TASK, celery_action
from tests.factories import row_of, update_operation
from tests.integration.web.conftest import APP, NIGHTLY, Web, begin
from tests.ticks import MINUTE
from tests.transactions import act, clock_of, execute, fetched

HEALTHY = "All is well."


def tick(web: Web, ago: timedelta = timedelta(0), **figures: Any) -> None:
    """Store the report of a tick, as the daemon does."""
    act(web.engine, ticks.report, "here:1", clock_of(web.engine) - ago, 5.0, figures)


def ended(web: Web, action: str, state: str, **values: Any) -> UUID:
    """Run an action of the small app `shop`, and end its operation."""
    id = run(web.shop, action).id
    now = clock_of(web.engine)
    begin(web, id, now - MINUTE, heartbeat_at=now)
    if state != "running":
        update_operation(web.engine, id, state=state, finished_at=now, **values)
        # As the worker does that ends it.
        key = {"action_uid": row_of(web.engine, id)["action_uid"], "subject": ""}
        known = {**key, **known_after(OperationState(state), now)}
        act(web.engine, upsert_one, action_state, known, (action_state.c.action_uid,))
    return id


def missed(web: Web, at: datetime | None = None) -> None:
    """Let a tick record that `nightly`, which ran once, missed an occurrence, now by default."""
    row = fetched(web.engine, sa.select(operations)).mappings().one()
    late = dict.fromkeys(("finished_at", "occurrence_at"), at or clock_of(web.engine))
    never = dict.fromkeys(("first_started_at", "started_at"))
    its = {"id": uuid4(), "state": "missed", "reason": "too late", "cause": "schedule"}
    execute(web.engine, sa.insert(operations).values({**row, **late, **never, **its}))


@pytest.fixture
def client(web: Web) -> httpx.Client:
    return web.client()


def overview(client: httpx.Client, **query: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/overview", params=query).raise_for_status().json()
    return found


def test_what_failed_is_named_with_its_remedy_until_a_later_run_succeeds(
    web: Web, client: httpx.Client
) -> None:
    tick(web)
    id = ended(web, "nightly", "failed", error="the server said no")

    shown = overview(client)

    assert (shown["tone"], shown["sentence"]) == ("warn", "1 action needs attention.")
    (one,) = shown["verdict"]["findings"]
    assert (one["action"], one["kind"], one["reason"], one["operation"]) == (
        "nightly",
        "action_failed",
        "the server said no",
        str(id),
    )
    first = shown["actions"][0]
    assert (first["name"], first["state"]) == ("nightly", "failed")
    assert [(run["id"], run["state"], run["took_s"]) for run in first["runs"]] == [
        (str(id), "failed", 60.0)
    ]


def test_the_first_actions_are_those_with_problems_then_running_then_the_next(
    web: Web, client: httpx.Client
) -> None:
    # Paused, it has no next run, not even in the hour before its own time.
    client.post("/api/actions/nightly:pause", params={"app": APP}).raise_for_status()
    names = {"late": 600, "runs": 900, "soon": 300, "failed": 1200}
    stored = [{**NIGHTLY, "name": name, "when": {"every": every}} for name, every in names.items()]
    changes.add(web.shop, stored)
    ended(web, "runs", "running")
    ended(web, "failed", "failed")

    shown = overview(client, timeline="true")

    in_order = [one["name"] for one in shown["actions"] if one["name"] != "maintenance"]
    assert in_order == ["failed", "runs", "soon", "late", "nightly"]
    assert [one["state"] for one in shown["actions"][:3]] == ["failed", "running", None]


def test_an_overview_counts_what_ran_waits_and_is_due(web: Web, client: httpx.Client) -> None:
    soon = {**NIGHTLY, "name": "soon", "when": {"every": 600}}
    changes.add(web.shop, [soon])
    ended(web, "nightly", "failed")
    missed(web)
    on_time, late = (ended(web, "soon", "success") for _ in range(2))
    for id, lateness in ((on_time, 1), (late, 90)):
        due = clock_of(web.engine) - MINUTE - timedelta(seconds=lateness)
        update_operation(web.engine, id, cause="schedule", occurrence_at=due)
    run(web.shop, "soon")

    figures = overview(client)["figures"]

    assert (figures["runs"], figures["failed"], figures["missed"]) == (5, 1, 1)
    assert (figures["hours"][-1]["runs"], figures["hours"][-1]["failed"]) == (5, 1)
    assert (figures["on_time"], figures["waiting"]) == (0.5, 1)
    assert figures["due"] >= 1


def test_of_a_busy_hour_some_are_counted(
    web: Web, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stored, counted):
        monkeypatch.setattr(module, "MOST_COUNTED", 2)
    for _ in range(3):
        ended(web, "nightly", "failed")

    figures = overview(client)["figures"]

    assert (figures["runs"], figures["failed"], figures["are_more"]) == (2, 2, True)


def test_errors_are_grouped_by_their_text(web: Web, client: httpx.Client) -> None:
    for number in (7, 12):
        ended(web, "nightly", "failed", error=f"no printer in room {number}")
    ended(web, "nightly", "failed", error=" ")
    last = ended(web, "nightly", "failed", error="no such host")

    groups = overview(client)["error_groups"]

    told = [(one["text"], one["count"], one["action_count"]) for one in groups]
    assert told == [("no printer in room …", 2, 1), ("no such host", 1, 1)]
    assert groups[1]["operation"] == str(last)
    assert groups[0]["actions"][0]["action"] == "nightly"


def test_what_runs_is_shown_and_all_is_well(web: Web, client: httpx.Client) -> None:
    tick(web)
    id = ended(web, "nightly", "running")

    shown = overview(client)

    assert (shown["tone"], shown["sentence"]) == ("busy", HEALTHY)
    assert shown["figures"]["running"] == 1
    assert [one["id"] for one in shown["running"]] == [str(id)]


def test_a_gap_between_ticks_is_an_outage(web: Web, client: httpx.Client) -> None:
    with web.engine.begin() as connection:
        now = read_clock(connection)
        for ago in (30, 29, 10, 9, 0):
            ticks.report(connection, "here:1", now - ago * MINUTE, 5.0, {"recorded": 3})

    shown = overview(client, timeline="true")["timeline"]

    lengths = [
        datetime.fromisoformat(one["until"]) - datetime.fromisoformat(one["since"])
        for one in shown["outages"]
    ]
    assert lengths == [19 * MINUTE, 9 * MINUTE]


def test_one_small_app_learns_nothing_of_what_ticks_did_for_others(web: Web) -> None:
    tick(web, recorded=7, downtime={"most_missed": [{"name": "of another app", "missed": 3}]})
    of_shop = web.client(Role.VIEWER, APP)

    shown = overview(of_shop)

    assert shown["daemon"]["report"] == {}
    assert "of another app" not in of_shop.get("/api/overview").text


def names(client: httpx.Client, **query: Any) -> list[str]:
    found = client.get("/api/actions", params={"app": APP, **query}).raise_for_status()
    return [one["name"] for one in found.json()]


def test_a_search_finds_words_in_any_order_and_standing(web: Web, client: httpx.Client) -> None:
    documents = [
        {**NIGHTLY, "name": "weekly report", "owner": "Sales"},
        {**NIGHTLY, "name": "100% sure", "active": False},
    ]
    changes.add(web.shop, documents)
    ended(web, "nightly", "failed")

    uid = celery_action(web.engine, name="close").uid

    assert names(client, q="REPORT sales") == ["weekly report"]
    assert names(client, q=str(uid), app="default") == ["close"]
    assert names(client, q=f"clo {uid.hex[:8].upper()}", app="default") == ["close"]
    assert names(client, task=TASK, app="default") == ["close"]
    assert names(client, task=TASK) == names(client, task=TASK[1:], app="default") == []
    assert names(client, q="100%") == ["100% sure"]
    assert names(client, q="%") == ["100% sure"]
    assert names(client, standing="paused") == ["100% sure"]
    assert "100% sure" not in names(client, standing="active")
    assert names(client, owner="Sales") == ["weekly report"]
    assert client.get("/api/actions?standing=gone").status_code == 422


def test_the_year_of_an_action_counts_by_days(unserved: Web) -> None:
    ended(unserved, "nightly", "success")

    year = action_page(unserved.shop, "nightly", 1, "UTC").year

    assert [one.counts for one in year.days.values()] == [{"success": 1}]


def test_an_action_of_each_minute_comes_on_each_day(web: Web, client: httpx.Client) -> None:
    often = {**NIGHTLY, "name": "often", "when": {"cron_rule": "* * * * *", "timezone": "UTC"}}
    changes.add(web.shop, [often])

    (lane,) = (
        one
        for one in overview(client, timeline="true")["timeline"]["lanes"]
        if one["action"] == "often"
    )

    # Of an installation that is not an hour old: a bar a minute, and half an hour ahead.
    assert len(lane["coming"]) in {29, 30}
