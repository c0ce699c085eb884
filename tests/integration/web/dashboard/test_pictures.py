"""The pictures of the README: PICTURES=docs/img writes them there."""

import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from models.roles import Role
from models.sql import upsert
from models.tables import action_cursor, action_state, operations
from services import changes
from services.runs import run
from tests.browser import Chromium
from tests.factories import row_of
from tests.integration.web.conftest import APP, NIGHTLY, Web, begin
from tests.integration.web.test_overview import tick
from tests.ticks import HOUR, MINUTE
from tests.transactions import act, clock_of, execute

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
    client, chance = site.client(Role.ADMIN, APP), random.Random(4)
    now = clock_of(site.engine).replace(second=0, microsecond=0)
    for name, when, hours, days, last in ACTIONS:
        changes.add(site.shop, [{**NIGHTLY, "name": name, "owner": "billing", "when": when}])
        coming = client.get(f"/api/actions/{name}/next").json()[0]["utc"]
        next_at = datetime.fromisoformat(coming)
        id = run(site.shop, name).id
        row = row_of(site.engine, id)
        count = int(days * 24 / hours)
        odd = chance.choices(("success", "failed", "partial"), (96, 2, 2), k=count)
        states = [*odd[len(last) :], *reversed(last)]
        instants = [next_at - number * hours * HOUR for number in range(count, 0, -1)]
        rows = [row | _past(at, state, chance) for at, state in zip(instants, states, strict=True)]
        execute(site.engine, sa.insert(operations), rows)
        succeeded = [one for one in rows if one["state"] == "success"]
        in_row = sum(state == "failed" for state in last)
        known = {
            "action_uid": row["action_uid"],
            "subject": "",
            "last_state": last[0] if last[0] != "missed" else "success",
            "last_run_at": rows[-1]["finished_at"],
            "last_success_at": succeeded[-1]["finished_at"],
            "run_number": count,
            "failures_in_row": in_row,
            "bad_runs_in_a_row": in_row,
        }
        act(site.engine, upsert, action_state, [known])
        cursor = sa.update(action_cursor).where(action_cursor.c.action_uid == row["action_uid"])
        execute(site.engine, cursor.values(next_occurrence_at=next_at))
        if name != ACTIONS[-1][0]:
            execute(site.engine, sa.delete(operations).where(operations.c.id == id))
    sends = {"progress": 0.61, "message": "sending 6,120 of 10,000 mails"}
    begin(site, id, now - 2 * MINUTE, heartbeat_at=now, eta_at=now + 2 * MINUTE, **sends)
    tick(site, recorded=2, sent=2, decided=5)
    return site


def _past(at: datetime, state: str, chance: random.Random) -> dict[str, Any]:
    """Return what a run of the past knows, beside what all of its action do."""
    has_run, has_failed = state != "missed", state in {"failed", "partial"}
    times = ("sent_at", "first_started_at", "started_at")
    return {
        **dict.fromkeys(("occurrence_at", "recorded_at", "not_before"), at),
        **dict.fromkeys(times, at if has_run else None),
        "finished_at": at + timedelta(seconds=chance.gammavariate(4, 2)),
        "id": uuid4(),
        "state": state,
        "reason": None if has_run else "too late",
        "triggerer": "Scheduled action",
        "cause": "schedule",
        "worker": "quick@shop:1" if has_run else None,
        "error": ERROR if has_failed else None,
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
