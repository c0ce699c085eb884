"""What holds of every worker, whatever runs in it: our steps, a followed task, a job over HTTP."""

import pytest

from tests.acceptance.crews import Followed, OurSteps, OverHttp
from tests.acceptance.installation import Installation
from tests.acceptance.processes import thaw_tree

# Each kind beside a store; ours, which most installations have, beside both.
CREWS: dict[str, tuple[str, type[OurSteps]]] = {
    "our-steps-sqlite": ("sqlite", OurSteps),
    "our-steps-postgresql": ("postgresql", OurSteps),
    "followed": ("sqlite", Followed),
    "over-http": ("postgresql", OverHttp),
}
# A worker that does not stop by itself is ended much later.
SOFT = {
    "SCHED_WORKER_SOFT_LIMIT_S": "0.5",
    "SCHED_WORKER_HARD_LIMIT_S": "60",
    "SCHED_WORKER_CANCEL_GRACE_S": "60",
}


@pytest.fixture(params=CREWS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str) -> str:
    return CREWS[kind][0]


@pytest.fixture
def crew(kind: str, installation: Installation) -> OurSteps:
    return CREWS[kind][1](installation)


def test_a_killed_worker_s_operation_is_taken_up_again_and_ends_once(crew: OurSteps) -> None:
    id = crew.due()
    crew.daemon()
    worker = crew.worker()
    crew.begins(id)

    crew.kill(worker)
    crew.worker()
    crew.begins(id, 2)
    crew.installation.go.touch()

    row = crew.installation.becomes(id, "success")
    assert (row["attempt"], row["losses"], row["failures"]) == (2, 1, 0)
    assert [state for _, state, _ in crew.installation.attempts(id)] == ["lost", "success"]
    crew.ends(id)


def test_a_frozen_worker_loses_its_operation_and_its_late_report_changes_nothing(
    crew: OurSteps,
) -> None:
    id = crew.due()
    crew.daemon()
    frozen = crew.worker()
    crew.begins(id)

    # Not in the middle of a write: SQLite's only lock would be held until it wakes up.
    with crew.installation.engine.begin():
        frozen.freeze_tree()
    crew.worker()
    crew.begins(id, 2)
    thaw_tree(frozen.pid)
    frozen.said(crew.lost)
    between = crew.installation.row(id)
    crew.installation.go.touch()

    row = crew.installation.becomes(id, "success")
    assert (between["state"], between["attempt"]) == ("running", 2)
    assert (row["attempt"], row["losses"], row["failures"]) == (2, 1, 0)
    crew.ends(id)


def test_what_comes_twice_counts_once(crew: OurSteps) -> None:
    id = crew.due()
    crew.send()
    worker = crew.worker()
    crew.begins(id)
    crew.installation.go.touch()
    before = crew.installation.becomes(id, "success")

    crew.repeat(worker)

    assert crew.installation.row(id) == before
    assert (crew.begun(id), crew.ended(id), before["attempt"]) == (1, 1, 1)


def test_a_running_operation_that_is_cancelled_stops(crew: OurSteps) -> None:
    id = crew.due()
    crew.send()
    worker = crew.worker(SOFT)
    crew.begins(id)
    processes = worker.children()

    asked = crew.installation.cli("run", "cancel", str(id), "--wait", "--timeout", "60")

    row = crew.installation.row(id)
    assert (asked["ids"], row["state"]) == ([str(id)], "cancelled")
    assert row["reason"].startswith("cancelled by ")
    assert (crew.ended(id), worker.children()) == (0, processes)


def test_an_operation_beyond_its_time_limit_is_stopped_and_fails(crew: OurSteps) -> None:
    id = crew.due(time_limit="PT1S")
    crew.send()
    worker = crew.worker(SOFT)
    crew.begins(id)
    processes = worker.children()

    row = crew.installation.becomes(id, "failed")

    assert (row["reason"], row["attempt"], row["failures"]) == ("time limit", 1, 1)
    assert (crew.ended(id), worker.children()) == (0, processes)
