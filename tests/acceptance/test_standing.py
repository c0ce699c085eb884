"""What all doors say of an installation is what happened to it, one thing after the other."""

import json
import signal
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.tables import operations
from tests.acceptance.crews import OverHttp
from tests.acceptance.doors import Doors, doors_of
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.shop import Shop
from tests.namespaces import own_namespaces

HOOKS = {"SCHED_HOOK_ALLOW_PRIVATE": "true"}


@pytest.fixture
def doors(installation: Installation) -> Iterator[Doors]:
    with doors_of(installation, HOOKS) as made:
        yield made


def waits_unread(installation: Installation, id: UUID) -> None:
    """Let an operation have waited in its queue for a minute, instead of waiting."""
    installation.becomes(id, "queued")
    unstarted = operations.c.state.in_(("pending", "queued"))
    with installation.engine.begin() as connection:
        changed = sa.update(operations).where(unstarted)
        connection.execute(changed.values(recorded_at=database_now(-60.0)))


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
    installation.broker.stop()
    doors.stand("broken", "broker_down")
    installation.broker.start()
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
