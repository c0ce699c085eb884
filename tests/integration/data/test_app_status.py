"""What a small app shows of its data, and of its documents between staging and production."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from data.store import documents as app_documents
from data.store.small_apps import names_in
from data.store.status import MOST_SEEN, statuses_of
from data.store.tables import app_documents as table
from models.tables import action_cursor, actions
from tests.factories import spoil
from tests.integration.data.steps.conftest import Work
from tests.ticks import LEASE
from tests.transactions import act, clock_of, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def status(work: Work, now: datetime | None = None) -> dict[str, Any]:
    """Return the status of the small app, by default by the database's clock."""
    now = now or clock_of(work.engine)
    return act(work.engine, statuses_of, [work.app.id], now, LEASE)[work.app.id]


def make(work: Work, state: str, step: str, details: Any = None, **columns: Any) -> UUID:
    """Record an operation whose refresh has this state."""
    story = {"name": "refresh", "state": step, "details": details or {}}
    return work.operation(state=state, steps=[story], **columns)


def test_before_the_first_refresh_there_is_nothing(work: Work) -> None:
    work.operation(steps=[{"name": "maintenance", "state": "running"}])

    assert status(work) == {
        "status": "empty", "phase": None, "message": None, "blocking_maintenance": False,
        "next_run_at": None, "data_updated_at": None, "last_error": None, "run_type": None,
        "rewritten": [], "reused": [], "eta": None, "started_at": None, "elapsed_s": None,
        "eta_s": None, "is_longer_than_usual": False,
    }  # fmt: skip


@pytest.mark.parametrize("blocks", [None, False, True])
def test_what_runs_is_shown_and_whether_it_blocks(work: Work, blocks: bool | None) -> None:
    make(work, "running", "running", phase="import", message="import a", is_blocking=blocks)

    found = status(work)

    assert (found["status"], found["phase"]) == ("running", "import")
    assert (found["message"], found["eta"]) == ("import a", None)
    assert found["blocking_maintenance"] is bool(blocks)


@pytest.mark.parametrize(
    ("beat_s", "blocks"),
    [
        pytest.param(-44, True, id="within_the_lease"),
        pytest.param(-46, False, id="lost"),
        pytest.param(60, False, id="of_a_clock_that_was_ahead"),
    ],
)
def test_only_a_worker_with_a_lease_blocks(work: Work, beat_s: int, blocks: bool) -> None:
    beat = NOON + timedelta(seconds=beat_s)
    make(work, "running", "running", phase="import", is_blocking=True, heartbeat_at=beat)

    found = status(work, NOON)

    assert (found["status"], found["blocking_maintenance"]) == ("running", blocks)


def test_of_several_the_one_that_blocks_is_shown(work: Work) -> None:
    make(work, "running", "running", phase="probe", started_at=NOON)
    later = NOON + timedelta(minutes=1)
    make(work, "running", "running", phase="import", is_blocking=True, started_at=later)

    assert status(work)["phase"] == "import"


@pytest.mark.parametrize(("step", "shown"), [("publish", "running"), ("send_email", "empty")])
def test_of_what_follows_the_refresh_the_publish_is_shown_too(
    work: Work, step: str, shown: str
) -> None:
    stories = [{"name": "refresh", "state": "success"}, {"name": step, "state": "running"}]
    work.operation(steps=stories, phase=step, is_blocking=step == "publish")

    found = status(work)

    assert (found["status"], found["blocking_maintenance"]) == (shown, shown == "running")


@pytest.mark.parametrize(
    ("ran_for", "left", "is_longer"),
    [
        pytest.param(30, 10, False, id="in_time"),
        pytest.param(50, None, False, id="past_its_end"),
        pytest.param(80, None, True, id="longer_than_usual"),
    ],
)
def test_an_end_that_is_past_is_longer_than_usual(
    work: Work, ran_for: int, left: float | None, is_longer: bool
) -> None:
    make(work, "running", "running", started_at=NOON, eta_at=NOON + timedelta(seconds=40))

    found = status(work, NOON + timedelta(seconds=ran_for))

    assert found["eta_s"] == left
    assert (found["is_longer_than_usual"], found["elapsed_s"]) == (is_longer, ran_for)
    assert (found["eta"] is None) is (left is None)


def test_another_small_apps_refresh_is_not_ours(work: Work) -> None:
    make(work, "running", "running", phase="import", is_blocking=True)
    work.apply(name="other")

    assert status(work)["status"] == "empty"


def test_the_last_refresh_reports_its_domains(work: Work) -> None:
    details = {"run_type": "complete", "rewritten": ["a"], "reused": ["b"], "failed": {}}
    make(work, "success", "success", details, finished_at=NOON)

    found = status(work)

    assert (found["status"], found["run_type"], found["last_error"]) == ("ready", "complete", None)
    assert (found["rewritten"], found["reused"]) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("state", "step", "its", "shown"),
    [
        pytest.param("failed", "failed", {"error": "a: gone"}, ("failed", "a: gone"), id="all"),
        pytest.param("partial", "success", {"error": "mail"}, ("ready", None), id="another_step"),
        pytest.param(
            "partial", "partial", {"details": {"failed": {"a": "gone"}}}, ("ready", "a: gone"),
            id="a_domain",
        ),
    ],
)  # fmt: skip
def test_a_refresh_that_failed_says_why(
    work: Work, state: str, step: str, its: dict[str, Any], shown: tuple[str, str | None]
) -> None:
    make(work, state, step, finished_at=NOON, **its)

    found = status(work)

    assert (found["status"], found["last_error"]) == shown


def test_readers_see_data_of_what_was_published(work: Work) -> None:
    work.imported(a="id\n1\n")
    assert status(work)["data_updated_at"] is None

    work.publish(data=True)

    shown = work.domains()["a"].production
    assert shown is not None
    assert status(work)["data_updated_at"] == shown.created_at


def test_a_refresh_long_before_the_last_operations_is_not_forgotten(work: Work) -> None:
    work.imported(a="id\n1\n")
    for _ in range(MOST_SEEN + 1):
        work.operation(state="success", steps=[{"name": "publish", "state": "success"}])

    assert (status(work)["status"], status(work)["last_error"]) == ("ready", None)


def test_the_next_run_is_that_of_an_active_action_that_refreshes(work: Work) -> None:
    documents = {
        "maintains": ('{"name": "refresh", "operations": {"maintenance": true}}', 1, True),
        "inactive": ('{"operations": {"refresh": true}}', 2, False),
        "refreshes": ('{"operations": {"refresh": true}}', 3, True),
        "later": ('{"operations": {"refresh": true}}', 4, True),
    }
    for name, (document, hour, active) in documents.items():
        make_action(work, name, document, NOON + timedelta(hours=hour), active=active)

    assert status(work)["next_run_at"] == NOON + timedelta(hours=3)


def make_action(work: Work, name: str, document: str, at: datetime, *, active: bool) -> None:
    uid = work.action_of(work.operation(state="success"))
    with work.engine.begin() as connection:
        spoil(connection, actions.c.uid == uid, name=name, document=document, active=active)
        filed = {"watermark": NOON, "next_occurrence_at": at, "effective_from": NOON}
        connection.execute(sa.insert(action_cursor).values(action_uid=uid, **filed))


@pytest.fixture
def shop(work: Work) -> Work:
    """A small app with two documents of design."""
    work.apply(design={"start": {"color": "blue"}, "menu": {"open": True}})
    return work


def published(shop: Work, *names: str) -> list[str]:
    """Publish design documents; return those that moved."""
    operation = uuid4()
    act(shop.engine, app_documents.publish, shop.app.id, "design", names, operation)
    moved = act(shop.engine, app_documents.published_by, shop.app.id, operation)
    return [one.name for one in moved]


def test_a_save_stages_and_leaves_production_alone(shop: Work) -> None:
    published(shop, "start", "menu")

    shop.apply(design={"start": {"color": "red"}, "menu": {"open": True}})

    assert shop.shown("staging")["design"]["start"] == {"color": "red"}
    assert shop.shown()["design"]["start"] == {"color": "blue"}


def test_only_named_documents_that_differ_are_moved(shop: Work) -> None:
    assert published(shop, "start") == ["start"]
    assert published(shop, "start") == []

    assert shop.shown()["design"] == {"start": {"color": "blue"}}


def test_what_was_never_published_is_gone_when_it_is_left_out(shop: Work) -> None:
    shop.apply()

    assert fetched(shop.engine, sa.select(table)).all() == []


def test_what_was_removed_may_come_back(shop: Work) -> None:
    published(shop, "start", "menu")
    shop.apply()
    published(shop, "start", "menu")

    shop.apply(design={"menu": {"open": False}})

    assert act(shop.engine, names_in, shop.app.id)["design"] == ["menu"]
    assert published(shop, "menu") == ["menu"]


def test_one_kind_does_not_move_another(shop: Work) -> None:
    shop.apply(permissions={"start": {"groups": ["all"]}}, design={"start": {}})

    published(shop, "start")

    assert shop.shown() == {"design": {"start": {}}, "permissions": {}}
