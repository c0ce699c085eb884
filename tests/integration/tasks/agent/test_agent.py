"""The agent beside a worker of the user's own, asked as that worker's processes ask it."""

import os
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from sqlalchemy import event

from broker.app import configure
from minutebook.channel import AgentAway, Channel
from models.sql import database_now
from models.store import workers as worker_store
from models.store.operations.transitions import attempts_of
from models.store.scope import WHOLE_INSTALLATION
from models.tables import notices, operations, workers
from runtime.clock import monotonic, wait_for
from runtime.config import Settings
from runtime.database import make_engine, reading
from runtime.sections import AlertSettings
from scheduler.on_demand.cancel import cancel
from scheduler.sweep import dispatch_ready
from tasks.agent import Agent
from tasks.agent.claims import Away
from tests.celery_messages import TASK, allowing, celery_action, follow_by_name
from tests.factories import (
    locks_waited_for,
    make_operation,
    row_of,
    update_operation,
)
from tests.slow_commit import held_claims

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
WORKER = worker_store.Heartbeat("shop@host", "shop,orders", 4711, follows=(TASK,))
ANSWER_S = 30.0
MINUTE = timedelta(minutes=1)


class Asked:
    """A connection of a task: what it asks, and the states of the answers."""

    def __init__(self, path: Path) -> None:
        self.channel = Channel(str(path))

    def ask(self, verb: str, **told: Any) -> dict[str, Any]:
        answer = self.channel.ask({"verb": verb, **told}, ANSWER_S)
        return {key: one for key, one in answer.items() if key != "n"}

    def claim(self, id: UUID, attempt: int = 1, *, repeatable: bool = False) -> dict[str, Any]:
        self.delivery = uuid4().hex
        how = {"worker": "shop@host:1", "repeatable": repeatable, "delivery": self.delivery}
        return self.ask("take", id=str(id), attempt=attempt, **how)

    def start(self, id: UUID, attempt: int = 1, *, repeatable: bool = False) -> None:
        assert self.claim(id, attempt, repeatable=repeatable)["state"] == "taken"
        assert self.ask("started") == {"state": "started"}


def listens(path: Path) -> bool:
    """Whether a connection is taken: the file is there a moment before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        return opened.connect_ex(str(path)) == 0


def serving(
    engine: sa.Engine,
    settings: Settings,
    path: Path,
    worker: worker_store.Heartbeat | None = WORKER,
    apps: tuple[str, ...] = (),
) -> Iterator[Agent]:
    agent = Agent(engine, settings, worker, apps=apps)
    # One that a failed test leaves behind must not keep the others from ending.
    thread = threading.Thread(target=agent.serve, args=(path,), daemon=True)
    thread.start()
    assert wait_for(lambda: listens(path), 10)
    yield agent
    agent.stop.set()
    thread.join()


@pytest.fixture
def agent(engine: sa.Engine, settings: Settings, path: Path) -> Iterator[Agent]:
    yield from serving(engine, settings, path)


@pytest.fixture
def task(agent: Agent, path: Path) -> Iterator[Asked]:
    asked = Asked(path)
    yield asked
    asked.channel.close()


def make_sent(engine: sa.Engine, settings: Settings, **changes: Any) -> UUID:
    """Record an operation that a follower may claim, and send it."""
    id = make_operation(engine, celery_action(engine, **changes), NOON)
    update_operation(engine, id, not_before=database_now(-1.0))
    configure(allowing(settings, "shop.*"))
    dispatch_ready(engine)
    configure(settings)
    return id


def becomes(engine: sa.Engine, id: UUID, state: str) -> dict[str, Any]:
    assert wait_for(lambda: row_of(engine, id)["state"] == state, 10), row_of(engine, id)
    return row_of(engine, id)


def test_one_connection_holds_one_operation(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    first = make_sent(engine, settings)
    second = make_sent(engine, settings, name="the other")
    task.start(first)

    asked = task.claim(second)

    assert asked == {"state": "refused", "reason": f"this connection holds {first}"}
    assert row_of(engine, second)["state"] == "queued"
    assert task.ask("end", outcome="success", progress={}) == {"state": "success"}
    assert row_of(engine, first)["state"] == "success"


def test_a_task_claims_begins_reports_and_ends(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings, policy={"time_limit": "PT90S"})

    told = task.claim(id)
    assert task.ask("started") == {"state": "started"}
    progress = {"done": 3, "total": 4, "message": "almost", "phase": "closing"}
    assert task.ask("beat", progress=progress) == {"state": "running", "stop": None}
    running = row_of(engine, id)
    assert task.ask("end", outcome="success", progress={}) == {"state": "success"}

    assert (told["operation_id"], told["attempt"], told["run_number"]) == (str(id), 1, 1)
    assert told["limits"]["time_limit_s"] == 90
    assert (running["processed"], running["total"], running["progress"]) == (3, 4, 0.75)
    assert (running["message"], running["phase"]) == ("almost", "closing")
    assert running["worker"] == "shop@host:1"
    assert row_of(engine, id)["steps"][0]["state"] == "success"


def test_a_task_that_pings_owes_its_start(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    ping = {"url": "https://hc-ping.com/check/start", "at": ["start"]}
    task.start(make_sent(engine, settings, hooks={"ping": [ping]}))

    with reading(engine) as connection:
        assert connection.execute(sa.select(notices.c.kind)).scalars().all() == ["start"]
    assert task.ask("end", outcome="success", progress={}) == {"state": "success"}


def test_an_attempt_is_claimed_once(
    engine: sa.Engine, settings: Settings, task: Asked, path: Path
) -> None:
    id = make_sent(engine, settings)
    task.start(id)

    other = Asked(path)

    assert other.claim(id) == {"state": "refused", "reason": "taken"}
    unknown = other.claim(uuid4())
    assert unknown["state"] == "refused"
    assert "no such operation; check SCHED_DATABASE_URL or SCHED_HOME" in unknown["reason"]
    other.channel.close()
    assert row_of(engine, id)["state"] == "running"


def test_who_is_gone_before_it_began_gives_its_operation_back(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings)
    assert task.claim(id)["state"] == "taken"

    task.channel.close()

    row = becomes(engine, id, "pending")
    assert (row["attempt"], row["losses"], row["failures"]) == (2, 0, 0)
    assert row["handing_at"] is None


def test_who_is_gone_in_a_task_that_may_not_repeat_fails_it_at_once(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings)
    task.start(id)

    task.channel.close()

    row = becomes(engine, id, "failed")
    assert row["error"] == "lost: its process is gone; step celery_task was running"
    assert row["steps"][0]["state"] == "failed"


def test_who_is_gone_in_a_task_that_may_repeat_is_tried_three_times(
    engine: sa.Engine, settings: Settings, path: Path, agent: Agent
) -> None:
    id = make_sent(engine, settings)
    for attempt in (1, 2, 3, 4):
        task = Asked(path)
        task.start(id, attempt, repeatable=True)
        task.channel.close()
        assert wait_for(lambda: row_of(engine, id)["state"] != "running", 10)

    row = row_of(engine, id)
    assert (row["state"], row["attempt"], row["losses"]) == ("failed", 4, 4)


def test_who_was_gone_at_celery_s_own_time_limit_has_failed_and_is_not_tried_as_lost(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings)
    assert task.claim(id, repeatable=True)["state"] == "taken"
    task.ask("started", killed_at=monotonic())

    task.channel.close()

    row = becomes(engine, id, "failed")
    assert (row["losses"], row["failures"]) == (0, 1)
    assert row["error"] == "Celery's own time limit ended the task"


def test_the_attempt_that_celery_sends_itself_may_be_faster_than_the_record(
    engine: sa.Engine, settings: Settings, task: Asked, path: Path
) -> None:
    id = make_sent(engine, settings)
    task.start(id)
    next_one = Asked(path)

    assert next_one.claim(id, 2)["state"] == "early"
    ended = task.ask("end", outcome="retry", error="it rains", delay_s=60)
    row = row_of(engine, id)
    assert next_one.claim(id, 2)["state"] == "taken"
    next_one.channel.close()

    assert ended == {"state": "pending"}
    assert (row["state"], row["attempt"], row["failures"]) == ("queued", 2, 0)
    # A minute until Celery sends it, and an hour for a worker to take it.
    assert (row["not_before"] - row["handing_at"]).total_seconds() == pytest.approx(3660, abs=1)


def test_a_task_that_fails_is_tried_again_by_its_policy(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    retry = {"retry": {"max_attempts": 2, "backoff": ["PT1H"]}}
    id = make_sent(engine, settings, policy=retry)
    task.start(id)

    assert task.ask("end", outcome="failed", error="no paper")["state"] == "pending"

    row = row_of(engine, id)
    assert (row["attempt"], row["failures"], row["handing_at"]) == (2, 1, None)
    with reading(engine) as connection:
        (ended,) = attempts_of(connection, id)
    assert (ended["state"], ended["error"]) == ("failed", "no paper")


def test_an_agent_that_was_not_told_what_may_be_sent_leaves_the_next_one_to_the_tick(
    engine: sa.Engine, settings: Settings, task: Asked, path: Path
) -> None:
    action = celery_action(engine, policy={"overlap": "queue"})
    first, second = (make_operation(engine, action, NOON + n * MINUTE) for n in range(2))
    task.start(first)
    waits = Asked(path)
    assert waits.claim(second)["state"] == "refused"
    waits.channel.close()

    task.ask("end", outcome="success")

    row = row_of(engine, second)
    assert (row["state"], row["waiting_for"], row["error"]) == ("pending", None, None)
    configure(allowing(settings, "shop.*"))
    assert dispatch_ready(engine).count == 1
    configure(settings)


def test_a_cancel_where_no_task_may_be_sent_leaves_the_next_one_to_the_tick(
    engine: sa.Engine, task: Asked
) -> None:
    action = celery_action(engine, policy={"catch_up": "all"})
    first, second = (make_operation(engine, action, NOON + n * MINUTE) for n in range(2))
    assert task.claim(second)["reason"] == "waits"

    cancel(engine, first, WHOLE_INSTALLATION, "ann")

    row = row_of(engine, second)
    assert (row["state"], row["waiting_for"], row["error"]) == ("pending", None, None)


@pytest.mark.parametrize(
    ("url", "state"),
    [
        pytest.param(None, "queued", id="with_a_broker"),
        pytest.param("redis://127.0.0.1:9/0", "pending", id="without_one_the_tick_sends"),
    ],
)
def test_an_agent_sends_at_once_what_waited_for_an_expired_task(
    engine: sa.Engine, settings: Settings, path: Path, url: str | None, state: str
) -> None:
    broker = {"broker_url": SecretStr(url)} if url else {}
    allowed = allowing(settings, "shop.*").model_copy(update=broker)
    configure(allowed)
    follow_by_name(engine, TASK)
    serves = serving(engine, allowed, path)
    next(serves)
    action = celery_action(engine, step={"expires": 60}, policy={"catch_up": "all"})
    first, second = (make_operation(engine, action, NOON + n * MINUTE) for n in range(2))
    task = Asked(path)
    assert task.claim(second)["reason"] == "waits"
    update_operation(engine, first, state="queued", handing_at=database_now(-61.0))

    assert task.claim(first) == {"state": "refused", "reason": "skipped"}

    task.channel.close()
    next(serves, None)
    configure(settings)
    assert [row_of(engine, id)["state"] for id in (first, second)] == ["skipped", state]


@pytest.mark.parametrize(
    ("outcome", "state", "reason"),
    [
        ("time limit", "failed", "time limit"),
        ("time box", "partial", "time box"),
        ("cancelled", "cancelled", "cancelled"),
        ("cut off", "failed", "lost"),
    ],
)
def test_an_attempt_ends_as_its_worker_says(
    engine: sa.Engine, settings: Settings, task: Asked, outcome: str, state: str, reason: str
) -> None:
    id = make_sent(engine, settings)
    task.start(id)

    assert task.ask("end", outcome=outcome, error="SystemExit: 1") == {"state": state}

    assert row_of(engine, id)["reason"] == reason


def test_a_heartbeat_tells_of_a_cancel(engine: sa.Engine, settings: Settings, task: Asked) -> None:
    id = make_sent(engine, settings)
    task.start(id)
    cancel(engine, id, WHOLE_INSTALLATION, "ann")

    assert task.ask("beat", progress={}) == {"state": "running", "stop": "cancelled"}


def test_who_has_lost_the_lease_writes_nothing_more(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings)
    task.start(id)
    update_operation(engine, id, attempt=2)

    assert task.ask("beat", progress={"message": "mine"}) == {"state": "lost"}
    assert task.ask("end", outcome="success")["state"] == "lost"

    assert (row_of(engine, id)["state"], row_of(engine, id)["message"]) == ("running", None)


def test_another_agent_goes_on_where_one_died(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    id = make_sent(engine, settings)
    first = serving(engine, settings, path)
    next(first)
    task = Asked(path)
    task.start(id)
    next(first, None)

    second = serving(engine, settings, other := path.with_name("other.sock"))
    next(second)
    again = Asked(other)
    stranger = Asked(other)
    for guessed in ("", "another", None):
        assert stranger.ask("resume", id=str(id), attempt=1, delivery=guessed)["state"] == "lost"
    assert stranger.ask("resume", id=str(id), attempt=1)["state"] == "lost"
    stranger.channel.close()
    own = {"id": str(id), "attempt": 1, "delivery": task.delivery}
    assert again.ask("resume", **own) == {"state": "resumed"}
    assert again.ask("end", outcome="success") == {"state": "success"}
    assert again.ask("resume", **own)["state"] == "lost"
    again.channel.close()
    task.channel.close()
    next(second, None)

    assert row_of(engine, id)["state"] == "success"


def claim_of(id: UUID, delivery: str, *, again: bool) -> dict[str, Any]:
    told = {"worker": "shop@host:1", "repeatable": False, "delivery": delivery, "again": again}
    return {"id": str(id), "attempt": 1, **told}


def claimed_of_one_that_is_killed(
    engine: sa.Engine, settings: Settings, path: Path
) -> tuple[UUID, Asked, dict[str, Any]]:
    """Return an operation, a task and the answer to its claim; the agent is gone."""
    id = make_sent(engine, settings)
    killed = serving(engine, settings, path)
    next(killed)
    task = Asked(path)
    claimed = task.ask("take", **claim_of(id, "one", again=False))
    next(killed, None)
    return id, task, claimed


def test_a_claim_whose_answer_was_lost_with_its_agent_is_taken_up_by_the_next_agent(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    id, task, claimed = claimed_of_one_that_is_killed(engine, settings, path)
    restarted = serving(engine, settings, other := path.with_name("other.sock"))
    next(restarted)
    another, own = Asked(other), Asked(other)
    refused = another.ask("take", **claim_of(id, "another", again=True))
    another.channel.close()
    again = wait_for(lambda: own.ask("take", **claim_of(id, "one", again=True)) == claimed, 10)
    began = own.ask("started")
    ended = own.ask("end", outcome="success")
    own.channel.close()
    task.channel.close()
    next(restarted, None)

    assert (claimed["state"], refused["state"], again) == ("taken", "refused", True)
    assert (began, ended) == ({"state": "started"}, {"state": "success"})
    assert (row_of(engine, id)["state"], row_of(engine, id)["attempt"]) == ("success", 1)


def test_a_claim_that_is_asked_for_again_waits_for_the_connection_that_may_hold_it(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    first, again = Asked(path), Asked(path)
    assert first.ask("take", **claim_of(id, "one", again=False))["state"] == "taken"

    waits = again.ask("take", **claim_of(id, "one", again=True))
    first.channel.close()
    assert wait_for(lambda: row_of(engine, id)["attempt"] == 2, 10)
    answers: list[str] = []

    def ask() -> bool:
        answers.append(again.ask("take", **claim_of(id, "one", again=True))["state"])
        return answers[-1] == "refused"

    assert waits["state"] == "early"
    assert wait_for(ask, 10), answers
    again.channel.close()


def test_a_worker_is_shown_with_what_it_follows_until_it_stops(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    def row() -> sa.RowMapping | None:
        with reading(engine) as connection:
            return connection.execute(sa.select(workers)).mappings().one_or_none()

    running = serving(engine, settings, path)
    next(running)
    assert wait_for(lambda: row() is not None, 10)
    seen = row()
    next(running, None)
    stopped = row()

    assert seen is not None
    assert stopped is not None
    assert (seen["name"], seen["queues"], seen["pid"]) == ("shop@host", "shop,orders", 4711)
    assert (seen["follows"], seen["stopped_at"]) == ([TASK], None)
    assert stopped["stopped_at"] is not None


def test_a_worker_of_ours_follows_nothing(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        worker_store.beat(connection, worker_store.Heartbeat("quick@host:1", "quick", 1))
        connection.execute(sa.update(workers).values(seen_at=database_now()))
    follow_by_name(engine, "a", "b")

    with reading(engine) as connection:
        assert worker_store.followed_tasks(connection, MINUTE) == {"a", "b"}
        assert len(worker_store.live_workers(connection, MINUTE)) == 2


def test_a_database_that_is_away_is_told_after_one_claim(settings: Settings, path: Path) -> None:
    url = SecretStr("postgresql://nobody@127.0.0.1:9/none")
    away = settings.model_copy(update={"database_url": url})
    running = serving(make_engine(away), away, path)
    next(running)
    task = Asked(path)

    told = task.claim(uuid4())

    task.channel.close()
    next(running, None)
    assert (told["state"], told["put_back"]) == ("away", True)
    assert "database unavailable" in told["reason"]


def test_a_claim_that_is_asked_for_again_while_the_database_is_away_is_given_back(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    id, task, _ = claimed_of_one_that_is_killed(engine, settings, path)
    restarted = serving(engine, settings, other := path.with_name("other.sock"))
    next(restarted).claims._away = Away("database unavailable", monotonic() + 60)
    again = Asked(other)
    said = again.ask("take", **claim_of(id, "one", again=True))
    again.channel.close()

    assert (said["state"], said["put_back"]) == ("away", True)
    assert wait_for(lambda: row_of(engine, id)["attempt"] == 2, 10)
    task.channel.close()
    next(restarted, None)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_claim_that_is_still_being_committed_is_taken_up(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    second = serving(engine, settings, other := path.with_name("other.sock"))
    next(second)
    answers: list[dict[str, Any]] = []

    def ask(task: Asked, again: bool) -> threading.Thread:
        claim = claim_of(id, "one", again=again)
        asking = threading.Thread(target=lambda: answers.append(task.ask("take", **claim)))
        asking.start()
        return asking

    task, again = Asked(path), Asked(other)
    with held_claims(engine) as are_committing:
        asking = [ask(task, again=False)]
        assert wait_for(are_committing, 10)
        asking.append(ask(again, again=True))
        assert wait_for(lambda: locks_waited_for(engine) == 2, 10)
    for one in asking:
        one.join()
    task.channel.close()
    again.channel.close()
    next(second, None)

    assert [one["state"] for one in answers] == ["taken", "taken"]


def test_two_messages_of_one_attempt_do_not_wait_for_each_other(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    tasks = Asked(path), Asked(path)

    states = [
        task.ask("take", **claim_of(id, name, again=True))["state"]
        for task, name in zip(tasks, ("one", "two"), strict=True)
    ]

    assert states == ["taken", "refused"]
    assert row_of(engine, id)["secret"] == "one"
    for task in tasks:
        task.channel.close()


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_claim_that_was_committed_though_the_connection_broke_is_given_back(
    engine: sa.Engine, settings: Settings, agent: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    task, answers, committing = Asked(path), [], []
    event.listen(engine, "commit", lambda connection: committing.append(connection.connection))

    with held_claims(engine) as are_committing:
        claim = claim_of(id, "one", again=False)
        asking = threading.Thread(target=lambda: answers.append(task.ask("take", **claim)))
        asking.start()
        assert wait_for(are_committing, 10)
        broken = socket.socket(fileno=os.dup(committing[-1].dbapi_connection.fileno()))
        broken.shutdown(socket.SHUT_RDWR)
        broken.close()
        asking.join()
    # As a worker does that put its message back.
    task.channel.close()

    assert (answers[0]["state"], answers[0]["put_back"]) == ("away", True)
    assert wait_for(lambda: row_of(engine, id)["attempt"] == 2, 10)
    with reading(engine) as connection:
        (given_back,) = attempts_of(connection, id)
    assert given_back["error"] == "given back: its task had not begun"


@pytest.mark.parametrize("state", ["queued", "running", "pending"])
def test_a_revoked_task_s_operation_is_cancelled_or_asked_to_end(
    engine: sa.Engine, settings: Settings, task: Asked, path: Path, state: str
) -> None:
    follow_by_name(engine, TASK)
    id = make_sent(engine, settings)
    if state == "running":
        task.start(id)
    if state == "pending":
        # Its process was killed: it waits for its next attempt.
        update_operation(engine, id, state="pending", attempt=2, handing_at=None)
    worker = Asked(path)

    told = worker.ask("discarded", id=str(id), attempt=1, what="revoked", reason="revoked")

    row = row_of(engine, id)
    worker.channel.close()
    assert told == {"state": "noted"}
    if state == "running":
        assert (row["state"], row["cancel_requested_at"] is None) == ("running", False)
        task.channel.close()
        row = becomes(engine, id, "cancelled")
    assert (row["state"], row["reason"]) == ("cancelled", "revoked")


@pytest.mark.parametrize("is_followed", [True, False])
def test_an_unknown_task_s_operation_fails(
    engine: sa.Engine, settings: Settings, task: Asked, is_followed: bool
) -> None:
    if is_followed:
        follow_by_name(engine, TASK)
    id = make_sent(engine, settings)

    reason = "worker shop@host does not know the task"
    told = {"what": "unknown", "reason": reason, "worker": "shop@host"}
    assert task.ask("discarded", id=str(id), attempt=1, **told) == {"state": "noted"}

    row = row_of(engine, id)
    assert (row["state"], row["error"]) == ("failed", reason)


def test_what_is_just_being_sent_is_asked_for_again(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings)
    update_operation(
        engine, id, state="pending", handing_at=database_now(), finished_at=None, reason=None
    )

    told = task.ask("discarded", id=str(id), attempt=1, what="revoked", reason="revoked")

    assert told["state"] == "later"
    assert row_of(engine, id)["state"] == "pending"


def test_an_answer_that_comes_too_late_is_none_to_the_next_question_and_loses_nothing(
    engine: sa.Engine, settings: Settings, task: Asked
) -> None:
    id = make_sent(engine, settings)
    task.start(id)
    with engine.begin() as connection:
        # The agent's heartbeat waits for this row.
        locked = sa.select(operations.c.id).where(operations.c.id == id).with_for_update()
        connection.execute(locked)
        with pytest.raises(AgentAway, match="no answer within"):
            task.channel.ask({"verb": "beat", "progress": {"message": "late"}}, 0.2)

    assert task.ask("nonsense")["reason"] == "nothing is held to nonsense"
    assert row_of(engine, id)["message"] == "late"
    assert task.ask("end", outcome="success") == {"state": "success"}


def test_one_whose_plan_is_broken_fails_at_its_claim_with_an_alert(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    alert = AlertSettings(mail=("ops@example.com",), after=1)
    serves = serving(engine, settings.model_copy(update={"alert": alert}), path)
    next(serves)
    id = make_sent(engine, settings)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE revisions SET plan = '{}'"))
    asked = Asked(path)

    assert asked.claim(id) == {"state": "refused", "reason": "broken"}

    asked.channel.close()
    next(serves, None)
    with reading(engine) as connection:
        told = connection.execute(sa.select(notices.c.kind)).scalars().all()
    assert (row_of(engine, id)["state"], told) == ("failed", ["alert"])
