"""One attempt, run in this process against both databases: claim, steps, end."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

import minutebook
from minutebook.steps import _registered
from models.store import operations
from models.store.operations import transitions
from models.store.operations.start_checks import NotClaimed
from models.store.tenants import storing
from models.tables import action_state, actions
from models.tenant.document import parse_small_app
from scheduler.changes import deletion, editing
from tasks import lease
from tests.factories import author, row_of, rows_of
from tests.integration.tasks.crew import Work
from tests.servers import Broker
from tests.statements import executed
from tests.transactions import act, execute, fetched


def attempts_of(work: Work, operation: UUID) -> list[tuple[int, str, str | None]]:
    found = act(work.engine, transitions.attempts_of, operation)
    return [(one["attempt"], one["state"], one["error"]) for one in found]


def nothing(context: minutebook.StepContext) -> None: ...


def test_steps_run_in_order_and_tell_their_story(work: Work) -> None:
    ran: list[str] = []

    def second(context: minutebook.StepContext) -> minutebook.StepResult:
        ran.append("second")
        context.logger.info("seen %s", context.triggerer)
        return minutebook.StepResult("did two", details={"rows": 2})

    def first(context: minutebook.StepContext) -> None:
        ran.append("first")
        context.progress(1, 2, "half", "reading")

    row = work.ran(first, second)

    assert ran == ["first", "second"]
    assert (row["state"], row["progress"], row["attempt"]) == ("success", 1.0, 1)
    assert row["result"] == {"first": {}, "second": {"rows": 2}}
    assert [(step["name"], step["state"], step.get("message")) for step in row["steps"]] == [
        ("first", "success", None),
        ("second", "success", "did two"),
    ]
    lines = act(work.engine, operations.log_lines, row["id"])
    assert [line["message"] for line in lines] == ["seen tests"]


def test_a_failed_step_stops_the_ones_after_it_and_is_retried_from_there(work: Work) -> None:
    ran: list[str] = []

    def good(context: minutebook.StepContext) -> None:
        ran.append("good")

    def bad(context: minutebook.StepContext) -> None:
        ran.append(f"bad {context.attempt}")
        if context.attempt < 3:
            raise minutebook.StepFailed("source is away")

    retry = {"max_attempts": 3, "backoff": ["PT2M"]}
    id = work.operation(work.action(good, bad, policy={"retry": retry}))

    assert [work.attempt(id, number) for number in (1, 2, 3)] == ["pending", "pending", "success"]

    assert ran == ["good", "bad 1", "bad 2", "bad 3"]
    assert attempts_of(work, id) == [
        (1, "failed", "source is away"),
        (2, "failed", "source is away"),
        (3, "success", None),
    ]
    row = row_of(work.engine, id)
    assert (row["failures"], row["error"]) == (2, None)


def broken(context: minutebook.StepContext) -> None:
    raise RuntimeError("broken")


def test_a_retry_waits_for_its_backoff(work: Work) -> None:
    retry = {"max_attempts": 3, "backoff": ["PT2M", "PT5M"]}
    id = work.operation(work.action(broken, policy={"retry": retry}))

    for attempt, minutes in ((1, 2), (2, 5)):
        ends = [work.attempt(id, attempt) for _ in range(2)]

        row = row_of(work.engine, id)
        waits = row["not_before"] - datetime.now(UTC)  # noqa: TID251
        assert (row["state"], row["attempt"]) == ("pending", attempt + 1)
        assert row["error"] == "RuntimeError: broken"
        assert timedelta(minutes=minutes - 0.5) < waits <= timedelta(minutes=minutes)
        assert ends == ["pending", NotClaimed.TAKEN]
    assert work.attempt(id, 3) == "failed"


def test_a_step_that_the_worker_does_not_know_fails_by_name(work: Work) -> None:
    id = work.operation(work.action(nothing))
    _registered.clear()

    assert work.attempt(id) == "failed"
    assert "does not know the step 'nothing'" in str(row_of(work.engine, id)["error"])


def test_a_partial_step_does_not_stop_the_next(work: Work) -> None:
    def some(context: minutebook.StepContext) -> minutebook.StepResult:
        return minutebook.StepResult("one domain failed", minutebook.StepOutcome.PARTIAL)

    row = work.ran(some, nothing)

    assert [step["state"] for step in row["steps"]] == ["partial", "success"]
    assert (row["state"], row["error"]) == ("partial", "some: one domain failed")


def test_what_an_action_knows_is_kept_between_operations(work: Work) -> None:
    seen: list[tuple[int, str | None, dict[str, object]]] = []

    def count(context: minutebook.StepContext) -> None:
        seen.append((context.run_number, context.last_success_iso, dict(context.checkpoint)))
        context.checkpoint["last"] = context.run_number
        if context.run_number == 2:
            raise RuntimeError("second time")

    action = work.action(count)
    for number in range(3):
        work.attempt(work.operation(action, number))

    first = rows_of(work.engine, action)[0]["first_started_at"]
    iso = first.isoformat().replace("+00:00", "Z")
    assert seen == [(1, None, {}), (2, iso, {"last": 1}), (3, iso, {"last": 1})]
    state = fetched(work.engine, sa.select(action_state)).one()
    assert (state.run_number, state.failures_in_row, state.last_state) == (3, 0, "success")


def test_an_operation_whose_step_asks_for_nothing_takes_four_statements(work: Work) -> None:
    id = work.operation(work.action(nothing))

    with executed(work.engine) as statements:
        assert work.attempt(id) == "success"

    verbs = [one.split(maxsplit=1)[0] for one in statements]
    assert verbs == ["SELECT", "UPDATE", "UPDATE", "INSERT"]


def test_a_failed_attempt_keeps_no_checkpoint_though_it_is_retried(work: Work) -> None:
    seen: list[dict[str, object]] = []

    def page(context: minutebook.StepContext) -> None:
        seen.append(dict(context.checkpoint))
        context.checkpoint["page"] = 7
        raise RuntimeError("half way")

    retry = {"max_attempts": 2, "backoff": ["PT1S"]}

    assert work.ends(work.action(page, policy={"retry": retry}), 1, 2) == ["pending", "failed"]
    assert seen == [{}, {}]


def test_a_paused_actions_operation_is_skipped_when_it_would_start(work: Work) -> None:
    action = work.action()
    id = work.operation(action)
    editing.set_active(work.engine, action.uid, active=False, author=author())

    assert work.attempt(id) == NotClaimed.SKIPPED
    row = row_of(work.engine, id)
    assert (row["state"], row["reason"]) == ("skipped", "paused")


def test_what_waited_for_one_whose_plan_is_broken_is_sent_at_once(work: Work) -> None:
    action = work.action(policy={"catch_up": "all"})
    first, second = (work.operation(action, number) for number in range(2))
    assert work.attempt(second) == NotClaimed.WAITS
    execute(work.engine, sa.text("UPDATE revisions SET plan = '{}'"))

    assert work.attempt(first) == NotClaimed.BROKEN

    assert [row_of(work.engine, id)["state"] for id in (first, second)] == ["failed", "queued"]


def test_a_deleted_actions_unstarted_operation_is_cancelled(work: Work) -> None:
    action = work.action()
    id = work.operation(action)
    deletion.delete(work.engine, action.uid, author())

    assert work.attempt(id) == NotClaimed.TAKEN
    assert row_of(work.engine, id)["state"] == "cancelled"


def test_a_stopping_worker_gives_back_between_steps(work: Work, broker: Broker) -> None:
    def one(context: minutebook.StepContext) -> None:
        context.checkpoint["page"] = 7
        lease.stopping.value = True

    id = work.operation(work.action(one, nothing))

    assert work.attempt(id) == "pending"
    row = row_of(work.engine, id)
    assert (row["attempt"], row["failures"], row["losses"]) == (2, 0, 0)
    lease.stopping.value = False
    assert work.attempt(id, 2) == "success"
    assert attempts_of(work, id)[0][1].startswith("given back")


def away(_context: object) -> None:
    raise sa.exc.OperationalError("SELECT 1", {}, Exception("server closed the connection"))


def test_a_database_that_was_away_in_a_step_of_ours_is_no_failure(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.steps.maintenance.work.run", away)
    id = work.operation(work.action())

    ends = [work.attempt(id, number) for number in range(1, 5)]

    assert ends == ["pending", "pending", "pending", "failed"]
    row = row_of(work.engine, id)
    assert (row["losses"], row["failures"]) == (3, 1)
    assert "server closed the connection" in str(row["error"])


def test_a_users_own_database_that_is_away_fails_their_step(work: Work) -> None:
    assert work.ran(away)["state"] == "failed"


def test_the_first_step_has_begun_for_all_to_see_before_it_does_anything(work: Work) -> None:
    seen: list[tuple[object, ...]] = []

    @minutebook.step("looks", repeatable=False)
    def looks(context: minutebook.StepContext) -> None:
        row = row_of(work.engine, context.operation_id)
        seen.append((row["phase"], row["steps"][0]["state"], row["steps"][0]["repeatable"]))

    assert work.ran(operations={"looks": True})["state"] == "success"
    assert seen == [("looks", "running", False)]


def test_a_step_that_never_started_is_none_that_was_cut_off(work: Work) -> None:
    minutebook.step("once", repeatable=False)(nothing)
    lease.stopping.value = True

    row = work.ran(operations={"once": True})

    assert row["state"] == "pending"
    assert row["steps"] == [{"name": "once", "state": "waiting", "repeatable": False}]


def test_of_operations_that_start_at_the_same_moment_one_runs_and_the_others_yield(
    work: Work,
) -> None:
    start, all_others_have_yielded = threading.Barrier(4), threading.Event()
    ended: list[str] = []

    def waits(context: minutebook.StepContext) -> None:
        assert all_others_have_yielded.wait(20)

    action = work.action(waits)

    def run(operation: UUID) -> None:
        start.wait()
        ended.append(work.attempt(operation))
        if len(ended) == 3:
            all_others_have_yielded.set()

    ids = [work.operation(action, number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, ids))

    assert sorted(ended) == ["skipped", "skipped", "skipped", "success"]


def test_a_step_reads_the_settings_of_its_small_app_and_cannot_change_them(work: Work) -> None:
    own = {"currency": "EUR", "limits": {"rows": [5, 7]}}
    act(work.engine, storing.apply, parse_small_app({"name": "default", "settings": own}))
    seen: list[object] = []

    def reads(context: minutebook.StepContext) -> None:
        own = context.small_app.settings
        seen.extend([own["currency"], own["limits"]["rows"], sorted(own), len(own)])
        with pytest.raises(TypeError):
            own["currency"] = "USD"  # type: ignore[index]

    assert work.ran(reads)["state"] == "success"
    assert seen == ["EUR", (5, 7), ["currency", "limits"], 2]


def test_parameters_that_a_new_version_refuses_fail_the_operation_at_once(work: Work) -> None:
    class Old(BaseModel):
        most: int = 1

    class New(Old):
        folder: str

    minutebook.step("grows", parameters=Old)(nothing)
    policy = {"retry": {"max_attempts": 3}}
    id = work.operation(work.action(operations={"grows": {"most": 2}}, policy=policy))
    minutebook.step("grows", parameters=New)(nothing)

    assert work.attempt(id) == "failed"
    assert "folder: is required" in str(row_of(work.engine, id)["error"])
    assert fetched(work.engine, sa.select(actions.c.quarantined)).scalars().all() == [None]
