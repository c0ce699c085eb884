"""The brief's weekly update, from its JSON to the mails, by the command line."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT
from tests.factories import set_back

DEMO = ROOT / "examples" / "demo"
SEVEN = datetime(2027, 1, 4, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris


def add_the_demo(installation: Installation) -> str:
    """Add the demo's small app, users and weekly update; return the action's uid."""
    shutil.copytree(DEMO / "data", installation.home / "data" / "demo")
    installation.cli("app", "add", str(DEMO / "app.json"))
    installation.cli("user", "import", str(DEMO / "users.json"), "--app", "demo")
    weekly = str(DEMO / "actions" / "weekly-update.json")
    [added] = installation.cli("action", "add", weekly, "--app", "demo")
    # As if it, and the app's maintenance, had been added a minute before seven: on whatever day.
    for one in installation.cli("action", "list", "--app", "demo"):
        set_back(installation.engine, UUID(one["uid"]), SEVEN - timedelta(minutes=1))
    return str(added["uid"])


def tick_at(installation: Installation, minutes: int) -> str:
    at = SEVEN + timedelta(minutes=minutes, seconds=30)
    return installation.tick("--at", at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def rows(installation: Installation) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = installation.cli("operation", "list", "--app", "demo")
    return listed


def test_the_weekly_update_is_recorded_sent_and_run_once_under_its_documented_id(
    installation: Installation,
) -> None:
    uid = add_the_demo(installation)
    id = str(uuid5(NAMESPACE_OID, f"{uid} | 2027-01-04T06:00:00Z"))
    installation.broker.stop()

    tick_at(installation, 0)
    unsent = rows(installation)
    installation.broker.start()
    for minute in range(1, 5):
        tick_at(installation, minute)
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda minute: tick_at(installation, minute), [5, 5]))
    sent = rows(installation)
    messages = installation.broker.messages("heavy")
    installation.worker("heavy")
    installation.becomes(UUID(id), "success")

    assert [(row["id"], row["state"]) for row in unsent] == [(id, "pending")]
    assert [(row["id"], row["state"]) for row in sent] == [(id, "queued")]
    assert messages == [(id, 1)]
    shown = installation.cli("operation", "show", id)
    assert shown["occurrence_at"].startswith("2027-01-04T06:00:00")
    assert [(step["name"], step["state"]) for step in shown["steps"]] == [
        ("refresh", "success"),
        ("publish", "success"),
        ("send_execsum", "success"),
    ]
    mails = [path.read_text() for path in (installation.home / "mail").glob("*.eml")]
    to = sorted(line for mail in mails for line in mail.splitlines() if line.startswith("To:"))
    assert ["ana@example.com" in to[0], "ben@example.com" in to[1], "toco@tou.can" in to[2]] == [
        True, True, True,
    ]  # fmt: skip
    assert len(to) == 3


@pytest.mark.parametrize("store", ["sqlite"])
def test_from_the_second_weekly_update_on_the_mails_have_charts(
    installation: Installation,
) -> None:
    add_the_demo(installation)
    installation.worker("heavy")

    for _ in range(2):
        installation.cli("action", "run", "weekly update", "--app", "demo", "--wait")

    mails = [path.read_text() for path in (installation.home / "mail").glob("*.eml")]
    summaries = [mail for mail in mails if ".send_execsum." in mail]
    assert len(summaries) == 6
    assert sum("Content-Type: image/png" in mail for mail in summaries) == 3
