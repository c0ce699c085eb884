"""Measure a worker's time for an operation with an empty step, and for Celery tasks like it.

One task records nothing. On PostgreSQL another one records what Celery can: its start and its
result, in the same database. Each worker has one process. The messages wait before the worker
starts; the time is from the first to the last one taken and acknowledged. Each round measures all,
one after the other, and the ratio is the median of the rounds.
"""

from collections.abc import Sequence
from threading import Event
from time import perf_counter
from typing import Any
from uuid import uuid4

from benchmarks import worker_tasks
from benchmarks.filling import document, record_one_each
from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle, process
from minutebook.steps import SmallApp
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.sweep import dispatch_ready
from tasks.registry import Registry

QUIET_S = 0.2
# Constant polling would take a core from the worker.
LOOK_S = 0.005
APPS = "benchmarks.worker_tasks"


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the milliseconds per message of each worker, and our ratio to the others."""
    is_served = stack.server is not None
    ours, bare, recorded = [], [], []
    for _ in range(sizes.repeats):
        bare.append(_celery(stack, sizes.messages, worker_tasks.bare))
        if is_served:
            recorded.append(_celery(stack, sizes.messages, worker_tasks.recorded))
        ours.append(_ours(stack, sizes.messages))
    figures = [
        Figure("worker: an operation with a step that does nothing", middle(ours), "ms"),
        Figure("worker: a bare Celery task", middle(bare), "ms"),
        Figure("worker: times a bare Celery task", _ratio(ours, bare), "x", "3"),
    ]
    if not is_served:
        return figures
    return [
        *figures,
        Figure("worker: a Celery task with start and result", middle(recorded), "ms"),
        Figure("worker: times one with start and result", _ratio(ours, recorded), "x", "0.65"),
    ]


def _ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    return middle([own / other for own, other in zip(ours, others, strict=True)])


def _celery(stack: Stack, number: int, task: Any) -> float:
    database = stack.empty()
    with task.app.connection_for_write(stack.broker.url) as connection:
        given: Any = {"queue": "minutebook.quick", "connection": connection}
        for _ in range(number):
            task.apply_async((str(uuid4()), 1), **given)
    url = database.settings.database_url.get_secret_value()
    environment = database.environment(
        BENCHMARK_BROKER_URL=stack.broker.url,
        BENCHMARK_RESULTS_URL=url.replace("postgresql:", "db+postgresql+psycopg:"),
    )
    options = ["--pool", "prefork", "--concurrency", "1", "--queues", "minutebook.quick"]
    app = f"{APPS}:{task.app.main}_app"
    command = ["-W", "ignore", "-m", "celery", "-A", app, "worker", *options]
    took = _work_off(stack, database, command, environment, number)
    if task is worker_tasks.recorded:
        _check(database, "SELECT count(*) FROM celery_taskmeta WHERE status = 'SUCCESS'", number)
    stack.drop(database)
    return took


def _check(database: Database, query: str, number: int) -> None:
    done = database.count(query)
    if done < number:
        raise RuntimeError(f"{done} of {number} succeeded")


def _ours(stack: Stack, number: int) -> float:
    database = stack.empty()
    _record(database, number)
    dispatch_ready(database.engine)
    environment = database.environment(SCHED_STEP_MODULES=APPS, SCHED_LOG_LEVEL="WARNING")
    command = ["-m", "minutebook", "worker", "--queues", "quick", "--concurrency", "1"]
    took = _work_off(stack, database, command, environment, number)
    _check(database, "SELECT count(*) FROM operations WHERE state = 'success'", number)
    stack.drop(database)
    return took


def _record(database: Database, number: int) -> None:
    """Record one operation for each of `number` actions, to send at once."""
    author = ChangeContext("benchmarks", SmallApp(1, "default", "UTC"), Registry((APPS,)).steps)
    when = {"cron_rule": "0 0 1 1 *", "timezone": "UTC"}
    documents = [document(f"action {n}", when, "do_nothing") for n in range(number)]
    record_one_each(database.engine, create_all(database.engine, documents, author), database.now)


def _work_off(
    stack: Stack, database: Database, command: list[str], environment: dict[str, str], number: int
) -> float:
    """Return the milliseconds per message while the worker takes and acknowledges all."""
    log = database.settings.home / "worker.log"
    with process(command, environment, log) as worker, stack.broker.client() as client:

        def left() -> int:
            if worker.poll() is not None:
                raise RuntimeError(log.read_text())
            held = client.hlen("unacked")
            return int(client.llen("minutebook.quick")) + int(held)

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
