"""What all doors say of an installation is what happened to it, one thing after the other."""

import json
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.tables import action_cursor, actions, operations
from tests.acceptance.clocks import Clock
from tests.acceptance.crews import OverHttp
from tests.acceptance.doors import Doors, doors_of
from tests.acceptance.installation import MINUTE, Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.shop import Shop
from tests.factories import set_back, yearly
from tests.namespaces import own_namespaces
from tests.receiver import receiver

FAILS = {"trace_one": {"fail": 99, "permanent": True}}
HOOKS = {"SCHED_HOOK_ALLOW_PRIVATE": "true"}
AN_HOUR_S = 3600.0


@pytest.fixture
def clock(installation: Installation) -> Clock:
    """The database's clock, before any process reads it."""
    return Clock(installation)


@pytest.fixture
def doors(installation: Installation) -> Iterator[Doors]:
    with doors_of(installation, HOOKS) as made:
        yield made


def waits_unread(installation: Installation, id: UUID) -> None:
    """Let an operation have waited in its queue for a minute."""
    installation.becomes(id, "queued")
    age(installation, 60)


def age(installation: Installation, by_s: float) -> None:
    """Let what waits have waited for so long, instead of waiting."""
    unstarted = operations.c.state.in_(("pending", "queued"))
    with installation.engine.begin() as connection:
        changed = sa.update(operations).where(unstarted)
        connection.execute(changed.values(recorded_at=database_now(-by_s)))


def stop(process: Process) -> None:
    process.send(signal.SIGTERM)
    process.ended()


@pytest.mark.parametrize("store", ["sqlite"])
def test_daemons_and_brokers_come_and_go(installation: Installation, doors: Doors) -> None:
    doors.stand("broken", "no_daemon")
    first = installation.daemon()
    doors.stand("ok")
    first.send(signal.SIGTERM)
    doors.stand("broken", "no_daemon")
    second = installation.daemon()
    doors.stand("ok")
    second.freeze()
    doors.stand("broken", "no_daemon")
    second.thaw()
    doors.stand("ok")
    installation.freeze_broker()
    doors.stand("broken", "broker_down")
    installation.thaw_broker()
    doors.stand("ok")
    second.kill()
    doors.stand("broken", "no_daemon")


@pytest.mark.parametrize("store", ["postgresql"])
def test_workers_of_each_kind_come_and_go(installation: Installation, doors: Doors) -> None:
    shop = Shop(installation)
    installation.daemon(shop.settings)
    doors.stand("ok")
    ours_come_and_go(installation, doors)
    job_workers_come(installation, doors)
    followers_come_and_go(installation, doors, shop)


def ours_come_and_go(installation: Installation, doors: Doors) -> None:
    id = installation.operation(installation.action("before any worker"))
    waits_unread(installation, id)
    doors.stand("broken", "no_worker")
    worker = installation.worker(is_awaited=True)
    installation.becomes(id, "success")
    doors.stand("ok")
    worker.kill()
    id = installation.operation(installation.action("after its death"))
    waits_unread(installation, id)
    doors.stand("broken", "no_worker")
    installation.worker(is_awaited=True)
    installation.becomes(id, "success")
    doors.stand("ok")


def job_workers_come(installation: Installation, doors: Doors) -> None:
    crew = OverHttp(installation)
    crew.open()
    id = crew.due()
    waits_unread(installation, id)
    doors.stand("broken", "no_worker")
    crew.worker()
    installation.becomes(id, "success")
    doors.stand("ok")


def followers_come_and_go(installation: Installation, doors: Doors, shop: Shop) -> None:
    worker = shop.worker()
    doors.stand("ok")
    stop(worker)
    doors.stand("attention", "workers_lost")
    id = shop.due("close_day")
    waits_unread(installation, id)
    doors.stand("broken", "workers_lost", "no_worker")
    shop.worker()
    installation.becomes(id, "success")
    doors.stand("ok")


@pytest.mark.parametrize("store", ["sqlite"])
def test_actions_fail_are_missed_and_are_mended(installation: Installation, doors: Doors) -> None:
    installation.daemon()
    installation.worker(is_awaited=True)
    doors.stand("ok")
    one_fails_and_is_paused(installation, doors)
    two_fail(installation, doors)
    another_one_is_missed(installation, doors)
    a_document_is_broken_by_sql(installation, doors)
    installation.cli("action", "delete", "failing", "--yes")
    doors.stand("ok")


def fails(installation: Installation, name: str) -> None:
    """Let an action of that name fail."""
    action = installation.action(name, operations=FAILS)
    installation.becomes(installation.operation(action), "failed")


def one_fails_and_is_paused(installation: Installation, doors: Doors) -> None:
    fails(installation, "failing")
    doors.stand("attention", "action_failed")
    installation.cli("action", "pause", "failing")
    doors.stand("ok")
    installation.cli("action", "resume", "failing")
    doors.stand("attention", "action_failed")


def two_fail(installation: Installation, doors: Doors) -> None:
    fails(installation, "failing too")
    assert doors.stand("attention", "action_failed")["counts"] == {"action_failed": 2}
    installation.cli("action", "delete", "failing too", "--yes")
    assert doors.stand("attention", "action_failed")["counts"] == {"action_failed": 1}


def another_one_is_missed(installation: Installation, doors: Doors) -> None:
    now = installation.now()
    missed = installation.action("missed", when=yearly(now - 30 * MINUTE))
    set_back(installation.engine, missed.uid, now - 60 * MINUTE)
    doors.stand("attention", "action_failed", "never_ran")
    [row] = installation.awaited_rows(missed, 1)
    installation.cli("operation", "rerun", str(row["id"]))
    installation.becomes(row["id"], "success")
    doors.stand("attention", "action_failed")


def a_document_is_broken_by_sql(installation: Installation, doors: Doors) -> None:
    broken = installation.action("broken")
    document = sa.select(actions.c.document).where(actions.c.uid == broken.uid)
    with installation.engine.begin() as connection:
        good = json.loads(connection.execute(document).scalar_one())
    write(installation, broken.uid, {**good, "when": {"cron_rule": "61 * * * *"}})
    doors.stand("broken", "action_failed", "set_aside")
    write(installation, broken.uid, good)
    doors.stand("attention", "action_failed")


def write(installation: Installation, uid: UUID, document: dict[str, Any]) -> None:
    with installation.engine.begin() as connection:
        changed = sa.update(actions).where(actions.c.uid == uid)
        connection.execute(changed.values(document=json.dumps(document)))


@pytest.mark.parametrize("store", ["postgresql"])
def test_what_is_around_an_installation_is_seen(
    installation: Installation, clock: Clock, doors: Doors
) -> None:
    installation.daemon(HOOKS)
    worker = installation.worker(is_awaited=True, settings=HOOKS)
    doors.stand("ok")
    a_quiet_period_begins_and_ends(installation, doors)
    the_database_clock_goes_ahead(clock, doors)
    somebody_keeps_rows_locked(installation, doors)
    more_is_due_than_one_worker_does(installation, doors)
    a_worker_cannot_import_its_steps(installation, doors, worker)
    mail_has_no_server(installation, doors)
    a_webhook_refuses_a_notice(installation, doors)


def a_quiet_period_begins_and_ends(installation: Installation, doors: Doors) -> None:
    installation.cli("pause", "--all", "--until", "PT1H")
    doors.stand("attention", "quiet_period")
    installation.cli("resume", "--all")
    doors.stand("ok")


def the_database_clock_goes_ahead(clock: Clock, doors: Doors) -> None:
    clock.set_to(timedelta(seconds=100))
    doors.stand("attention", "clock")
    clock.set_to(timedelta(0))
    doors.stand("ok")


def somebody_keeps_rows_locked(installation: Installation, doors: Doors) -> None:
    held = installation.due_action("held")
    row = sa.select(action_cursor).where(action_cursor.c.action_uid == held.uid)
    with installation.engine.begin() as connection:
        connection.execute(row.with_for_update())
        doors.stand("attention", "locked")
    installation.becomes(installation.awaited_rows(held, 1)[0]["id"], "success")
    doors.stand("ok")


def more_is_due_than_one_worker_does(installation: Installation, doors: Doors) -> None:
    gate = installation.file("gate")
    slow = installation.action("slow", operations={"trace_one": {"until": str(gate)}})
    first = installation.operation(slow)
    installation.step_starts(first)
    [second] = installation.awaited_rows(installation.due_action("waits"), 1)
    age(installation, AN_HOUR_S)
    doors.stand("attention", "queue_behind", "action_overdue")
    gate.touch()
    assert installation.all_end([first, second["id"]]) == ["success", "success"]
    doors.stand("ok")


def a_worker_cannot_import_its_steps(
    installation: Installation, doors: Doors, worker: Process
) -> None:
    stop(worker)
    (installation.home / "half_written.py").write_text("raise ValueError('half written')")
    environment = installation.processes.environment
    modules = {
        "SCHED_STEP_MODULES": f"{environment['SCHED_STEP_MODULES']},half_written",
        "PYTHONPATH": f"{installation.home}:{environment['PYTHONPATH']}",
    }
    lame = installation.worker(is_awaited=True, settings={**HOOKS, **modules})
    doors.stand("broken", "step_failed")
    stop(lame)
    installation.worker(is_awaited=True, settings=HOOKS)
    doors.stand("ok")


def mail_has_no_server(installation: Installation, doors: Doors) -> None:
    mail: dict[str, Any] = {"operations": {"send_execsum": True}, "recipients": {"groups": ["all"]}}
    installation.action("mails", **mail)
    doors.stand("attention", "mail_unset")
    installation.cli("action", "delete", "mails", "--yes")
    doors.stand("ok")


def a_webhook_refuses_a_notice(installation: Installation, doors: Doors) -> None:
    with receiver() as hook:
        hook.answers = [410]
        action = installation.action("tells", hooks={"on_success": [{"webhook": hook.url}]})
        installation.becomes(installation.operation(action), "success")
        doors.stand("attention", "notice_refused")


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_full_disk_is_seen_on_the_machine_that_has_it(installation: Installation) -> None:
    alone = own_namespaces("--map-root-user", "--mount")
    home = installation.home
    small = f"mount -t tmpfs -o size=40m none {home} && head -c 39M /dev/zero > {home}/full"
    full = [*alone, "sh", "-c", f'{small} && exec "$@"', "sh"]
    installation.daemon()
    until(lambda: len(installation.ticks()) > 0, "a tick")

    def run(*arguments: str) -> Any:
        done = installation.processes.run([*full, *installation.command(*arguments)])
        return json.loads(done.stdout) if "--json" in arguments else done.returncode

    verdict = run("--json", "status")["verdict"]
    assert (verdict["state"], verdict["counts"]) == ("broken", {"disk": 1})
    assert run("status", "--check", "verdict") == 1
    troubles = [one["text"] for one in run("--json", "doctor") if one["level"] != "ok"]
    assert verdict["findings"][0]["text"] in troubles
    assert installation.cli("status")["verdict"]["state"] == "ok"
