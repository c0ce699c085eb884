"""Measure a worker's time for an operation with an empty step, and for a bare Celery task.

Both workers have one process. The messages wait before the worker starts; the time is from the
first to the last one taken and acknowledged.
"""

from threading import Event
from time import perf_counter
from typing import Any
from uuid import uuid4

from benchmarks import worker_tasks
from benchmarks.filling import document
from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle, process
from minutehand.steps import SmallApp
from models.fingerprint import operation_id
from models.operation import by_action
from models.store import operations
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.dispatch import dispatch_ready
from scheduler.record import ActionRef, operation_row
from tasks.registry import Registry

STEPS = "benchmarks.worker_tasks"
QUIET_S = 0.2
# Constant polling would take a core from the worker.
LOOK_S = 0.005
BARE_APP = "benchmarks.worker_tasks:bare_app"


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the milliseconds per message of both workers, and their ratio."""
    ours, bare = [], []
    for _ in range(sizes.repeats):
        bare.append(_bare(stack, sizes.messages))
        ours.append(_ours(stack, sizes.messages))
    own, other = middle(ours), middle(bare)
    return [
        Figure("worker: an operation with a step that does nothing", own, "ms"),
        Figure("worker: a bare Celery task", other, "ms"),
        Figure("worker: times a bare Celery task", round(own / other, 2), "x", "2"),
    ]


def _bare(stack: Stack, number: int) -> float:
    database = stack.empty()
    with worker_tasks.bare_app.connection_for_write(stack.broker.url) as connection:
        given: Any = {"queue": "minutehand.quick", "connection": connection}
        for _ in range(number):
            worker_tasks.bare.apply_async((str(uuid4()), 1), **given)
    environment = database.environment(BENCHMARK_BROKER_URL=stack.broker.url)
    options = ["--pool", "prefork", "--concurrency", "1", "--queues", "minutehand.quick"]
    command = ["-W", "ignore", "-m", "celery", "-A", BARE_APP, "worker", *options]
    took = _work_off(stack, database, command, environment, number)
    stack.drop(database)
    return took


def _ours(stack: Stack, number: int) -> float:
    database = stack.empty()
    _record(database, number)
    dispatch_ready(database.engine)
    environment = database.environment(SCHED_STEP_MODULES=STEPS, SCHED_LOG_LEVEL="WARNING")
    command = ["-m", "minutehand", "worker", "--queues", "quick", "--concurrency", "1"]
    took = _work_off(stack, database, command, environment, number)
    done = database.count("SELECT count(*) FROM operations WHERE state = 'success'")
    if done < number:
        raise RuntimeError(f"{done} of {number} succeeded")
    stack.drop(database)
    return took


def _record(database: Database, number: int) -> None:
    """Record one operation for each of `number` actions, to send at once."""
    author = ChangeContext("benchmarks", SmallApp(1, "default", "UTC"), Registry((STEPS,)).steps)
    when = {"cron_rule": "0 0 1 1 *", "timezone": "UTC"}
    documents = [document(f"action {n}", when, "do_nothing") for n in range(number)]
    at = database.now.replace(second=0, microsecond=0)
    rows = [
        operation_row(
            ActionRef(made.uid, 1, made.name, 1),
            made.plan,
            operation_id(made.uid, at),
            at,
            by_action(made.name),
        )
        for made in create_all(database.engine, documents, author)
    ]
    with database.engine.begin() as connection:
        operations.record(connection, rows)
        # Recorded operations are reserved for half a minute.
        connection.exec_driver_sql("UPDATE operations SET not_before = recorded_at")


def _work_off(
    stack: Stack, database: Database, command: list[str], environment: dict[str, str], number: int
) -> float:
    """Return the milliseconds per message while the worker takes and acknowledges all."""
    log = database.settings.home / "worker.log"
    with process(command, environment, log) as worker, stack.broker.client() as client:

        def left() -> int:
            if worker.poll() is not None:
                raise RuntimeError(log.read_text())
            held = client.hlen("unacked") + client.hlen("minutehand.unacked")
            return int(client.llen("minutehand.quick")) + int(held)

        pause = Event()
        while (begun := left()) == number:
            pause.wait(LOOK_S)
        started = ended = perf_counter()
        # While a worker takes a message, it is nowhere for a moment.
        while left() or perf_counter() - ended < QUIET_S:
            if left():
                ended = perf_counter()
            pause.wait(LOOK_S)
        return (ended - started) / begun * 1e3


if __name__ == "__main__":
    main(measure)
