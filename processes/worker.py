"""Run a Celery worker: it records that it is alive, and stops without losing work."""

import multiprocessing
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from runtime.logs.events import EventLog

# Celery reads it when a worker starts: SIGTERM then stops the worker within a time limit.
os.environ.setdefault("REMAP_SIGTERM", "SIGQUIT")

import sqlalchemy as sa
from billiard.process import current_process
from celery import signals
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning

from broker.app import configure, disconnect
from broker.names import DEFAULT, HEAVY, parse_queues
from models.errors import SchedulerError
from models.store import workers
from models.store.clocks import read_both
from models.store.notices.alerting import alert_targets
from models.worker_kinds import OURS
from processes.garbage import keep_what_is_loaded
from runtime.config import Settings
from runtime.database import make_engine, reason_of
from runtime.folders import make_home
from runtime.logs import set_up_logs
from runtime.scratch import sweep, use_scratch
from runtime.skew import SkewWatch
from runtime.supervisor import STOPS_WITHIN_S, end_with_parent
from tasks.lease import stopping
from tasks.registry import registry_of

logger = EventLog("minutebook.worker")


BACKFILL = "tasks.backfill"
# Both sides of a connection to RabbitMQ send twice as often; proxies close one idle for 30 s.
BROKER_HEARTBEAT_S = 20


@dataclass
class Presence:
    """Records in the table `workers` that this worker is alive, from its pool's processes.

    The main process opens no database while it may fork: a child forked during an SQLite
    transaction inherits its lock state and would find the database locked for ever.
    """

    settings: Settings
    name: str
    queues: str
    slots: int
    _step_failures: dict[str, str] | None = None

    def ready(self, **_: object) -> None:
        """Record that the worker is ready, and log it."""
        engine = make_engine(self.settings)
        try:
            with engine.begin() as connection:
                its = (self.name, self.queues, os.getpid())
                workers.beat(connection, workers.Heartbeat(*its, slots=self.slots))
        except sa.exc.SQLAlchemyError as error:
            logger.warning(
                "database_unavailable",
                "database unavailable, the next tick sends: {error}",
                reason_of(error),
            )
        finally:
            # This process forks.
            disconnect()
            engine.dispose()
        logger.info(
            "worker_started", "worker {worker} is ready for {queues}", self.name, self.queues
        )

    def start(self, **_: object) -> None:
        """Start the heartbeat; called in each new process of the pool."""
        threading.Thread(target=self._keep, name="presence", daemon=True).start()
        # In a thread of the child: an import may be slow.
        threading.Thread(target=self._load_steps, name="steps", daemon=True).start()
        if getattr(current_process(), "index", 0) == 0:
            # One process of the pool is enough.
            threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def stop(self) -> None:
        """Record that the worker stopped in order; called after its pool has ended."""
        try:
            with make_engine(self.settings).begin() as connection:
                workers.stopped(connection, self.name)
        except sa.exc.SQLAlchemyError as error:
            logger.warning(
                "database_unavailable",
                "database unavailable while stopping: {error}",
                reason_of(error),
            )

    def _load_steps(self) -> None:
        """Load the step modules, so that the first operation need not wait."""
        self._step_failures = registry_of(self.settings.step_modules).failed

    def _watch(self) -> None:
        """Tell the admins what is broken, if there are any to tell."""
        if alert_targets(self.settings.alert):
            # Only then: it imports the verdict, and with it the scheduler.
            from processes.watch import Watcher

            Watcher(self.settings).watch()

    def _keep(self) -> None:
        engine = make_engine(self.settings)
        pause = threading.Event()
        pid = os.getppid()
        clock = SkewWatch()
        is_recorded = False
        while not stopping.value:
            try:
                with engine.begin() as connection:
                    _, skew_s = read_both(connection)
                    clock.note(skew_s)
                    its = (self.name, self.queues, pid, skew_s)
                    workers.beat(connection, workers.Heartbeat(*its, slots=self.slots))
                    failures = None if is_recorded else self._step_failures
                    if failures is not None:
                        workers.note_step_failures(connection, self.name, failures)
                is_recorded = is_recorded or failures is not None
            except sa.exc.SQLAlchemyError as error:
                logger.warning(
                    "database_unavailable", "database unavailable: {error}", reason_of(error)
                )
            pause.wait(self.settings.worker.heartbeat_s)


def serve(settings: Settings, queues: str, concurrency: int, name: str) -> int:
    """Run a worker until it is stopped; return its exit code."""
    # The worker accepts JSON only, and running it as root is the operator's choice.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app = configure(settings)
    app.conf.broker_heartbeat = BROKER_HEARTBEAT_S
    hostname = f"{name}@{socket.gethostname()}:{os.getpid()}"
    keeper = Presence(settings, hostname, queues, concurrency)
    signals.setup_logging.connect(_keep_our_logs, weak=False)
    signals.worker_ready.connect(keeper.ready, weak=False)
    signals.worker_process_init.connect(keeper.start, weak=False)
    signals.worker_ready.connect(_note_stop_first, weak=False)
    worker = app.Worker(
        hostname=hostname,
        pool="prefork",
        concurrency=concurrency,
        queues=[OURS.listed(queue) for queue in queues.split(",")],
        # By name: tasks.backfill imports the scheduler, and the other tasks must not.
        include=[BACKFILL] if DEFAULT in queues.split(",") else [],
        without_gossip=True,
        without_mingle=True,
        optimization="fair",
        quiet=True,
    )
    # At each lost connection, it advises a setting that would cut off running operations.
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    # Before the pool forks: what is not looked at is shared with its processes.
    keep_what_is_loaded()
    try:
        worker.start()
    finally:
        # Celery's signal `worker_shutdown` is not sent by a cold shutdown.
        keeper.stop()
    return int(worker.exitcode or 0)


def run(settings: Settings, queues: str, concurrency: int | None) -> int:
    """Run a worker for comma-separated queues in this process; return its exit code."""
    queues = parse_queues(queues)
    name = queues.replace(",", "-")
    set_up_logs(settings.log, name)
    make_home(settings.home)
    sweep()
    use_scratch("worker")
    check_semaphores()
    end_with_parent(settings.worker.stop_grace_s + STOPS_WITHIN_S)
    own = {HEAVY: settings.worker.heavy, DEFAULT: settings.worker.default}
    return serve(settings, queues, concurrency or own.get(queues, settings.worker.quick), name)


def check_semaphores() -> None:
    """Raise SchedulerError if this system has no semaphores for the processes of a worker."""
    try:
        multiprocessing.get_context("fork").Lock()
    except OSError as error:
        raise SchedulerError(
            f"a worker's processes need semaphores, and this system has none: {error.strerror}; "
            "mount a file system that can be written at /dev/shm"
        ) from None


def _keep_our_logs(**_: object) -> None:
    """Keep our logging: Celery sets up its own unless this signal has a receiver."""


def _note_stop_first(**_: object) -> None:
    """Signal a stop to the children before Celery handles it.

    Celery sends `worker_shutting_down` after its soft shutdown: too late for steps to end in the
    grace and for their operations to be put back.
    """
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        signal.signal(number, _after_noting(signal.getsignal(number)))


def _after_noting(handler: Any) -> Callable[[int, FrameType | None], None]:
    def note(number: int, frame: FrameType | None) -> None:
        stopping.value = True
        if callable(handler):
            handler(number, frame)

    return note
