"""Toucan Toco: the weekly update of its page, from its JSON to the mails, by the command line."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import pytest

from models.values import format_instant
from tests.acceptance.five_systems.table import Table
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT
from tests.factories import set_back

DEMO = ROOT / "examples" / "demo"
MONDAY = "2027-01-04T06:00:00Z"
RECEIVERS = [
    "Ana Prieto <ana@example.com>",
    "Ben Okafor <ben@example.com>",
    "Toco <toco@tou.can>",
]
SENT = {"queued", "running", "success"}
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


def state_of(installation: Installation, id: str) -> str:
    """Return the state of an operation, as another program asks for it."""
    return str(installation.cli("operation", "state", id)["state"])


def id_of(uid: str, occurrence: str) -> str:
    """Return the id that the brief prescribes."""
    return str(uuid5(NAMESPACE_OID, f"{uid} | {occurrence}"))


def test_the_weekly_update_is_recorded_sent_and_run_once_under_its_documented_id(
    installation: Installation, table: Table
) -> None:
    uid = is_added(installation, table)
    is_sent_once(installation, table, uid)
    is_run(installation, table, id_of(uid, MONDAY))
    is_late(installation, table, uid)


def is_added(installation: Installation, table: Table) -> str:
    uid = add_the_demo(installation)
    document = installation.cli("action", "show", uid, "--app", "demo")["document"]
    table.tell("T7, T9: booleans may be strings", "`action add` of the brief's JSON",
               (document["active"], document["operations"]["publish"]["design"]),
               (True, False))  # fmt: skip
    return uid


def is_sent_once(installation: Installation, table: Table, uid: str) -> None:
    id = id_of(uid, MONDAY)
    tick_at(installation, -1)
    table.tell("T11: not before Monday 07:00 in Paris", "a tick at 06:59:30",
               rows(installation), [])  # fmt: skip
    installation.broker.stop()
    tick_at(installation, 0)
    table.tell("c4: recorded before it is sent, under the id of `<uid> / <occurrence>` (T29, T30)",
               "a tick at 07:00:30, the broker is down",
               [(row["id"], row["state"]) for row in rows(installation)],
               [(id, "pending")])  # fmt: skip
    installation.broker.start()
    for minute in range(1, 5):
        tick_at(installation, minute)
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda minute: tick_at(installation, minute), [5, 5]))
    table.tell("T34, c3: five ticks over one occurrence, two at once: sent once, as a heavy task",
               "ticks at 07:01 to 07:05, the last by two daemons; the messages",
               installation.broker.messages("heavy"), [(id, 1)])  # fmt: skip
    row = installation.row(UUID(id))
    table.tell("T27, T31: its task and trigger label", "the operation's row",
               (row["task"], row["triggerer"]),
               ("execute_scheduled_action", 'Scheduled action "weekly update"'))  # fmt: skip


def is_run(installation: Installation, table: Table, id: str) -> None:
    installation.worker("heavy")
    installation.becomes(UUID(id), "success")
    table.tell("T32: `get_operation_state` by the crafted id", "`operation state`",
               state_of(installation, id), "success")  # fmt: skip
    steps = installation.cli("operation", "show", id)["steps"]
    table.tell("T10, b1: refresh, publish, send, in this order", "`operation show`",
               [(step["name"], step["state"]) for step in steps],
               [(name, "success") for name in ("refresh", "publish", "send_execsum")])  # fmt: skip
    mails = [path.read_text() for path in (installation.home / "mail").glob("*.eml")]
    lines = [line for mail in mails for line in mail.splitlines()]
    to = sorted(line.removeprefix("To: ") for line in lines if line.startswith("To: "))
    table.tell("T22, T23: the user and the group, but nobody inactive or never activated",
               "the mails", to, RECEIVERS)  # fmt: skip
    table.tell("T36: no `new data available` mail", "the mails",
               [mail for mail in mails if ".send_execsum." not in mail], [])  # fmt: skip


def is_late(installation: Installation, table: Table, uid: str) -> None:
    week = 7 * 24 * 60
    tick_at(installation, week + 4)
    table.tell("T35: down from 07:00 to 07:03: still sent", "a week later, a tick at 07:04:30",
               state_of(installation, id_of(uid, "2027-01-11T06:00:00Z")) in SENT,
               True)  # fmt: skip
    tick_at(installation, 2 * week + 6)
    table.tell("T35, c1: down until 07:06: lost; here it is recorded as missed",
               "another week later, a tick at 07:06:30",
               state_of(installation, id_of(uid, "2027-01-18T06:00:00Z")), "missed")  # fmt: skip
    # An hour earlier by UTC in summer; and the day after.
    tick_at(installation, 26 * week - 60)
    tick_at(installation, 26 * week - 60 + 24 * 60)
    table.tell("T11: 07:00 in Paris is 05:00 UTC in July, and on Mondays alone",
               "ticks on Monday and Tuesday, 5 and 6 July 2027, at 05:00:30Z",
               format_instant(installation.rows(UUID(uid))[-1]["occurrence_at"]),
               "2027-07-05T05:00:00Z")  # fmt: skip
    table.tell("T16: maintenance, daily at 4 AM, in the app's zone", "the same ticks",
               rows(installation)[0]["occurrence_at"], "2027-07-06T02:00:00Z")  # fmt: skip
    installation.cli("action", "pause", uid, "--app", "demo")
    before = len(rows(installation))
    tick_at(installation, 27 * week - 60)
    table.tell("T8: an action that is not active is not considered",
               "`action pause`, a tick on 12 July at 05:00:30Z: new operations",
               len(rows(installation)) - before, 0)  # fmt: skip


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
