"""A cause stands first with what follows from it, at all doors; its remedy mends both."""

import re
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import Cause
from models.sql import database_now
from models.tables import actions, operations
from tests.acceptance.crews import OverHttp
from tests.acceptance.doors import Doors, doors_of
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.shop import Shop
from tests.factories import set_back
from tests.servers import Broker, PostgreSQL, free_port, temporary_folder

COMMAND = re.compile(r"`minutebook ([^`]+)`")


@dataclass
class Scene:
    """An installation that something happens to, and its doors."""

    installation: Installation
    doors: Doors
    # Of all commands that follow a remedy.
    settings: Mapping[str, str] = field(default_factory=dict)

    def stands(self, kind: str, *consequences: str, says: str, beside: str = "") -> dict[str, Any]:
        """Wait until a finding of that kind has just these consequences; return it."""
        worst = {"queue_behind", "action_overdue", "run_slow", "paused", "action_failed"}
        kinds = (kind, *consequences, *beside.split())
        state = "attention" if set(kinds) <= worst else "broken"
        verdict = self.doors.stand(state, *kinds)
        found: dict[str, Any]
        (found,) = (one for one in verdict["findings"] if one["kind"] == kind)
        assert {one["kind"] for one in found["consequences"]} == set(consequences), verdict
        assert re.search(says, found["text"]), found
        assert "Error" not in found["text"]
        return found

    def follow(self, found: Mapping[str, Any], number: int = -1, *more: str) -> Process:
        """Run a command that the remedy names, the last one by default."""
        arguments = COMMAND.findall(found["remedy"])[number].split()
        command = self.installation.command(*arguments, *more)
        return self.installation.processes.start("remedy", command, self.settings)

    def is_well(self, *beside: str) -> None:
        """Wait until nothing is found, but what is named."""
        self.doors.stand("attention" if beside else "ok", *beside)

    def late(self, id: UUID) -> None:
        """Let a run have waited for an hour since its occurrence."""
        with self.installation.engine.begin() as connection:
            its = sa.update(operations).where(operations.c.id == id)
            hour_ago = {"recorded_at": database_now(-3600.0), "cause": Cause.SCHEDULE}
            connection.execute(its.values(**hour_ago))


@pytest.fixture
def scene(installation: Installation) -> Iterator[Scene]:
    with doors_of(installation) as doors:
        yield Scene(installation, doors)


def due(scene: Scene, name: str, **changes: Any) -> UUID:
    """Return a run of a new action that has waited for an hour."""
    id = scene.installation.operation(scene.installation.action(name, **changes))
    scene.late(id)
    return id


def killed(broker: Broker) -> Callable[[], None]:
    broker.stop(signal.SIGKILL)
    return broker.start


def full(broker: Broker) -> Callable[[], None]:
    def limit(most: int) -> None:
        with broker.client() as client:
            client.config_set("maxmemory", most)

    limit(1)
    return lambda: limit(0)


def demoted(broker: Broker) -> Callable[[], None]:
    def replicate(*primary: str) -> None:
        with broker.client() as client:
            client.execute_command("REPLICAOF", *primary)

    replicate("127.0.0.1", "1")
    return lambda: replicate("NO", "ONE")


OUTAGES = [
    (killed, "refuses connections"),
    (full, "is out of memory, and takes no messages"),
    (demoted, "is a replica, and takes no messages"),
]


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_broker_explains_what_waits_for_it(scene: Scene, own_broker: Broker) -> None:
    installation = scene.installation
    installation.worker(is_awaited=True)
    installation.daemon()
    scene.is_well()

    for number, (outage, what) in enumerate(OUTAGES):
        mend = outage(own_broker)
        id = due(scene, f"waits {number}")
        broker = f"Redis at 127.0.0.1:{own_broker.port} {what}; 1 run waits"
        scene.stands("broker_down", "queue_behind", "action_overdue", says=f"^{broker}$")
        mend()
        installation.becomes(id, "success")
        scene.is_well()


@pytest.mark.parametrize("store", ["sqlite"])
def test_the_applications_broker_explains_its_tasks_alone(installation: Installation) -> None:
    folder = temporary_folder()
    broker = Broker(folder, free_port())
    broker.start()
    shop = Shop(installation)
    settings = {**shop.settings, "SCHED_CELERY_BROKER_URL": broker.url}
    try:
        with doors_of(installation, settings) as doors:
            scene = Scene(installation, doors)
            installation.daemon(settings)
            scene.is_well()
            broker.stop()
            scene.late(shop.due("close_day"))
            text = f"127.0.0.1:{broker.port}, the broker of your Celery application, refuses"
            scene.stands("application_broker_down", "action_overdue", says=text)
            broker.start()
            scene.is_well()
    finally:
        broker.stop(signal.SIGKILL)


@pytest.mark.parametrize("store", ["sqlite"])
def test_each_pause_explains_what_it_holds(scene: Scene, own_broker: Broker) -> None:
    installation = scene.installation
    installation.worker(is_awaited=True)
    installation.daemon()
    scene.is_well()

    mend = killed(own_broker)
    # What waits after a pause is not overdue for a while: the first one alone is.
    overdue = ["action_overdue"]
    for number, target in enumerate(("--all", "--queue minutebook.quick", "--app default")):
        id = due(scene, f"held {number}")
        scene.stands("broker_down", "queue_behind", *overdue, says="1 run waits")
        installation.cli("pause", *target.split())
        mend()
        found = scene.stands("paused", *overdue, says="is paused; 1 run waits")
        assert scene.follow(found).ended() == 0
        installation.becomes(id, "success")
        scene.is_well()
        mend, overdue = killed(own_broker), []


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_queue_without_a_worker_explains_what_waits_in_it(scene: Scene) -> None:
    installation = scene.installation
    shop = Shop(installation)
    scene.settings = shop.settings
    installation.daemon(shop.settings)
    scene.is_well()
    ours_without_a_worker(scene)
    jobs_without_a_worker(scene)
    tasks_without_a_worker(scene, shop)


def ours_without_a_worker(scene: Scene) -> None:
    installation = scene.installation
    ids = {queue: due(scene, queue, policy={"queue": queue}) for queue in ("quick", "reports")}
    beside = "no_worker action_overdue"
    for queue, id in ids.items():
        verdict = scene.doors.stand("broken", *beside.split())
        (found,) = (one for one in verdict["findings"] if one["queue"] == f"minutebook.{queue}")
        assert found["text"] == f"no live worker reads queue {queue}; 1 run waits"
        assert [one["kind"] for one in found["consequences"]] == ["action_overdue"]
        scene.follow(found).said("is ready for")
        installation.becomes(id, "success")
    scene.is_well()


def jobs_without_a_worker(scene: Scene) -> None:
    installation = scene.installation
    crew = OverHttp(installation)
    crew.open()
    id = crew.due()
    scene.late(id)
    scene.stands("no_worker", "action_overdue", says="^no live worker reads queue job")
    crew.worker()
    installation.becomes(id, "success")
    scene.is_well()


def tasks_without_a_worker(scene: Scene, shop: Shop) -> None:
    installation = scene.installation
    worker = shop.worker()
    worker.send(signal.SIGTERM)
    worker.ended()
    id = shop.due("close_day")
    installation.becomes(id, "queued")
    scene.late(id)
    lost = ("action_overdue", "workers_lost")
    found = scene.stands("no_worker", *lost, says="^no live worker reads queue shop; 1 run waits")
    assert found["remedy"] == "start a worker of your application for queue shop"
    shop.worker()
    installation.becomes(id, "success")
    scene.is_well()


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_daemon_that_is_gone_says_what_is_due(scene: Scene) -> None:
    installation = scene.installation
    installation.worker(is_awaited=True)
    action = installation.action()

    for number, end in enumerate((signal.SIGKILL, signal.SIGTERM)):
        daemon = installation.daemon()
        daemon.said("tick ")
        scene.is_well()
        daemon.send(end)
        daemon.ended()
        due_at = installation.now() - timedelta(minutes=1)
        set_back(installation.engine, action.uid, due_at - timedelta(minutes=number))
        found = scene.stands("no_daemon", says="^no daemon ticks: .*; 1 action is due$")
        scene.follow(found).said("tick ")
        scene.is_well()
        installation.processes.started[-1].kill()


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_database_that_can_only_be_read_is_shown_by_all_doors(
    scene: Scene, postgresql: PostgreSQL
) -> None:
    installation = scene.installation
    name = installation.engine.url.database
    installation.worker(is_awaited=True)
    daemon = installation.daemon()
    daemon.said("tick ")
    scene.is_well()

    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    of_it = f"FROM pg_stat_activity WHERE datname = '{name}'"
    postgresql.execute(f"SELECT pg_terminate_backend(pid) {of_it}")
    text = "^the database takes no changes: default_transaction_read_only is on$"
    found = scene.stands("database_read_only", "no_daemon", says=text)
    assert "`ALTER DATABASE … RESET`" in found["remedy"]
    postgresql.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    postgresql.execute(f"SELECT pg_terminate_backend(pid) {of_it}")

    scene.is_well()


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_run_that_hangs_is_found_without_a_history(scene: Scene) -> None:
    installation = scene.installation
    installation.worker(is_awaited=True)
    installation.daemon()
    gate = {"until": str(installation.file("go"))}
    id = installation.operation(installation.action("hangs", operations={"trace_one": gate}))
    installation.step_starts(id)
    with installation.engine.begin() as connection:
        its = sa.update(operations).where(operations.c.id == id)
        connection.execute(its.values(started_at=database_now(-3700.0)))

    found = scene.stands("run_slow", says="^hangs: a run takes more than an hour, and no earlier")
    assert scene.follow(found, 0).ended() == 0
    assert scene.follow(found).ended() == 0

    installation.becomes(id, "cancelled")
    scene.is_well()


@pytest.mark.parametrize("store", ["sqlite"])
def test_the_remedies_of_actions_mend_them(scene: Scene, tmp_path: Path) -> None:
    installation = scene.installation
    installation.worker(is_awaited=True)
    installation.daemon()
    fails_once = installation.action("fails", operations={"trace_one": {"fail": 1}})
    id = installation.operation(fails_once)
    installation.becomes(id, "failed")
    found = scene.stands("action_failed", says="^fails: failed")
    assert scene.follow(found, 0).ended() == 0
    assert scene.follow(found).ended() == 0
    installation.becomes(id, "success")
    scene.is_well()

    broken = sa.update(actions).where(actions.c.uid == fails_once.uid)
    with installation.engine.begin() as connection:
        connection.execute(broken.values(quarantined="it cannot be read", active=False))
    editor = tmp_path / "editor.sh"
    editor.write_text("""#!/bin/sh\nsed -i 's/"fail": 1/"fail": 0/' "$1"\n""")
    editor.chmod(0o755)
    scene.settings = {"EDITOR": str(editor), "VISUAL": ""}
    found = scene.stands("quarantined", says="^fails: quarantined: it cannot be read")
    # Without a terminal, it cannot ask.
    edited = scene.follow(found, -1, "--yes")
    until(lambda: not edited.is_alive, edited.text)
    scene.is_well()
