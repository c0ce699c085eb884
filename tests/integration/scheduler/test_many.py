"""Many operations at once: a plan first, the same filters as a list, and once for each key."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from models.errors import NotFound, Refused
from models.fingerprint import operation_id
from models.operation import OperationState, by_action
from models.store.operations.end import Outcome
from models.store.operations.record import record_missed
from models.tables import audit
from runtime.config import Settings
from runtime.db_retry import in_transaction
from scheduler.changes import Change
from scheduler.on_demand import many
from scheduler.record import ActionRef, operation_row
from services import changes
from services import operations as operations_views
from services.installation import Installation
from services.runs import many as bulk
from services.runs.many import Selection
from tests.factories import (
    DEFAULT_APP,
    claimed,
    installation_on,
    make_action,
    make_app,
    make_operation,
    row_of,
    update_operation,
)
from tests.servers import Broker
from tests.ticks import HOUR
from tests.transactions import act, fetched, finish

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
# What a test sends at a minute's end would else be sent by the rule.
LATER = {"due_date": "2190-01-01T00:00:00Z"}
FAILED = Selection(state=(OperationState.FAILED,))


@pytest.fixture
def opened(engine: sa.Engine, settings: Settings, broker: Broker) -> Installation:
    return installation_on(engine, settings)


def make_ended(
    engine: sa.Engine, action: Change, count: int, state: str = "failed", **changes: Any
) -> list[UUID]:
    """Return operations of an action that ended so, the last recorded first."""
    ids = []
    for number in range(count):
        ids.append(id := make_operation(engine, action, NOON + number * HOUR))
        claimed(engine, id)
        finish(engine, id, Outcome(OperationState(state), error="no such host", is_failure=True))
        if changes:
            update_operation(engine, id, **changes)
    return ids[::-1]


def states_of(engine: sa.Engine, ids: list[UUID]) -> list[str]:
    return [str(row_of(engine, id)["state"]) for id in ids]


def test_a_plan_changes_nothing_and_what_was_planned_is_done(
    engine: sa.Engine, opened: Installation, broker: Broker
) -> None:
    first, second = (make_action(engine, name=one, when=LATER) for one in ("first", "second"))
    ids, paused = make_ended(engine, first, 3), make_ended(engine, second, 2)
    changes.pause(opened, "second")

    plan = bulk.retry(opened, FAILED, dry_run=True)

    assert (plan.count, [(one.name, one.count) for one in plan.actions]) == (3, [("first", 3)])
    assert [(one.why, one.count) for one in plan.left_out] == [
        ("'second' is paused; resume it first", 2)
    ]
    assert {one.state for one in plan.first} == {"failed"}
    assert set(states_of(engine, ids + paused)) == {"failed"}
    assert broker.messages("quick") == []

    done = bulk.retry(opened, FAILED)

    assert (done.ids, done.left_out, done.exit_code) == (plan.ids, plan.left_out, 1)
    assert states_of(engine, ids) == ["queued"] * 3
    assert states_of(engine, paused) == ["failed"] * 2
    assert sorted(broker.messages("quick")) == sorted((str(id), 2) for id in ids)
    noted = sa.select(audit.c.object).where(audit.c.verb == "operation.retry")
    assert set(fetched(engine, noted).scalars()) == {str(id) for id in ids}


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        pytest.param({"action": "first"}, "first", id="action"),
        pytest.param({"q": "seco"}, "second", id="words"),
        pytest.param({"reason": "Disk"}, "second", id="error"),
        pytest.param({"since": "PT1H"}, "all", id="recorded_since"),
        pytest.param({"until": "PT1H"}, "none", id="recorded_until"),
        pytest.param({"state": ("partial",)}, "none", id="state"),
        pytest.param({"cause": ("manual",)}, "all", id="cause"),
        pytest.param({"task": "tasks.unknown"}, "none", id="task"),
        pytest.param({"queue": "quick"}, "all", id="queue"),
        pytest.param({"queue": "minutebook.heavy"}, "none", id="another_queue"),
    ],
)
def test_a_filter_chooses_for_a_change_what_it_lists(
    engine: sa.Engine, opened: Installation, wanted: dict[str, Any], chosen: str
) -> None:
    first, second = make_action(engine, name="first"), make_action(engine, name="second")
    late, early = make_ended(engine, first, 2)
    other = make_ended(engine, second, 1, error="no space left on disk")
    sets = {
        "first": {late, early}, "second": set(other), "none": set(),
        "all": {late, early, *other},
    }  # fmt: skip
    selection = Selection(**wanted)

    listed = operations_views.list_operations(opened, selection).items
    plan = bulk.retry(opened, selection, dry_run=True)

    assert {one.id for one in listed} == set(plan.ids) == sets[chosen]
    assert bulk.matching(opened, selection) == len(listed)


def test_each_verb_takes_what_it_can_change(engine: sa.Engine, opened: Installation) -> None:
    action = make_action(engine)
    (failed,) = make_ended(engine, action, 1)
    cancelled, pending, running = (
        make_operation(engine, action, NOON + number * HOUR) for number in range(2, 5)
    )
    missed, missed_at = operation_id(action.uid, NOON + 5 * HOUR), NOON + 5 * HOUR
    ref = ActionRef(action.uid, DEFAULT_APP.id, action.name, action.revision)
    row = operation_row(ref, action.plan, missed, missed_at, by_action(action.name))
    act(engine, record_missed, [row | {"state": "missed"}], [])
    claimed(engine, running)
    update_operation(engine, cancelled, state="cancelled", finished_at=NOON)
    of_action = Selection(action="every minute")

    def planned(verb: Any) -> set[UUID]:
        return set(verb(opened, of_action, dry_run=True).ids)

    assert planned(bulk.retry) == {failed}
    assert planned(bulk.cancel) == {pending, running}


def test_many_are_cancelled_or_asked_to_end(engine: sa.Engine, opened: Installation) -> None:
    action = make_action(engine)
    pending, running = (make_operation(engine, action, NOON + n * HOUR) for n in range(2))
    claimed(engine, running)

    done = bulk.cancel(opened, Selection(action="every minute"))

    assert (done.count, done.left_out) == (2, ())
    assert row_of(engine, pending)["state"] == "cancelled"
    assert row_of(engine, running)["cancel_requested_at"] is not None
    again = bulk.cancel(opened, Selection(action="every minute"))
    assert [one.why for one in again.left_out] == ["it was already asked to end"]
    assert again.exit_code == 2


def test_chosen_ids_are_changed_and_others_named(engine: sa.Engine, opened: Installation) -> None:
    action = make_action(engine)
    failed = make_ended(engine, action, 2)
    (well,) = make_ended(engine, make_action(engine, name="well"), 1, "success")
    gone = uuid4()
    chosen = Selection(ids=(str(failed[0]), str(well), str(gone)))

    done = bulk.retry(opened, chosen)

    assert done.ids == (failed[0],)
    assert {one.why: one.first for one in done.left_out} == {
        "it is success; run its action again": (well,),
        "it does not exist any more": (gone,),
    }
    assert states_of(engine, failed) == ["queued", "failed"]


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ("skipped", "run its action with `minutebook action run`"),
        ("dropped", "run its action with `minutebook action run`"),
        ("pending", "it has not ended; wait for its end, or cancel it"),
    ],
)
def test_what_cannot_be_retried_says_what_to_do(
    engine: sa.Engine, opened: Installation, state: str, remedy: str
) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    if state != "pending":
        update_operation(engine, id, state=state, finished_at=NOON)

    done = bulk.retry(opened, Selection(ids=(str(id),)))

    assert done.errors == (f"1 left out: it is {state}; {remedy} ({id})",)


def test_two_requests_at_once_change_each_once(engine: sa.Engine, opened: Installation) -> None:
    ids = [id for n in range(4) for id in make_ended(engine, make_action(engine, name=f"{n}"), 3)]

    with ThreadPoolExecutor(2) as pool:
        sent = [pool.submit(bulk.retry, opened, FAILED) for _ in range(2)]
        answers = [one.result() for one in sent]

    assert sorted(id for one in answers for id in one.ids) == sorted(ids)
    assert {row_of(engine, id)["attempt"] for id in ids} == {2}


def test_a_request_that_was_killed_goes_on_when_it_is_sent_again(
    engine: sa.Engine, opened: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each operation is done wholly or not."""
    first, second = make_action(engine, name="first"), make_action(engine, name="second")
    before, after = make_ended(engine, second, 2), make_ended(engine, first, 2)

    def killed(engine: sa.Engine, act: Any) -> Any:
        if act.keywords["id"] == before[0]:
            raise KeyboardInterrupt
        return in_transaction(engine, act)

    with monkeypatch.context() as patch:
        patch.setattr(many, "in_transaction", killed)
        with pytest.raises(KeyboardInterrupt):
            bulk.retry(opened, FAILED)
    assert states_of(engine, after + before) == ["pending"] * 2 + ["failed"] * 2

    again = bulk.retry(opened, FAILED)

    assert set(again.ids) == set(before)
    assert states_of(engine, before) == ["queued"] * 2


def test_more_than_one_request_takes_are_reached_by_the_next(
    engine: sa.Engine, opened: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST", 2)
    ids = make_ended(engine, make_action(engine), 5)

    plan = bulk.retry(opened, FAILED, dry_run=True)
    done = [bulk.retry(opened, FAILED) for _ in range(3)]

    assert (list(plan.ids), plan.has_more) == (ids[:2], True)
    assert [id for one in done for id in one.ids] == ids
    assert [one.has_more for one in done] == [True, True, False]


def test_a_small_app_changes_its_own_only(
    engine: sa.Engine, settings: Settings, opened: Installation
) -> None:
    mine = make_ended(engine, make_action(engine), 1)
    app = make_app(engine, "dune")
    theirs = make_operation(engine, make_action(engine, app=app), NOON, app=app)
    update_operation(engine, theirs, state="failed", finished_at=NOON)
    bound = installation_on(engine, settings).for_request("dune", is_bound=True, bearer="")

    assert bulk.retry(bound, Selection(ids=(str(mine[0]),))).count == 0
    assert bulk.retry(bound, FAILED, dry_run=True).ids == (theirs,)
    assert bulk.retry(opened, FAILED, dry_run=True).ids == tuple(mine)
    both = bulk.retry(opened, FAILED, dry_run=True, all_apps=True)
    assert set(both.ids) == {*mine, theirs}
    with pytest.raises(Refused, match="all_apps cannot be combined"):
        bulk.retry(bound, FAILED, all_apps=True)


@pytest.mark.parametrize(
    ("chosen", "error", "problem"),
    [
        pytest.param({}, Refused, "nothing chooses the runs to retry", id="nothing"),
        pytest.param({"state": ("success",)}, Refused, "retry takes", id="wrong_state"),
        pytest.param({"action": "ever minute"}, NotFound, "no action", id="unknown_action"),
        pytest.param({"since": "soon"}, Refused, "since 'soon'", id="no_instant"),
        pytest.param({"ids": ("x",)}, NotFound, "is not a run's id", id="no_id"),
        pytest.param({"ids": ("0c2f",) * 501}, Refused, "501 ids are more than 500", id="too_many"),
    ],
)
def test_a_wrong_choice_is_refused(
    engine: sa.Engine,
    opened: Installation,
    chosen: dict[str, Any],
    error: type[Exception],
    problem: str,
) -> None:
    with pytest.raises(error, match=problem):
        bulk.retry(opened, Selection(**chosen))
