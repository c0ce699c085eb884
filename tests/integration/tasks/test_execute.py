"""One attempt, run in this process against both databases: claim, steps, end."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

import minutebook
from minutebook.steps import _registered
from models.operation import OperationState
from models.store import operations
from models.store.operations import transitions
from models.store.operations.start_checks import NotClaimed
from models.tables import action_state
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import Change, deletion, editing
from scheduler.changes.change import create_all
from tasks import lease
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of, rows_of
from tests.servers import Broker
from tests.statements import executed
from tests.ticks import MINUTE

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _own_steps(own_steps: None) -> Iterator[None]:
    yield
    lease.stopping.value = False


def make_running_action(engine: sa.Engine, registry: Registry, **changes: object) -> Change:
    steps = registry.steps
    return create_all(engine, [make_document(**changes)], author(steps))[0]


def run_one(engine: sa.Engine, settings: Settings, operation: UUID, attempt: int = 1) -> str:
    return run_attempt(engine, settings, Registry(), (operation, attempt), "tests")


def attempts_of(engine: sa.Engine, operation: UUID) -> list[tuple[int, str, str | None]]:
    with reading(engine) as connection:
        found = transitions.attempts_of(connection, operation)
    return [(one["attempt"], one["state"], one["error"]) for one in found]


def test_steps_run_in_order_and_tell_their_story(engine: sa.Engine, settings: Settings) -> None:
    ran: list[str] = []

    @minutebook.step("second")
    def second(context: minutebook.StepContext) -> minutebook.StepResult:
        ran.append("second")
        context.logger.info("seen %s", context.triggerer)
        return minutebook.StepResult("did two", details={"rows": 2})

    @minutebook.step("first")
    def first(context: minutebook.StepContext) -> None:
        ran.append("first")
        context.progress(1, 2, "half", "reading")

    action = make_running_action(engine, Registry(), operations={"first": True, "second": True})
    operation = make_operation(engine, action, NOON)

    assert run_one(engine, settings, operation) == OperationState.SUCCESS

    row = row_of(engine, operation)
    assert ran == ["first", "second"]
    assert (row["state"], row["progress"], row["attempt"]) == ("success", 1.0, 1)
    assert row["result"] == {"first": {}, "second": {"rows": 2}}
    assert [(step["name"], step["state"], step.get("message")) for step in row["steps"]] == [
        ("first", "success", None),
        ("second", "success", "did two"),
    ]
    with reading(engine) as connection:
        lines = operations.log_lines(connection, operation)
    assert [line["message"] for line in lines] == ["seen tests"]


def test_a_failed_step_stops_the_ones_after_it_and_is_retried_from_there(
    engine: sa.Engine, settings: Settings
) -> None:
    ran: list[str] = []

    @minutebook.step("good")
    def good(context: minutebook.StepContext) -> None:
        ran.append("good")

    @minutebook.step("bad")
    def bad(context: minutebook.StepContext) -> None:
        ran.append(f"bad {context.attempt}")
        if context.attempt < 3:
            raise minutebook.StepFailed("source is away")

    action = make_running_action(
        engine,
        Registry(),
        operations={"good": True, "bad": True},
        policy={"retry": {"max_attempts": 3, "backoff": ["PT2M"]}},
    )
    operation = make_operation(engine, action, NOON)

    outcomes = [run_one(engine, settings, operation, attempt) for attempt in (1, 2, 3)]

    assert outcomes == ["pending", "pending", "success"]
    assert ran == ["good", "bad 1", "bad 2", "bad 3"]
    assert attempts_of(engine, operation) == [
        (1, "failed", "source is away"),
        (2, "failed", "source is away"),
        (3, "success", None),
    ]
    row = row_of(engine, operation)
    assert (row["failures"], row["error"]) == (2, None)


def test_a_retry_waits_for_its_backoff(engine: sa.Engine, settings: Settings) -> None:
    @minutebook.step("bad")
    def bad(context: minutebook.StepContext) -> None:
        raise RuntimeError("broken")

    action = make_running_action(
        engine,
        Registry(),
        operations={"bad": True},
        policy={"retry": {"max_attempts": 3, "backoff": ["PT2M", "PT5M"]}},
    )
    operation = make_operation(engine, action, NOON)

    for attempt, minutes in ((1, 2), (2, 5)):
        run_one(engine, settings, operation, attempt=attempt)
        late = run_one(engine, settings, operation, attempt=attempt)

        row = row_of(engine, operation)
        waits = row["not_before"] - datetime.now(UTC)  # noqa: TID251
        assert (row["state"], row["attempt"]) == ("pending", attempt + 1)
        assert row["error"] == "RuntimeError: broken"
        assert timedelta(minutes=minutes - 0.5) < waits <= timedelta(minutes=minutes)
        assert late == NotClaimed.TAKEN
    assert run_one(engine, settings, operation, attempt=3) == "failed"


def test_a_permanent_failure_is_not_retried(engine: sa.Engine, settings: Settings) -> None:
    @minutebook.step("bad")
    def bad(context: minutebook.StepContext) -> None:
        raise minutebook.StepFailed("no such list", permanent=True)

    action = make_running_action(
        engine, Registry(), operations={"bad": True}, policy={"retry": {"max_attempts": 5}}
    )
    operation = make_operation(engine, action, NOON)

    assert run_one(engine, settings, operation) == "failed"
    assert row_of(engine, operation)["error"] == "no such list"


def test_a_step_that_the_worker_does_not_know_fails_by_name(
    engine: sa.Engine, settings: Settings
) -> None:
    @minutebook.step("gone")
    def gone(context: minutebook.StepContext) -> None: ...

    action = make_running_action(engine, Registry(), operations={"gone": True})
    operation = make_operation(engine, action, NOON)
    _registered.clear()

    assert run_one(engine, settings, operation) == "failed"
    assert "does not know the step 'gone'" in str(row_of(engine, operation)["error"])


def test_a_partial_step_does_not_stop_the_next(engine: sa.Engine, settings: Settings) -> None:
    @minutebook.step("some")
    def some(context: minutebook.StepContext) -> minutebook.StepResult:
        return minutebook.StepResult("one domain failed", minutebook.StepOutcome.PARTIAL)

    @minutebook.step("rest")
    def rest(context: minutebook.StepContext) -> None: ...

    action = make_running_action(engine, Registry(), operations={"some": True, "rest": True})
    operation = make_operation(engine, action, NOON)

    assert run_one(engine, settings, operation) == "partial"
    row = row_of(engine, operation)
    assert [step["state"] for step in row["steps"]] == ["partial", "success"]
    assert row["error"] == "some: one domain failed"


def test_what_an_action_knows_is_kept_between_operations(
    engine: sa.Engine, settings: Settings
) -> None:
    seen: list[tuple[int, str | None, dict[str, object]]] = []

    @minutebook.step("count")
    def counting(context: minutebook.StepContext) -> None:
        seen.append((context.run_number, context.last_success_iso, dict(context.checkpoint)))
        context.checkpoint["last"] = context.run_number
        if context.run_number == 2:
            raise RuntimeError("second time")

    action = make_running_action(engine, Registry(), operations={"count": True})
    for number in range(3):
        run_one(engine, settings, make_operation(engine, action, NOON + number * MINUTE))

    first = rows_of(engine, action)[0]["first_started_at"]
    iso = first.isoformat().replace("+00:00", "Z")
    assert seen == [(1, None, {}), (2, iso, {"last": 1}), (3, iso, {"last": 1})]
    with reading(engine) as connection:
        state = connection.execute(sa.select(action_state)).one()
    assert (state.run_number, state.failures_in_row, state.last_state) == (3, 0, "success")


def test_an_operation_whose_step_asks_for_nothing_takes_four_statements(
    engine: sa.Engine, settings: Settings
) -> None:
    @minutebook.step("nothing")
    def nothing(context: minutebook.StepContext) -> None: ...

    action = make_running_action(engine, Registry(), operations={"nothing": True})
    operation = make_operation(engine, action, NOON)

    with executed(engine) as statements:
        assert run_one(engine, settings, operation) == "success"

    verbs = [one.split(maxsplit=1)[0] for one in statements]
    assert verbs == ["SELECT", "UPDATE", "UPDATE", "INSERT"]


def test_a_checkpoint_that_no_step_asks_for_stays(engine: sa.Engine, settings: Settings) -> None:
    seen: list[dict[str, object]] = []

    @minutebook.step("seldom")
    def seldom(context: minutebook.StepContext) -> None:
        if context.occurrence_at == NOON:
            context.checkpoint["last"] = 5
        if context.occurrence_at == NOON + 2 * MINUTE:
            seen.append(context.checkpoint)

    action = make_running_action(engine, Registry(), operations={"seldom": True})
    for number in range(3):
        run_one(engine, settings, make_operation(engine, action, NOON + number * MINUTE))

    assert seen == [{"last": 5}]


def test_a_failed_attempt_keeps_no_checkpoint_though_it_is_retried(
    engine: sa.Engine, settings: Settings
) -> None:
    seen: list[dict[str, object]] = []

    @minutebook.step("page")
    def page(context: minutebook.StepContext) -> None:
        seen.append(dict(context.checkpoint))
        context.checkpoint["page"] = 7
        raise RuntimeError("half way")

    retry = {"max_attempts": 2, "backoff": ["PT1S"]}
    action = make_running_action(
        engine, Registry(), operations={"page": True}, policy={"retry": retry}
    )
    operation = make_operation(engine, action, NOON)

    assert run_one(engine, settings, operation) == "pending"
    assert run_one(engine, settings, operation, attempt=2) == "failed"

    assert seen == [{}, {}]


def test_a_paused_actions_operation_is_skipped_when_it_would_start(
    engine: sa.Engine, settings: Settings
) -> None:
    action = make_running_action(engine, Registry())
    operation = make_operation(engine, action, NOON)
    editing.set_active(engine, action.uid, active=False, author=author())

    assert run_one(engine, settings, operation) == NotClaimed.SKIPPED
    row = row_of(engine, operation)
    assert (row["state"], row["reason"]) == ("skipped", "paused")


def test_what_waited_for_one_whose_plan_is_broken_is_sent_at_once(
    engine: sa.Engine, settings: Settings
) -> None:
    action = make_running_action(engine, Registry(), policy={"catch_up": "all"})
    first, second = (make_operation(engine, action, NOON + n * MINUTE) for n in range(2))
    assert run_one(engine, settings, second) == NotClaimed.WAITS
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE revisions SET plan = '{}'"))

    assert run_one(engine, settings, first) == NotClaimed.BROKEN

    assert [row_of(engine, id)["state"] for id in (first, second)] == ["failed", "queued"]


def test_a_deleted_actions_unstarted_operation_is_cancelled(
    engine: sa.Engine, settings: Settings
) -> None:
    action = make_running_action(engine, Registry())
    operation = make_operation(engine, action, NOON)
    deletion.delete(engine, action.uid, author())

    assert run_one(engine, settings, operation) == NotClaimed.TAKEN
    assert row_of(engine, operation)["state"] == "cancelled"


def test_a_stopping_worker_gives_back_between_steps(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    @minutebook.step("one")
    def one(context: minutebook.StepContext) -> None:
        context.checkpoint["page"] = 7
        lease.stopping.value = True

    @minutebook.step("two")
    def two(context: minutebook.StepContext) -> None: ...

    action = make_running_action(engine, Registry(), operations={"one": True, "two": True})
    operation = make_operation(engine, action, NOON)

    assert run_one(engine, settings, operation) == "pending"
    row = row_of(engine, operation)
    assert (row["attempt"], row["failures"], row["losses"]) == (2, 0, 0)
    lease.stopping.value = False
    assert run_one(engine, settings, operation, attempt=2) == "success"
    assert attempts_of(engine, operation)[0][1].startswith("given back")


def database_error() -> sa.exc.OperationalError:
    return sa.exc.OperationalError("SELECT 1", {}, Exception("server closed the connection"))


def test_a_database_that_was_away_in_a_step_of_ours_is_no_failure(
    engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.steps.maintenance import work

    def away(context: object) -> None:
        raise database_error()

    monkeypatch.setattr(work, "run", away)
    action = make_running_action(engine, Registry())
    operation = make_operation(engine, action, NOON)

    ends = [run_one(engine, settings, operation, attempt) for attempt in range(1, 5)]

    assert ends == ["pending", "pending", "pending", "failed"]
    row = row_of(engine, operation)
    assert (row["losses"], row["failures"]) == (3, 1)
    assert "server closed the connection" in str(row["error"])


def test_a_users_own_database_that_is_away_fails_their_step(
    engine: sa.Engine, settings: Settings
) -> None:
    @minutebook.step("own")
    def own(context: minutebook.StepContext) -> None:
        raise database_error()

    action = make_running_action(engine, Registry(), operations={"own": True})
    operation = make_operation(engine, action, NOON)

    assert run_one(engine, settings, operation) == "failed"


def test_the_first_step_has_begun_for_all_to_see_before_it_does_anything(
    engine: sa.Engine, settings: Settings
) -> None:
    seen: list[tuple[object, ...]] = []

    @minutebook.step("looks", repeatable=False)
    def looks(context: minutebook.StepContext) -> None:
        row = row_of(engine, context.operation_id)
        seen.append((row["phase"], row["steps"][0]["state"], row["steps"][0]["repeatable"]))

    action = make_running_action(engine, Registry(), operations={"looks": True})

    assert run_one(engine, settings, make_operation(engine, action, NOON)) == "success"
    assert seen == [("looks", "running", False)]


def test_a_step_that_never_started_is_none_that_was_cut_off(
    engine: sa.Engine, settings: Settings
) -> None:
    @minutebook.step("once", repeatable=False)
    def once(context: minutebook.StepContext) -> None: ...

    action = make_running_action(engine, Registry(), operations={"once": True})
    operation = make_operation(engine, action, NOON)
    lease.stopping.value = True

    assert run_one(engine, settings, operation) == "pending"
    [step] = row_of(engine, operation)["steps"]
    assert step == {"name": "once", "state": "waiting", "repeatable": False}


def test_of_operations_that_start_at_the_same_moment_one_runs_and_the_others_yield(
    engine: sa.Engine, settings: Settings
) -> None:
    start, all_others_have_yielded = threading.Barrier(4), threading.Event()
    ended: list[str] = []

    @minutebook.step("waits")
    def waits(context: minutebook.StepContext) -> None:
        assert all_others_have_yielded.wait(20)

    action = make_running_action(engine, Registry(), operations={"waits": True})
    ids = [make_operation(engine, action, NOON + n * MINUTE) for n in range(4)]

    def run(operation: UUID) -> None:
        start.wait()
        ended.append(run_one(engine, settings, operation))
        if len(ended) == 3:
            all_others_have_yielded.set()

    threads = [threading.Thread(target=run, args=(id,)) for id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(ended) == ["skipped", "skipped", "skipped", "success"]
