"""What followers ask for over HTTP: they take, keep and end operations of tasks, and no others."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import sqlalchemy as sa

from broker.app import configure
from models.operation import AttemptKey
from models.roles import Role
from models.sql import database_now
from models.store import workers as worker_store
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import external_worker, put_back
from models.store.operations.start_checks import NotClaimed, NotStarted
from models.store.operations.transitions import attempts_of
from models.store.scope import WHOLE_INSTALLATION
from models.tables import notices, small_apps, workers
from models.trust import Trust
from models.worker_kinds import HTTP, OURS, WorkerKind
from runtime.database import reading
from scheduler.on_demand.cancel import cancel
from scheduler.sweep import dispatch_ready
from tests.attempts import claim
from tests.celery_messages import TASK, allowing, celery_action, follow_by_name
from tests.factories import make_action, make_operation, row_of, update_operation
from tests.integration.web.conftest import Serve, Web, changed
from tests.ticks import LEASE, MINUTE
from tests.transactions import act, execute, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
JOB = {"job": {"url": "https://shop.example/1"}}
KEPT = ("state", "attempt", "reason", "worker", "cancel_requested_at", "steps")


class Worker:
    """A process that runs tasks, and what it holds."""

    def __init__(self, web: Web, *tasks: str) -> None:
        self.client = web.client(Role.WORKER, tasks=list(tasks or ("*",)))
        self.delivery = uuid4().hex
        self.lease = ""

    def post(self, id: object, verb: str, **said: Any) -> httpx.Response:
        return self.client.post(f"/api/operations/{id}:{verb}", json=said)

    def take(self, id: UUID, attempt: int = 1, *, repeatable: bool = False) -> httpx.Response:
        said = {"attempt": attempt, "delivery": self.delivery, "worker": "shop@host:1"}
        answer = self.post(id, "take", **said, repeatable=repeatable)
        self.lease = answer.json().get("lease", self.lease)
        return answer

    def takes(self, id: UUID, attempt: int = 1, *, repeatable: bool = False) -> dict[str, Any]:
        answer = self.take(id, attempt, repeatable=repeatable)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def beat(self, id: UUID, **progress: Any) -> httpx.Response:
        return self.post(id, "beat", lease=self.lease, progress=progress)

    def end(self, id: UUID, outcome: str = "success", **said: Any) -> int:
        return self.post(id, "end", lease=self.lease, outcome=outcome, **said).status_code

    def discard(self, id: UUID, what: str, attempt: int = 1, reason: str = "") -> httpx.Response:
        said = {"attempt": attempt, "worker": "shop@host", "what": what, "reason": reason or what}
        return self.post(id, "discard", **said)


def kind_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["type"]).rpartition(":")[2]


@pytest.fixture
def worker(desk: Web) -> Worker:
    return Worker(desk)


def make_sent(web: Web, **changes: Any) -> UUID:
    """Record an operation that a follower may take, and send it."""
    engine = web.engine
    id = make_operation(engine, celery_action(engine, **changes), NOON)
    update_operation(engine, id, not_before=database_now(-1.0))
    configure(allowing(web.opened.settings, "shop.*"))
    dispatch_ready(engine)
    configure(web.opened.settings)
    return id


def test_a_task_is_taken_reports_and_ends(desk: Web, worker: Worker) -> None:
    id = make_sent(desk, policy={"time_limit": "PT90S"})

    told = worker.takes(id)
    beat = worker.beat(id, done=3, total=4, message="almost", phase="closing")
    running = row_of(desk.engine, id)
    ended = worker.end(id, traceback=[], returned="'done'")

    assert (told["operation_id"], told["attempt"], told["run_number"]) == (str(id), 1, 1)
    assert (told["limits"]["time_limit_s"], told["occurrence_at"]) == (90, "2027-01-04T12:00:00Z")
    assert beat.json() == {"stop": None, "lost": False}
    assert (running["processed"], running["total"], running["progress"]) == (3, 4, 0.75)
    assert (running["message"], running["phase"]) == ("almost", "closing")
    assert running["worker"] == "shop@host:1"
    row = row_of(desk.engine, id)
    assert (ended, row["state"], row["steps"][0]["state"]) == (204, "success", "success")


def test_a_repeated_take_is_the_same_take_and_another_one_is_refused(
    desk: Web, worker: Worker
) -> None:
    id, other = make_sent(desk), Worker(desk)

    assert worker.takes(id) == worker.takes(id)
    assert kind_of(other.take(id)) == (409, "not-taken")
    assert row_of(desk.engine, id)["secret"] == worker.delivery


def test_a_repeated_end_is_the_same_end_and_no_other_lease_s(desk: Web, worker: Worker) -> None:
    retry = {"retry": {"max_attempts": 2, "backoff": ["PT1H"]}}
    id = make_sent(desk, policy=retry)
    worker.takes(id)

    ends = [worker.end(id, "failed", error="no paper") for _ in range(2)]
    again = row_of(desk.engine, id)
    worker.takes(id, 2)
    late = worker.end(id, "failed", error="no paper")
    last = row_of(desk.engine, id)
    forged = Worker(desk)
    forged.lease = f"{id.hex}-2-{'0' * 32}"

    assert (ends, late, worker.end(id, "failed")) == ([204, 204], 204, 204)
    assert (again["state"], again["attempt"], again["failures"]) == ("pending", 2, 1)
    assert (last["state"], last["failures"]) == ("failed", 2)
    assert forged.end(id) == 409
    with reading(desk.engine) as connection:
        assert [one["state"] for one in attempts_of(connection, id)] == ["failed", "failed"]
        assert external_worker.has_ended(connection, AttemptKey(id, 1, worker.delivery))


def test_what_the_sweep_took_back_is_lost_to_its_worker(desk: Web, worker: Worker) -> None:
    id = make_sent(desk)
    worker.takes(id)
    update_operation(desk.engine, id, heartbeat_at=database_now(-100.0))
    assert act(desk.engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS) == [(id, "failed")]

    assert kind_of(worker.beat(id, message="mine")) == (409, "lease-lost")
    assert worker.end(id) == 409
    row = row_of(desk.engine, id)
    assert (row["state"], row["reason"], row["message"]) == ("failed", "lost", None)


def test_several_beats_are_one_request(desk: Web, worker: Worker) -> None:
    ids = [make_sent(desk, name=f"day {number}") for number in range(3)]
    holders = [Worker(desk) for _ in ids]
    for one, id in zip(holders, ids, strict=True):
        one.takes(id)
    cancel(desk.engine, ids[1], WHOLE_INSTALLATION, "ann")
    assert holders[2].end(ids[2]) == 204
    beats = [{"lease": one.lease, "progress": {"message": "here"}} for one in holders]

    answer = worker.client.post("/api/operations:beat", json={"beats": beats})

    assert [(one["stop"], one["lost"]) for one in answer.json()["answers"]] == [
        (None, False), ("cancelled", False), (None, True),
    ]  # fmt: skip
    assert row_of(desk.engine, ids[0])["message"] == "here"


def test_a_task_that_pings_owes_its_start(desk: Web, worker: Worker) -> None:
    ping = {"url": "https://hc-ping.com/check/start", "at": ["start"]}
    worker.takes(make_sent(desk, hooks={"ping": [ping]}))

    assert fetched(desk.engine, sa.select(notices.c.kind)).scalars().all() == ["run_started"]


def test_a_lost_task_that_may_repeat_is_tried_three_times(desk: Web) -> None:
    id = make_sent(desk)
    for attempt in (1, 2, 3, 4):
        one = Worker(desk)
        one.takes(id, attempt, repeatable=True)
        assert one.end(id, "cut off", error="its process is gone") == 204

    row = row_of(desk.engine, id)
    assert (row["state"], row["attempt"], row["losses"]) == ("failed", 4, 4)


def test_a_lost_task_that_may_not_repeat_fails(desk: Web, worker: Worker) -> None:
    id = make_sent(desk)
    worker.takes(id)

    assert worker.end(id, "cut off", error="its process is gone") == 204

    row = row_of(desk.engine, id)
    assert row["error"] == "lost: its process is gone; step celery_task was running"
    assert (row["state"], row["steps"][0]["state"]) == ("failed", "failed")


def test_the_attempt_that_celery_sends_itself_may_be_faster_than_the_record(
    desk: Web, worker: Worker
) -> None:
    id, next_one = make_sent(desk), Worker(desk)
    worker.takes(id)

    early = next_one.take(id, 2)
    assert worker.end(id, "retry", error="it rains", delay_s=60) == 204
    row = row_of(desk.engine, id)
    next_one.takes(id, 2)

    assert kind_of(early) == (409, "not-ready")
    assert (row["state"], row["attempt"], row["failures"]) == ("queued", 2, 0)
    # A minute until Celery sends it, and an hour for a worker to take it.
    assert (row["not_before"] - row["send_started_at"]).total_seconds() == pytest.approx(
        3660, abs=1
    )


@pytest.mark.parametrize(
    ("outcome", "state", "reason"),
    [
        ("time limit", "failed", "time limit"),
        ("time box", "partial", "time box"),
        ("cancelled", "cancelled", "cancelled"),
        ("put back", "pending", "put back by its task"),
    ],
)
def test_an_attempt_ends_as_its_worker_says(
    desk: Web, worker: Worker, outcome: str, state: str, reason: str
) -> None:
    id = make_sent(desk)
    worker.takes(id)

    assert worker.end(id, outcome, error="SystemExit: 1") == 204

    row = row_of(desk.engine, id)
    assert (row["state"], row["reason"]) == (state, reason)


def test_a_server_that_may_not_send_leaves_what_it_releases_to_the_tick(
    desk: Web, worker: Worker
) -> None:
    action = celery_action(desk.engine, policy={"overlap": "queue"})
    first, second = (make_operation(desk.engine, action, NOON + n * MINUTE) for n in range(2))
    worker.takes(first)
    assert Worker(desk).take(second).json()["detail"] == "waits"

    assert worker.end(first) == 204

    row = row_of(desk.engine, second)
    assert (row["state"], row["waiting_for"], row["error"]) == ("pending", None, None)


@pytest.mark.parametrize("state", ["queued", "running", "pending"])
def test_a_revoked_task_s_operation_is_cancelled_or_asked_to_end(
    desk: Web, worker: Worker, state: str
) -> None:
    follow_by_name(desk.engine, TASK)
    id = make_sent(desk)
    if state == "running":
        worker.takes(id)
    if state == "pending":
        # Its process was killed: it waits for its next attempt.
        update_operation(desk.engine, id, state="pending", attempt=2, send_started_at=None)

    assert Worker(desk).discard(id, "revoked").status_code == 204

    row = row_of(desk.engine, id)
    if state == "running":
        assert (row["state"], worker.beat(id).json()["stop"]) == ("running", "cancelled")
        assert worker.end(id, "cut off", error="its process is gone") == 204
        row = row_of(desk.engine, id)
    assert (row["state"], row["reason"]) == ("cancelled", "revoked")


@pytest.mark.parametrize("what", ["unknown", "rejected"])
def test_an_operation_whose_task_never_runs_fails_with_the_reason(
    desk: Web, worker: Worker, what: str
) -> None:
    id = make_sent(desk)

    reason = "worker shop@host does not know the task"
    assert worker.discard(id, what, reason=reason).status_code == 204

    row = row_of(desk.engine, id)
    assert (row["state"], row["error"]) == ("failed", reason)


def test_what_is_just_being_sent_is_asked_for_again(desk: Web, worker: Worker) -> None:
    id = make_operation(desk.engine, celery_action(desk.engine), NOON)
    update_operation(desk.engine, id, send_started_at=database_now())

    assert kind_of(worker.discard(id, "revoked")) == (409, "not-ready")
    assert row_of(desk.engine, id)["state"] == "pending"


def test_one_whose_plan_is_broken_fails_at_its_take_with_an_alert(
    desk: Web, serve: Serve, worker: Worker
) -> None:
    alert = {"mail": ("ops@example.com",), "after": 1}
    alerting = serve(changed(desk.opened.settings, alert=alert))
    id = make_sent(desk)
    execute(desk.engine, sa.text("UPDATE revisions SET plan = '{}'"))

    assert Worker(alerting).take(id).json()["detail"] == "broken"

    told = fetched(desk.engine, sa.select(notices.c.kind)).scalars().all()
    assert (row_of(desk.engine, id)["state"], told) == ("failed", ["finding_began"])


def test_a_database_that_went_back_is_noted(desk: Web, worker: Worker) -> None:
    id = make_sent(desk)
    worker.takes(id)
    update_operation(desk.engine, id, secret="another")

    assert kind_of(worker.beat(id)) == (409, "lease-lost")

    assert row_of(desk.engine, id)["reason"].startswith("the database went back")


# What a follower may not touch.


def assert_untouched(web: Web, worker: Worker, id: UUID) -> list[httpx.Response]:
    """Try every verb that names an operation, with secrets that are guessed."""
    before = row_of(web.engine, id)
    worker.lease = f"{id.hex}-1-{worker.delivery}"
    answers = [
        worker.take(id),
        *(worker.discard(id, what) for what in ("revoked", "expired", "unknown")),
        worker.beat(id),
        worker.post(id, "end", lease=worker.lease, outcome="success"),
    ]
    after = row_of(web.engine, id)
    assert {one.status_code for one in answers} <= {404, 409}
    assert {name: after[name] for name in KEPT} == {name: before[name] for name in KEPT}
    return answers


@pytest.mark.parametrize("operations", [{"maintenance": True}, JOB], ids=["ours", "job"])
@pytest.mark.parametrize("state", ["queued", "running"])
def test_an_operation_of_another_kind_is_not_touched(
    desk: Web, worker: Worker, operations: dict[str, Any], state: str
) -> None:
    action = make_action(desk.engine, name="other", operations=operations)
    id = make_operation(desk.engine, action, NOON)
    update_operation(desk.engine, id, state="queued", not_before=database_now(-1.0))
    if state == "running":
        assert not isinstance(act(desk.engine, claim, id, 1, "one", alerts=NO_ALERTS), NotStarted)

    answers = assert_untouched(desk, worker, id)

    assert answers[0].json()["detail"] == "it is not of the step celery_task"


def test_a_task_that_its_small_app_may_not_send_is_not_touched(desk: Web, worker: Worker) -> None:
    id = make_sent(desk)
    execute(desk.engine, sa.update(small_apps).values(trust=Trust(tasks=("bakery.*",))))

    answers = assert_untouched(desk, worker, id)

    assert "is not for this restricted small app" in answers[0].json()["detail"]


def test_a_task_beyond_the_token_or_the_setting_is_not_touched(desk: Web, serve: Serve) -> None:
    id = make_sent(desk)
    elsewhere = serve(allowing(desk.opened.settings, "bakery.*"))

    for one in (Worker(desk, "bakery.*"), Worker(elsewhere)):
        answers = assert_untouched(desk, one, id)
        assert "the token or SCHED_CELERY_TASKS of the server" in answers[0].json()["detail"]


def test_a_token_for_jobs_follows_nothing_and_one_for_tasks_gets_no_job(desk: Web) -> None:
    id, jobs, tasks = make_sent(desk), desk.client(Role.WORKER), Worker(desk)
    said = {"attempt": 1, "delivery": "12345678", "worker": "w"}

    taken = jobs.post(f"/api/operations/{id}:take", json=said)
    got = tasks.client.get("/jobs/next")

    assert (taken.status_code, got.status_code) == (403, 403)
    assert "with --tasks PATTERN" in taken.json()["detail"]
    assert "without --tasks" in got.json()["detail"]


def test_a_server_that_stops_lets_nothing_begin_and_takes_ends(desk: Web, worker: Worker) -> None:
    first, second = make_sent(desk), make_sent(desk, name="another")
    worker.takes(first)
    desk.app.state.dispatcher.is_stopped = True

    assert kind_of(Worker(desk).take(second)) == (503, "stopping")
    assert worker.beat(first).status_code == 200
    assert worker.end(first) == 204


# The workers themselves.


def live(worker: Worker, **changes: Any) -> int:
    said = {"name": "shop@host", "pid": 4711, "queues": ["shop"], "follows": [TASK], **changes}
    return worker.client.post("/api/followers", json=said).status_code


def test_a_worker_is_on_record_with_what_it_follows_until_it_stops(desk: Web) -> None:
    worker = Worker(desk, "shop.*")
    follows = [TASK, "bakery.close", "execute_scheduled_action"]
    takes = {TASK: ["city", "limit=5"], "bakery.close": [], "broken": ["5 5"]}

    assert live(worker, follows=follows, signatures=takes) == 204
    with reading(desk.engine) as connection:
        (seen,) = worker_store.live_workers(connection, MINUTE)
        known = worker_store.task_signatures(connection, MINUTE)
    assert live(worker, stopping=True) == 204
    stopped = act(desk.engine, worker_store.live_workers, MINUTE)

    assert (seen["name"], seen["queues"], seen["follows"]) == ("shop@host", "shop", [TASK])
    assert known == {TASK: ("city", "limit=5")}
    assert stopped == []


@pytest.mark.parametrize("pid", [10**30, -1, "many"])
def test_a_worker_with_an_impossible_pid_is_refused(worker: Worker, pid: object) -> None:
    assert live(worker, pid=pid) == 422


def test_a_worker_does_not_take_the_name_of_one_of_ours(desk: Web, worker: Worker) -> None:
    act(desk.engine, worker_store.beat, worker_store.Heartbeat("quick@host:1", "quick", 4711))

    assert live(worker, name="quick@host:1", queues=["mine"]) == 204

    own = sa.select(workers.c.queues, workers.c.follows, workers.c.stopped_at)
    row = fetched(desk.engine, own.where(workers.c.name == "quick@host:1")).one()
    assert tuple(row) == ("quick", None, None)


@pytest.mark.parametrize("worker_kind", [OURS, HTTP])
def test_a_task_of_the_application_is_claimed_by_no_worker_of_another_kind(
    desk: Web, worker_kind: WorkerKind
) -> None:
    id = make_sent(desk)

    found = act(desk.engine, claim, id, 1, "quick@host:1", worker_kind, alerts=NO_ALERTS)

    assert isinstance(found, NotStarted)
    assert found.why == NotClaimed.FOREIGN
