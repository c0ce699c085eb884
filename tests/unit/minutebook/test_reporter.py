"""What a worker's own process reports for those of its pool: what they could not, and their end."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from math import inf
from time import monotonic
from typing import Any

import pytest

from minutebook.followed import FollowedOperation
from minutebook.held import Held
from minutebook.lease import CANCELLED, LOST
from minutebook.reporter import LARGEST, TIME_LIMIT_TEXT, Reporter
from minutebook.server import NotDone, Server, ServerAway
from runtime.clock import wait_for

FORK = multiprocessing.get_context("fork")
LEASE = "1dd03b837b34516e8a7c7ff8626a8a85-2-secret"
END = "/api/operations/1dd03b83-7b34-516e-8a7c-7ff8626a8a85:end"
ENDED = (END, {"lease": LEASE})
BEAT = "/api/operations:beat"
OTHER = LEASE.replace("secret", "other")
SOON_S = 10.0
HEARTBEAT_S = 60.0


class Known(Server):
    """A server that keeps what it was asked; `answers` raise or are taken one after the other.

    Each lease in `stops` is lost, or its operation cancelled.
    """

    def __init__(self, *answers: Exception) -> None:
        super().__init__("/nowhere/web.sock")
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.answers = list(answers)
        self.stops: dict[str, str] = {}

    def ask(self, path: str, said: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        if path == "/api/followers":
            return {}
        self.asked.append((path, said))
        if self.answers:
            raise self.answers.pop(0)
        stops = [self.stops.get(one["lease"]) for one in said.get("beats", ())]
        known = [{"lost": stop == LOST, "stop": None if stop == LOST else stop} for stop in stops]
        return {"answers": known}

    def await_asked(self, *asked: tuple[str, Any]) -> None:
        assert wait_for(lambda: self.asked == [*asked], SOON_S), self.asked


Reporting = Callable[..., tuple[Known, Reporter]]


@pytest.fixture
def reporting(request: pytest.FixtureRequest) -> Reporting:
    def start(*answers: Exception) -> tuple[Known, Reporter]:
        server = Known(*answers)
        reporter = Reporter(server, {"name": "shop@host"})
        reporter.start()
        request.addfinalizer(reporter.stop)
        return server, reporter

    return start


def in_child(act: Callable[[], None], *, is_killed: bool = False) -> None:
    def run() -> None:
        act()
        if is_killed:
            os.kill(os.getpid(), signal.SIGKILL)

    child = FORK.Process(target=run)
    child.start()
    child.join(SOON_S)


def test_what_a_process_hands_over_is_sent_though_it_is_gone(reporting: Reporting) -> None:
    server, reporter = reporting()

    in_child(lambda: reporter.report(ENDED))

    server.await_asked(ENDED)


def test_a_report_is_repeated_until_it_is_taken_and_not_after_a_refusal(
    reporting: Reporting,
) -> None:
    away, early = ServerAway("no route"), NotDone("not-ready", "early")
    server, reporter = reporting(away, early, NotDone("lease-lost", "gone"))

    reporter.report(("/one", {}), ("/two", {}))

    assert wait_for(lambda: [path for path, _ in server.asked] == ["/one"] * 3, SOON_S)
    reporter.report(("/three", {}))
    assert wait_for(lambda: server.asked[-1][0] == "/three", SOON_S)
    assert len(server.asked) == 4


def test_an_attempt_beats_until_its_end_is_accepted(reporting: Reporting) -> None:
    server, reporter = reporting(ServerAway("a moment"))

    reporter.report(ENDED)

    server.await_asked(ENDED, (BEAT, {"beats": [{"lease": LEASE}]}), ENDED)


@pytest.mark.parametrize(
    ("after_s", "outcome", "error"),
    [
        pytest.param(inf, "cut off", "its process is gone", id="killed"),
        pytest.param(60.0, "cut off", "its process is gone", id="killed_before_its_limit"),
        pytest.param(0.0, "failed", TIME_LIMIT_TEXT, id="by_celery_s_time_limit"),
    ],
)
def test_a_process_that_is_killed_is_reported_with_what_it_held(
    reporting: Reporting, after_s: float, outcome: str, error: str
) -> None:
    server, reporter = reporting()
    killed_at = monotonic() + after_s

    in_child(lambda: _note(reporter.held, killed_at), is_killed=True)

    server.await_asked((END, {"lease": LEASE, "outcome": outcome, "error": error}))


def _note(held: Held, killed_at: float = inf) -> Any:
    place = held.note(LEASE, HEARTBEAT_S, killed_at)
    assert place is not None
    return place


def test_a_process_that_holds_nothing_more_ends_unreported_and_leaves_its_place() -> None:
    held = Held()

    def act() -> None:
        _note(held).is_running = False

    for _ in range(3):
        in_child(act, is_killed=True)
        assert [*held.of_killed()] == []
    assert len(os.read(held._free, 2 * Held.PLACES)) == 2 * Held.PLACES
    held.close()


def _operation(reporter: Reporter, lease: str = LEASE, heartbeat_s: float = 0.5) -> Any:
    limits = {"time_limit_s": 60.0, "cancel_grace_s": 1.0, "soft_limit_s": 1.0, "hard_limit_s": 2.0}
    claim = {
        **dict.fromkeys(("subject", "triggerer", "run_number", "last_success_at")),
        "limits": {**limits, "heartbeat_s": heartbeat_s}, "lease": lease, "attempt": 2,
        "operation_id": lease.partition("-")[0], "occurrence_at": "2026-11-23T06:00:00Z",
    }  # fmt: skip
    return FollowedOperation(claim, TimeoutError, reporter)


def _heard(operation: Any) -> bool:
    """Return whether an operation is asked to stop, without a request of its own."""
    return wait_for(lambda: bool(operation.beat() and operation.asked), SOON_S)


@pytest.mark.parametrize("stop", [CANCELLED, LOST])
def test_one_request_renews_all_leases_and_answers_each(reporting: Reporting, stop: str) -> None:
    server, reporter = reporting()
    server.stops[OTHER] = stop
    # The lease of one that does not look for a heartbeat and a half is not renewed.
    first, second = _operation(reporter, heartbeat_s=HEARTBEAT_S), _operation(reporter, OTHER)

    assert _heard(second)

    assert (first.asked, second.asked) == (None, stop)
    assert server.asked[0] == (BEAT, {"beats": [{"lease": LEASE}, {"lease": OTHER}]})
    assert {path for path, _ in server.asked} == {BEAT}


def test_a_process_of_the_pool_hears_what_its_parent_was_answered(reporting: Reporting) -> None:
    server, reporter = reporting()
    server.stops[LEASE] = CANCELLED

    def run() -> None:
        if _heard(_operation(reporter)):
            reporter.report(("/heard", {}))

    in_child(run)

    assert wait_for(lambda: ("/heard", {}) in server.asked, SOON_S)


def test_an_answer_to_another_lease_that_had_the_place_is_not_heard(reporting: Reporting) -> None:
    server, reporter = reporting()
    before = monotonic()
    operation = _operation(reporter, heartbeat_s=HEARTBEAT_S)

    operation._place.answer, operation._place.renewed_at = 2, before
    operation.beat()

    assert operation.asked is None
    assert server.asked == []


@pytest.mark.parametrize("is_full", [False, True], ids=["no_thread", "no_place"])
def test_a_task_renews_its_lease_itself_while_nobody_does(is_full: bool) -> None:
    server = Known()
    # Its thread does not run.
    reporter = Reporter(server, {})
    for _ in range(Held.PLACES if is_full else 0):
        _note(reporter.held)
    operation = _operation(reporter, heartbeat_s=0.02)

    assert wait_for(lambda: bool(operation.beat() and len(server.asked) == 2), SOON_S)

    beat = (f"/api/operations/{operation.operation_id}:beat", {"lease": LEASE, "progress": {}})
    assert server.asked == [beat, beat]
    operation.forget()
    reporter.close()


def test_the_lease_of_a_task_that_stands_still_is_not_renewed(
    request: pytest.FixtureRequest,
) -> None:
    server = Known()
    reporter = Reporter(server, {})
    request.addfinalizer(reporter.stop)
    stands_still = _operation(reporter, OTHER)
    stands_still._place.looked_at -= HEARTBEAT_S
    other = _operation(reporter)

    reporter.start()

    assert wait_for(lambda: bool(other.beat() and server.asked), SOON_S)
    assert all(said == {"beats": [{"lease": LEASE}]} for _, said in server.asked)


def test_an_end_that_is_too_long_goes_without_its_traceback(reporting: Reporting) -> None:
    server, reporter = reporting()
    end = {"lease": LEASE, "error": "no paper", "traceback": ["x" * 500] * 1_000}
    assert len(str(end)) > LARGEST

    reporter.report((END, end))

    assert wait_for(lambda: bool(server.asked), SOON_S)
    ((_, said),) = server.asked
    assert (said["lease"], said["error"], "traceback" in said) == (LEASE, "no paper", False)


def test_a_worker_that_stops_sends_what_waits() -> None:
    server = Known(ServerAway("a moment"))
    reporter = Reporter(server, {})
    reporter.start()
    reporter.report(ENDED)

    reporter.stop()

    assert [path for path, _ in server.asked if path == END] == [END, END]
