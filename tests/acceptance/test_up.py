"""`minutebook up`, commands that follow a run, and the weekly update of the demo, by processes."""

import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.fingerprint import operation_id
from models.tables import actions
from runtime.config import load_settings
from tests.acceptance.installation import Installation, installed
from tests.acceptance.processes import ROOT, Process, kill, until
from tests.factories import set_back
from tests.servers import Broker
from tests.ticks import MINUTE, SECOND
from tests.transactions import fetched

DEMO = ROOT / "examples" / "demo"
RECEIVERS = [
    "Ana Prieto <ana@example.com>",
    "Ben Okafor <ben@example.com>",
    "Toco <toco@tou.can>",
]
SEVEN = datetime(2027, 1, 4, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris


@pytest.fixture
def home(tmp_path: Path, own_broker: Broker) -> Iterator[Installation]:
    """An empty home folder: SQLite and the embedded broker."""
    with installed(load_settings(tmp_path, {}), own_broker, "") as made:
        yield made


def start_up(home: Installation, *arguments: str) -> Process:
    """Start `minutebook up`; it has its broker, its daemon ticked and its workers are ready."""
    up = home.processes.start("up", home.command("up", *arguments))
    for said in ("is ready for quick", "is ready for heavy", "is ready for default", "tick "):
        up.said(said)
    return up


def sent_rows(home: Installation) -> list[sa.RowMapping]:
    return [row for row in home.rows() if row["state"] != "missed"]


def test_up_runs_the_demo_within_two_ticks_and_ends_by_ctrl_c_leaving_nobody(
    home: Installation,
) -> None:
    up = start_up(home, "--demo")
    its = sa.select(actions.c.uid).where(actions.c.name == "every minute")
    # As if the daemon had slept.
    set_back(home.engine, fetched(home.engine, its).scalar_one(), home.now() - 2 * MINUTE)

    until(lambda: len(sent_rows(home)) >= 1, "an operation is recorded and sent")
    row = home.becomes(sent_rows(home)[0]["id"], "success")
    up.send(signal.SIGINT)

    assert up.ended() == 0
    assert [(step["name"], step["state"]) for step in row["steps"]] == [
        ("refresh", "success"),
        ("publish", "success"),
    ]
    until(lambda: not home.processes.left(), "no process is left")


def test_a_killed_broker_is_started_again_and_nothing_is_lost(home: Installation) -> None:
    start_up(home)
    left = home.processes.left()
    [broker] = [one for one in left if "broker.sock" in " ".join(one.cmdline())]

    kill(broker.pid)
    id = home.operation(home.action())

    home.becomes(id, "success")
    assert len(home.trace.starts(id)) == 1


def test_a_killed_up_leaves_nobody_and_starts_again(home: Installation) -> None:
    up = start_up(home)

    up.kill()
    until(lambda: not home.processes.left(), lambda: f"nobody is left: {home.processes.left()}")
    start_up(home)

    id = home.operation(home.action())
    home.becomes(id, "success")


def watching(installation: Installation, id: UUID, *command: str) -> Process:
    return installation.processes.start("follows", installation.command(*command, str(id)))


@pytest.mark.parametrize("store", ["sqlite"])
def test_an_operation_is_followed_to_its_end_and_its_log_as_well(
    installation: Installation,
) -> None:
    id = installation.held()
    watch = watching(installation, id, "run", "watch")
    as_json = watching(installation, id, "--json", "run", "watch")
    log = watching(installation, id, "run", "logs", "-f")
    watch.said("pending")
    installation.send()
    installation.worker()
    watch.said("running")
    log.said("step trace_one of attempt 1")
    installation.go.touch()

    assert (watch.ended(), as_json.ended(), log.ended()) == (0, 0, 0)
    states = [line.split(":")[0].split(",")[0] for line in watch.text().splitlines()]
    assert list(dict.fromkeys(states))[-2:] == ["running", "success"]
    assert as_json.text().splitlines()[-1].startswith('{"id": ')
    assert log.text().count("step trace_one of attempt 1") == 1


@pytest.mark.parametrize("store", ["sqlite"])
def test_what_goes_wrong_ends_the_watch_with_its_reason(installation: Installation) -> None:
    id = installation.operation(installation.action())
    watch = watching(installation, id, "run", "watch")
    watch.said("pending")

    installation.cli("run", "cancel", str(id))

    assert watch.ended() == 1
    assert watch.text().splitlines()[-1].startswith("cancelled: cancelled by ")


def add_the_demo(installation: Installation) -> UUID:
    """Add the demo's small app, users and weekly update; return the action's uid."""
    shutil.copytree(DEMO / "data", installation.home / "data" / "demo")
    installation.cli("app", "apply", str(DEMO / "app.json"))
    installation.cli("user", "import", str(DEMO / "users.json"), "--app", "demo")
    weekly = str(DEMO / "actions" / "weekly-update.json")
    [added] = installation.cli("action", "add", weekly, "--app", "demo")
    # As if it had been added a minute before seven: on whatever day.
    set_back(installation.engine, UUID(added["uid"]), SEVEN - MINUTE)
    return UUID(added["uid"])


def tick_at(installation: Installation, minutes: int) -> None:
    installation.tick_at(SEVEN + minutes * MINUTE + 30 * SECOND)


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
