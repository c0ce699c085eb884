"""The weekly update of the demo: from its JSON to the mails, by commands, ticks and a worker."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from models.fingerprint import operation_id
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT
from tests.factories import set_back

DEMO = ROOT / "examples" / "demo"
RECEIVERS = [
    "Ana Prieto <ana@example.com>",
    "Ben Okafor <ben@example.com>",
    "Toco <toco@tou.can>",
]
SEVEN = datetime(2027, 1, 4, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris


def add_the_demo(installation: Installation) -> UUID:
    """Add the demo's small app, users and weekly update; return the action's uid."""
    shutil.copytree(DEMO / "data", installation.home / "data" / "demo")
    installation.cli("app", "apply", str(DEMO / "app.json"))
    installation.cli("user", "import", str(DEMO / "users.json"), "--app", "demo")
    weekly = str(DEMO / "actions" / "weekly-update.json")
    [added] = installation.cli("action", "add", weekly, "--app", "demo")
    # As if it had been added a minute before seven: on whatever day.
    set_back(installation.engine, UUID(added["uid"]), SEVEN - timedelta(minutes=1))
    return UUID(added["uid"])


def tick_at(installation: Installation, minutes: int) -> None:
    at = SEVEN + timedelta(minutes=minutes, seconds=30)
    installation.tick("--at", at.strftime("%Y-%m-%dT%H:%M:%SZ"))


@pytest.mark.parametrize("store", ["postgresql"])
def test_it_is_recorded_sent_and_run_once_under_its_documented_id(
    installation: Installation,
) -> None:
    uid = add_the_demo(installation)
    id = operation_id(uid, SEVEN)

    tick_at(installation, -1)
    before = installation.rows(uid)
    installation.broker.stop()
    tick_at(installation, 0)
    recorded = [(row["id"], row["state"]) for row in installation.rows(uid)]
    installation.broker.start()
    for minute in range(1, 5):
        tick_at(installation, minute)
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda minute: tick_at(installation, minute), [5, 5]))
    sent = installation.broker.messages("heavy")
    installation.worker("heavy")
    row = installation.becomes(id, "success")

    assert (before, recorded, sent) == ([], [(id, "pending")], [(str(id), 1)])
    assert row["triggerer"] == 'Scheduled action "weekly update"'
    assert [step["name"] for step in row["steps"]] == ["refresh", "publish", "send_execsum"]
    mails = [path.read_text() for path in (installation.home / "mail").glob("*.eml")]
    lines = [line for mail in mails for line in mail.splitlines()]
    # Nobody who is inactive or was never activated; and no mail about new data.
    assert sorted(line[4:] for line in lines if line.startswith("To: ")) == RECEIVERS
