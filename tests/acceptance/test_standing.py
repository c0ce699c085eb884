"""What all doors say of an installation is what happened to it, one thing after the other."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.doors import Doors, doors_of
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.namespaces import own_namespaces

HOOKS = {"SCHED_HOOK_ALLOW_PRIVATE": "true"}


@pytest.fixture
def doors(installation: Installation) -> Iterator[Doors]:
    with doors_of(installation, HOOKS) as made:
        yield made


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
