"""The pictures of the README and the docs: PICTURES=docs/img writes them there."""

import os
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from PIL import Image, ImageSequence
from playwright.sync_api import Page, expect

from models.roles import Role
from models.sql import upsert
from models.store import ticks
from models.tables import action_cursor, action_state, operations
from tests.browser import Chromium
from tests.factories import update_operation
from tests.integration.web.conftest import APP, Web, begin
from tests.ticks import HOUR
from tests.transactions import act, clock_of

# Of the moving picture: GitHub shows it at most as wide, and a page should not wait for it.
FRAME = {"width": 960, "height": 600}
MOST_BYTES = 500_000
COLOURS = 64
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


class Film:
    """Screenshots of a page, each shown for a while."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._lasting: list[int] = []
        page.set_viewport_size({"width": FRAME["width"], "height": FRAME["height"]})

    def take(self, milliseconds: int) -> None:
        """Show the page as it is for so long."""
        shot = Image.open(BytesIO(self._page.screenshot()))
        # Without dither: a flat colour stays flat, and small.
        plain = shot.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        self._frames.append(plain)
        self._lasting.append(milliseconds)

    def save(self, path: Path) -> None:
        first, *rest = self._frames
        first.save(path, save_all=True, append_images=rest, duration=self._lasting, loop=0)


def test_the_first_minute_as_a_moving_picture(
    chromium: Chromium, site: Web, tmp_path: Path
) -> None:
    path = Path(os.environ.get("PICTURES") or tmp_path) / "first-minute.gif"
    act(site.engine, ticks.report, "scheduler:1", clock_of(site.engine), 12.0, {})
    with chromium.tab(site.url, site.token()) as tab:
        film = Film(tab.page)
        _make_an_action(tab.page, film.take)
        _see_it_run(tab.page, site, film.take)
        film.save(path)

    with Image.open(path) as made:
        assert made.size == tuple(FRAME.values())
        assert sum(1 for _ in ImageSequence.Iterator(made)) == 10
    assert path.stat().st_size < MOST_BYTES
    assert tab.faults == []


def _make_an_action(page: Page, take: Callable[[int], None]) -> None:
    page.goto("/")
    expect(page.locator(".verdict h1")).to_have_text("All is well.")
    take(1500)
    page.goto(f"/apps/{APP}/new-action")
    take(800)
    page.fill("[name=name]", "tidy up")
    take(800)
    page.select_option("[name=rhythm]", "weekdays")
    page.fill("[name=time]", "09:30")
    page.check("[data-step=maintenance]")
    expect(page.locator("#meaning")).to_contain_text("at 09:30 on Monday to Friday")
    take(2500)
    page.click("button:text-is('Save')")
    expect(page.locator(".notice span")).to_have_text("tidy up is saved.")
    take(1800)


def _see_it_run(page: Page, web: Web, take: Callable[[int], None]) -> None:
    """Run it, and play its worker."""
    page.click("text=Run now")
    state = page.locator("#live .verdict h2")
    expect(state).to_have_text("Queued")
    take(1000)
    id = UUID(page.url.rpartition("/")[2])
    now = clock_of(web.engine)
    step = {"name": "maintenance", "state": "running"}
    begin(web, id, now, worker="quick@shop:1", steps=[step])
    for processed in (120, 340, 480):
        progress = {"processed": processed, "total": 500, "progress": processed / 500}
        update_operation(web.engine, id, **progress, message="removing old rows")
        expect(page.locator("#live")).to_contain_text(f"{processed} of 500")
        take(700)
    ended = {"state": "success", "finished_at": now + timedelta(seconds=4), "processed": 500}
    update_operation(web.engine, id, **ended, steps=[{**step, "state": "success"}])
    expect(state).to_have_text("Success")
    take(3000)
