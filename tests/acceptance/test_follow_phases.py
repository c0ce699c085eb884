"""A kill of each process in each phase of a followed task: it runs once, or the record says why."""

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from threading import Event
from uuid import UUID

import pytest
from sqlalchemy import make_url

from tests.acceptance.processes import Process, kill, until
from tests.acceptance.shop import Shop
from tests.http_server import Handler, http_server
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

LONGEST_S = 120.0
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


@dataclass(frozen=True)
class Stop:
    """A request or its answer that stands still: then it is lost, or goes on late."""

    is_answer: bool
    is_lost: bool
    is_reached: Event = field(default_factory=Event)
    is_over: Event = field(default_factory=Event)

    def goes_on(self) -> bool:
        """Stand still until it is over; return whether the request or answer goes on."""
        if self.is_over.is_set():
            return True
        self.is_reached.set()
        self.is_over.wait(LONGEST_S)
        return not self.is_lost


@dataclass
class HeldWay:
    """The way to the port of a server that may be killed and started again."""

    url: str
    port: int
    # By the path of what an operation's worker asks: its `take` or its `end`.
    stops: dict[str, Stop] = field(default_factory=dict)
    stopping: Event = field(default_factory=Event)

    def release(self, *, are_lost: bool) -> None:
        """End the stops of those that are lost, or of those that go on late."""
        for one in self.stops.values():
            if one.is_lost == are_lost:
                one.is_over.set()

    def passes(self, path: str, *, is_answer: bool) -> bool:
        """Return whether a request or an answer goes on, once it may."""
        stop = self.stops.get(path)
        return stop is None or stop.is_answer != is_answer or stop.goes_on()


class Forwarded(Handler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802 - a name of http.server
        way: HeldWay = self.server.known
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Without an answer, its client sees that the connection is broken.
        self.close_connection = True
        if not way.passes(self.path, is_answer=False):
            return
        server = HTTPConnection("127.0.0.1", way.port, timeout=LONGEST_S)
        try:
            server.request("POST", self.path, body, dict(self.headers))
            answer = server.getresponse()
            text = answer.read()
        except (OSError, HTTPException):
            return
        finally:
            server.close()
        if way.passes(self.path, is_answer=True):
            self.close_connection = False
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            if text:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


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
def way() -> Iterator[HeldWay]:
    """The way of the followers to web."""
    port = free_port()
    with http_server(Forwarded, lambda url: HeldWay(url, port)) as made:
        yield made


@pytest.fixture
def scene(shop: Shop, postgresql: PostgreSQL, way: HeldWay) -> Scene:
    # A crash must lose nothing that was committed.
    name = make_url(shop.installation.settings.database_url.get_secret_value()).database
    postgresql.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    (shop.folder / "phased.py").write_text(PHASED)
    settings = {
        **LEASE,
        "SCHED_WEB_PORT": str(way.port),
        "MINUTEBOOK_URL": way.url,
        "MINUTEBOOK_TOKEN": shop.installation.token("worker", "--tasks", "tasks.*"),
    }
    worker = shop.worker("phased", settings=settings, slots=len(PHASES))
    ids = dict[str, UUID]()
    for phase in PHASES:
        step = {"args": [phase, str(shop.gate(phase))]}
        policy = POLICIES.get(phase, {})
        ids[phase] = shop.due("phased", name=phase, step=step, policy=policy)
    for phase, (verb, is_answer, is_lost) in STOPS.items():
        way.stops[f"/api/operations/{ids[phase]}:{verb}"] = Stop(is_answer, is_lost)
        shop.gate(phase).touch()
    shop.tick()
    for stop in way.stops.values():
        assert stop.is_reached.wait(60)
    scene = Scene(shop, way, postgresql, settings, worker, ids)
    for phase in RUNNING:
        until(lambda phase=phase: scene.said(phase) == ["begins 1"], "it runs")  # type: ignore[misc]
    return scene


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
