"""The pictures of the README: PICTURES=docs/img writes them there."""

import os
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from models.roles import Role
from models.sql import upsert
from models.store import ticks
from models.tables import action_cursor, action_state, operations
from tests.browser import Chromium
from tests.integration.web.conftest import APP, Web
from tests.ticks import HOUR
from tests.transactions import clock_of

ERROR = "SMTP server mail.example.com:587 refused the connection after 3 tries"
# Name, rule, hours between two runs, days of history, and the states of its last runs.
ACTIONS: tuple[tuple[str, dict[str, Any], float, int, tuple[str, ...]], ...] = (
    ("refresh rates", {"cron_rule": "*/30 * * * *"}, 0.5, 4, ("success",)),
    ("nightly import", {"cron_rule": "30 2 * * *"}, 24, 300, ("success",)),
    ("invoice reminders", {"cron_rule": "0 */4 * * *"}, 4, 300, ("failed", "failed", "failed")),
    ("backup", {"cron_rule": "20 */3 * * *"}, 3, 200, ("missed", "success")),
    ("weekly update", {"cron_rule": "0 7 * * mon"}, 168, 300, ("success",)),
)


@pytest.fixture
def lived_in(site: Web) -> Web:
    web, chance = site, random.Random(4)
    client = web.client(Role.ADMIN, APP)
    now = clock_of(web.engine).replace(second=0, microsecond=0)
    small_app_id = web.shop.small_app.id
    for name, when, hours, days, last in ACTIONS:
        document = {
            "name": name,
            "owner": "billing",
            "when": when,
            "operations": {"maintenance": {}},
        }
        uid = UUID(client.post("/api/actions", json=document).json()["uid"])
        coming = client.get(f"/api/actions/{uid}/next").json()
        next_at = datetime.fromisoformat(coming[0]["utc"])
        rows = list(_past(uid, small_app_id, next_at, (hours, days, last), chance))
        ended = [row for row in rows if row["state"] == "success"]
        with web.engine.begin() as connection:
            connection.execute(sa.insert(operations), rows)
            in_row = sum(state == "failed" for state in last)
            state = {
                "action_uid": uid,
                "subject": "",
                "last_state": last[0] if last[0] != "missed" else "success",
                "last_run_at": rows[-1]["finished_at"],
                "last_success_at": ended[-1]["finished_at"],
                "run_number": len(rows),
                "failures_in_row": in_row,
                "bad_runs_in_a_row": in_row,
            }
            upsert(connection, action_state, [state])
            cursor = sa.update(action_cursor).where(action_cursor.c.action_uid == uid)
            connection.execute(cursor.values(next_occurrence_at=next_at))
    with web.engine.begin() as connection:
        connection.execute(sa.insert(operations), [_running(rows[-1], now)])
        report = {"recorded": 2, "sent": 2, "decided": 5}
        ticks.report(connection, "scheduler:1", now, 12.0, report)
    return web


def _running(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    return {
        **row,
        "id": uuid4(),
        "state": "running",
        "triggerer": "Manual run by ann",
        "occurrence_at": now,
        "started_at": now - timedelta(minutes=2),
        "heartbeat_at": now,
        "finished_at": None,
        "progress": 0.61,
        "message": "sending 6,120 of 10,000 mails",
        "eta_at": now + timedelta(minutes=2),
    }


def _past(
    uid: UUID,
    small_app_id: int,
    next_at: datetime,
    kind: tuple[float, int, tuple[str, ...]],
    chance: random.Random,
) -> Iterator[dict[str, Any]]:
    hours, days, last = kind
    count = int(days * 24 / hours)
    for number in range(count, 0, -1):
        at = next_at - number * hours * HOUR
        odd = chance.choices(("success", "failed", "partial"), (96, 2, 2))[0]
        state = last[number - 1] if number <= len(last) else odd
        ran = state != "missed"
        took = timedelta(seconds=chance.gammavariate(4, 2))
        yield {
            "id": uuid4(),
            "small_app_id": small_app_id,
            "action_uid": uid,
            "revision": 1,
            "occurrence_at": at,
            "state": state,
            "reason": None if ran else "too late",
            "triggerer": "Scheduled action",
            "queue": "quick",
            "task": "run",
            "recorded_at": at,
            "not_before": at,
            "sent_at": at if ran else None,
            "first_started_at": at if ran else None,
            "started_at": at if ran else None,
            "finished_at": at + took,
            "worker": "quick@shop:1" if ran else None,
            "error": ERROR if state in {"failed", "partial"} else None,
        }


@pytest.mark.parametrize(("scheme", "suffix"), [("light", ""), ("dark", "-dark")])
def test_pictures(
    chromium: Chromium, lived_in: Web, tmp_path: Path, scheme: Any, suffix: str
) -> None:
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    with chromium.tab(lived_in.url, lived_in.token(), color_scheme=scheme) as tab:
        page = tab.page
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto("/")
        expect(page.locator(".verdict h1")).to_have_text("2 actions need attention.")
        page.screenshot(path=folder / f"dashboard{suffix}.png")
        page.click("main a:text-is('invoice reminders') >> nth=0")
        expect(page.locator(".verdict h2")).to_have_text("Failed 3 times in a row")
        expect(page.locator(".verdict a")).to_have_text(ERROR)
        expect(page.locator(".verdict button")).to_have_text("Retry")
        page.screenshot(path=folder / f"dashboard-action{suffix}.png")

    assert tab.faults == []
    assert (folder / f"dashboard{suffix}.png").stat().st_size > 10_000
