"""A peer of an agent's socket acts on tasks that its workers follow, and on nothing else."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.carriers import EXECUTE_QUICK, HTTP, OURS, Carrier
from models.sql import database_now
from models.store import workers as worker_store
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.start_checks import NotClaimed, NotStarted
from models.store.operations.take import WorkerKind
from models.tables import small_apps, workers
from models.trust import Trust
from runtime.config import Settings
from runtime.database import reading
from tasks.agent import Agent
from tasks.execute import run_attempt
from tasks.registry import registry_of
from tests.attempts import claim
from tests.celery_messages import TASK, allowing, celery_action
from tests.factories import make_action, make_operation, row_of, update_operation
from tests.integration.tasks.agent.test_agent import NOON, Asked, make_sent, serving
from views.operations import OperationRow

JOB = {"job": {"url": "https://shop.example/1"}}
KEPT = ("state", "attempt", "reason", "worker", "cancel_requested_at", "steps")


@pytest.fixture
def agent(engine: sa.Engine, settings: Settings, path: Path) -> Iterator[Agent]:
    yield from serving(engine, settings, path)


def sent(engine: sa.Engine, settings: Settings, operations: dict[str, Any]) -> UUID:
    """Record an operation of another kind, and send it."""
    id = make_operation(engine, make_action(engine, name="other", operations=operations), NOON)
    update_operation(engine, id, state="queued", not_before=database_now(-1.0))
    return id


def all_verbs(path: Path, id: UUID) -> list[dict[str, Any]]:
    """Try every verb that names an operation; return the answers."""
    its: dict[str, Any] = {"id": str(id), "attempt": 1}
    said = {"worker": "shop@host", "reason": "a peer says so"}
    claims = {"worker": "shop@host:1", "repeatable": False, "delivery": "guessed"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("take", claims),
        ("take", {**claims, "again": True}),
        ("resume", {"delivery": "guessed"}),
        ("resume", {}),
        *(("discarded", {"what": what, **said}) for what in ("revoked", "expired", "unknown")),
        ("end", {"outcome": "success"}),
    ]
    answers = []
    for verb, told in asked:
        with closing((peer := Asked(path)).channel):
            answers.append(peer.ask(verb, **its, **told))
    return answers


def assert_untouched(engine: sa.Engine, path: Path, id: UUID) -> list[dict[str, Any]]:
    before = row_of(engine, id)
    answers = all_verbs(path, id)
    after = row_of(engine, id)
    assert {answer["state"] for answer in answers} <= {"refused", "lost", "early", "later"}
    assert {name: after[name] for name in KEPT} == {name: before[name] for name in KEPT}
    return answers


@pytest.mark.parametrize("operations", [{"maintenance": True}, JOB], ids=["ours", "job"])
@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_peer_touches_no_operation_of_another_kind(
    engine: sa.Engine,
    settings: Settings,
    agent: Agent,
    path: Path,
    operations: dict[str, Any],
    state: str,
) -> None:
    id = sent(engine, settings, operations)
    if state == "running":
        with engine.begin() as connection:
            assert not isinstance(claim(connection, id, 1, "one", alerts=NO_ALERTS), NotStarted)

    answers = assert_untouched(engine, path, id)

    assert answers[0]["reason"] == "it is not of the step celery_task"


def take_back_the_task(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(small_apps).values(trust=Trust(tasks=("bakery.*",))))


def test_a_peer_touches_no_task_that_its_small_app_may_not_send(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    take_back_the_task(engine)

    answers = assert_untouched(engine, path, id)

    assert "is not for this restricted small app" in answers[0]["reason"]


@pytest.mark.parametrize(
    ("changed", "apps", "reason"),
    [
        (lambda settings: allowing(settings, "bakery.*"), (), "SCHED_CELERY_TASKS of this agent"),
        (lambda settings: settings, ("bakery",), "is not one of --apps of this agent"),
    ],
    ids=["tasks", "apps"],
)
def test_a_peer_touches_nothing_beyond_the_tasks_and_apps_of_its_agent(
    engine: sa.Engine,
    settings: Settings,
    path: Path,
    changed: Callable[[Settings], Settings],
    apps: tuple[str, ...],
    reason: str,
) -> None:
    id = make_sent(engine, settings)
    serves = serving(engine, changed(settings), path, apps=apps)
    next(serves)

    answers = assert_untouched(engine, path, id)

    next(serves, None)
    assert reason in answers[0]["reason"]


def test_a_task_that_no_worker_of_the_agent_follows_is_not_claimed_through_it(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    id = make_sent(engine, settings)
    serves = serving(engine, settings, path, None)
    next(serves)
    task, worker = Asked(path), Asked(path)

    before = task.claim(id)
    known = worker.ask("worker", name="shop@host", queues=[], follows=[TASK], pid=1)
    after = task.claim(id)

    for one in (task, worker):
        one.channel.close()
    next(serves, None)
    # The worker of a sidecar that was restarted introduces itself within two seconds.
    assert (before["state"], known["state"], after["state"]) == ("early", "known", "taken")


def test_a_worker_follows_no_task_beyond_the_bounds_of_its_agent(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    serves = serving(engine, allowing(settings, "shop.*"), path, None)
    next(serves)
    worker = Asked(path)
    follows = [TASK, "bakery.close", "execute_scheduled_action"]
    worker.ask("worker", name="shop@host", queues=[], follows=follows, pid=1)
    with reading(engine) as connection:
        found = connection.execute(sa.select(workers.c.follows)).scalar_one()
    worker.channel.close()
    next(serves, None)

    assert found == [TASK]


def test_a_worker_does_not_take_the_name_of_one_of_ours(
    engine: sa.Engine, agent: Agent, path: Path
) -> None:
    with engine.begin() as connection:
        worker_store.beat(connection, worker_store.Heartbeat("quick@host:1", "quick", 4711))
    peer = Asked(path)

    peer.ask("worker", name="quick@host:1", queues=["mine"], follows=[TASK], pid=1)
    peer.channel.close()

    agent.stop.set()
    own = sa.select(workers.c.queues, workers.c.follows, workers.c.stopped_at)
    with reading(engine) as connection:
        row = connection.execute(own.where(workers.c.name == "quick@host:1")).one()
    assert tuple(row) == ("quick", None, None)


@pytest.mark.parametrize("carrier", [OURS, HTTP])
def test_a_task_of_the_application_is_claimed_by_no_worker_of_another_kind(
    engine: sa.Engine, settings: Settings, carrier: Carrier
) -> None:
    id = make_sent(engine, settings)

    with engine.begin() as connection:
        found = claim(connection, id, 1, "quick@host:1", WorkerKind(carrier), alerts=NO_ALERTS)

    assert isinstance(found, NotStarted)
    assert found.why == NotClaimed.FOREIGN


def test_a_message_to_our_workers_that_names_a_job_starts_nothing(
    engine: sa.Engine, settings: Settings
) -> None:
    id = sent(engine, settings, JOB)

    with engine.begin() as connection:
        found = claim(connection, id, 1, "one", WorkerKind(OURS), alerts=NO_ALERTS)

    assert isinstance(found, NotStarted)
    assert row_of(engine, id)["state"] == "queued"


def test_an_operation_that_names_a_task_of_ours_ends_with_the_worker_that_gets_it(
    engine: sa.Engine, settings: Settings
) -> None:
    id = make_operation(engine, celery_action(engine), NOON)
    update_operation(engine, id, task=EXECUTE_QUICK)
    registry = registry_of(settings.step_modules)

    state = run_attempt(engine, settings, registry, (id, 1), "quick@host:1")

    assert (state, row_of(engine, id)["state"]) == ("failed", "failed")
    assert "does not know the step 'celery_task'" in row_of(engine, id)["error"]


def test_the_name_under_which_a_task_was_claimed_is_shown_to_nobody(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    task = Asked(path)
    task.start(id)

    view = OperationRow.of({**row_of(engine, id), "app": "default", "action_name": "a"})
    stored = row_of(engine, id)["secret"]

    task.channel.close()
    assert stored == task.delivery
    assert task.delivery not in view.model_dump_json()
