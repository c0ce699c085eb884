"""A kill of each process in each phase of a followed task: it runs once, or the record says why."""

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest
from sqlalchemy import make_url

from tests.acceptance.held_way import HeldWay, Stop
from tests.acceptance.processes import Process, kill, until
from tests.acceptance.shop import Shop
from tests.servers import PostgreSQL, free_port

# One that can be killed.
pytestmark = pytest.mark.parametrize("store", ["postgresql"])

# An application of the shop whose task says which attempt runs. A process of its pool ends after
# one task. Its requests are patient: on a busy machine no phase ends before its kill.
PHASED = """
from pathlib import Path
from threading import Event

import minutebook
from followed import app
from minutebook import celery_worker, followed
from models import write

app.conf.worker_max_tasks_per_child = 1
celery_worker.TAKE_S = followed.END_S = 60.0


@app.task(name="tasks.phased")
def phased(phase, gate):
    operation = minutebook.current_operation()
    attempt = "unclaimed" if operation is None else operation.attempt
    write("phased", phase, f"begins {attempt}")
    while not Path(gate).exists():
        Event().wait(0.05)
    write("phased", phase, f"ends {attempt}")
"""
# What stands still when the kill comes: a request or its answer, which is lost or comes late.
STOPS: dict[str, tuple[str, bool, bool]] = {
    "take lost": ("take", False, True),
    "take late": ("take", False, False),
    "taken unheard": ("take", True, True),
    "end lost": ("end", False, True),
    "end late": ("end", False, False),
    "ended unheard": ("end", True, True),
}
# What runs then. The process of one is never killed alone; one has another attempt.
RUNS, SPARED, RETRIED = "runs", "spared", "retried"
RUNNING = (RUNS, SPARED, RETRIED)
PHASES = (*STOPS, *RUNNING)
POLICIES = {RETRIED: {"retry": {"max_attempts": 2, "backoff": ["PT1S"]}}}

# On a busy machine no lease runs out between the start of a process and what it says first.
LEASE = {"SCHED_WORKER_LEASE_S": "6"}
LOST, NEVER = "failed: lost", "handed_over"
# How each phase ends, by who is killed. A message whose process was killed before its take is not
# sent again: it is handed over after an hour.
ENDS: dict[str, dict[str, str]] = {
    "child": {
        **dict.fromkeys(PHASES, LOST),
        **dict.fromkeys((SPARED, RETRIED), "success"),
        "take lost": NEVER,
        # Its end and what its parent says arrive together.
        "end late": f"{LOST} or success",
        "ended unheard": "success",
    },
    # The processes of its pool end with it.
    "parent": {
        **dict.fromkeys(PHASES, LOST),
        **dict.fromkeys((RETRIED, "end late"), "success"),
        "take lost": NEVER,
        "ended unheard": "success",
    },
    "web": dict.fromkeys(PHASES, "success"),
    "database": dict.fromkeys(PHASES, "success"),
}


@dataclass
class Scene:
    """A worker of the shop with an operation in each phase."""

    shop: Shop
    way: HeldWay
    database: PostgreSQL
    settings: dict[str, str]
    worker: Process
    ids: dict[str, UUID]

    def said(self, phase: str) -> list[str]:
        lines = map(json.loads, self.shop.journal.read_text().splitlines())
        return [line["said"] for line in lines if line["shop"] == phase]

    def ends(self) -> dict[str, str]:
        rows = {phase: self.shop.installation.row(id) for phase, id in self.ids.items()}
        return {
            phase: LOST if str(row["error"]).startswith("lost: ") else row["state"]
            for phase, row in rows.items()
        }


@pytest.fixture
def scene(shop: Shop, postgresql: PostgreSQL) -> Iterator[Scene]:
    # A crash must lose nothing that was committed.
    name = make_url(shop.installation.settings.database_url.get_secret_value()).database
    postgresql.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    (shop.folder / "phased.py").write_text(PHASED)
    asked = ("token", "create", "--role", "worker", "--tasks", "tasks.*")
    port = free_port()
    way = HeldWay(port)
    settings = {
        **LEASE,
        "SCHED_WEB_PORT": str(port),
        "MINUTEBOOK_URL": way.url,
        "MINUTEBOOK_TOKEN": shop.installation.cli(*asked)["token"],
    }
    worker = shop.worker("phased", settings=settings, slots=len(PHASES))
    ids, stops = dict[str, UUID](), dict[str, Stop]()
    for phase in PHASES:
        step = {"args": [phase, str(shop.gate(phase))]}
        policy = POLICIES.get(phase, {})
        ids[phase] = shop.due("phased", name=phase, step=step, policy=policy)
    for phase, (verb, is_answer, is_lost) in STOPS.items():
        stops[phase] = way.stop(ids[phase], verb, is_answer=is_answer, is_lost=is_lost)
        shop.gate(phase).touch()
    shop.tick()
    for stop in stops.values():
        assert stop.is_reached.wait(60)
    scene = Scene(shop, way, postgresql, settings, worker, ids)
    for phase in RUNNING:
        until(lambda phase=phase: scene.said(phase) == ["begins 1"], "it runs")  # type: ignore[misc]
    yield scene
    way.shutdown()
    way.server_close()


def _kill_child(scene: Scene) -> None:
    row = scene.shop.installation.row(scene.ids[SPARED])
    spared = int(row["worker"].rpartition(":")[2])
    for one in scene.shop.pool(scene.worker):
        if one.pid != spared:
            kill(one.pid)
    # No daemon runs: its parent says it, though ends of others still stand still.
    scene.shop.installation.becomes(scene.ids[RUNS], "failed")
    scene.way.release(are_lost=True)


def _kill_parent(scene: Scene) -> None:
    pool = scene.shop.pool(scene.worker)
    scene.worker.kill()
    until(lambda: not any(one.is_running() for one in pool), "its pool ends with it")
    scene.way.release(are_lost=True)
    scene.shop.worker("phased", settings=scene.settings, name="another")


def _kill_web(scene: Scene) -> None:
    daemon = scene.shop.installation.daemon({**scene.shop.settings, **LEASE})
    scene.shop.web().kill()
    scene.way.release(are_lost=True)
    # Longer than two leases.
    daemon.said("tick ", times=4)
    scene.shop.web(scene.settings)


def _kill_database(scene: Scene) -> None:
    scene.shop.installation.daemon({**scene.shop.settings, **LEASE})
    # At once, as a crash.
    scene.database.stop(signal.SIGQUIT)
    scene.way.release(are_lost=True)
    scene.worker.said("does not answer")
    scene.database.start()
    scene.shop.installation.engine.dispose()


KILLS: dict[str, Callable[[Scene], None]] = {
    "child": _kill_child,
    "parent": _kill_parent,
    "web": _kill_web,
    "database": _kill_database,
}


@pytest.mark.parametrize("victim", KILLS)
def test_a_kill_in_any_phase_runs_nothing_twice_and_leaves_every_end_on_record(
    scene: Scene, victim: str
) -> None:
    KILLS[victim](scene)
    scene.way.release(are_lost=False)
    for phase in RUNNING:
        scene.shop.gate(phase).touch()
    ended = scene.shop.installation
    if victim in ("child", "parent"):
        ended.daemon({**scene.shop.settings, **LEASE})
    ended.all_end([id for phase, id in scene.ids.items() if phase != "take lost"])
    if ENDS[victim]["take lost"] == NEVER:
        ended.make_sendable(scene.ids["take lost"])
    ended.all_end(list(scene.ids.values()))

    for phase, end in scene.ends().items():
        assert end in ENDS[victim][phase].split(" or "), phase
    for phase, id in scene.ids.items():
        said, attempts = scene.said(phase), ended.attempts(id)
        # Each attempt is on record before it begins, and begins once.
        assert {one.rpartition(" ")[2] for one in said} <= {str(one) for one, *_ in attempts}
        assert len({*said}) == len(said)
        if victim in ("web", "database") and phase in RUNNING:
            assert attempts == [(1, "success", None)]
        begun = sum(one.startswith("begins") for one in said)
        assert begun <= 1 or (phase, begun) == (RETRIED, 2)
