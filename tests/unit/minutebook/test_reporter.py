"""What a worker's own process reports for those of its pool: what they could not, and their end."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any

import pytest

from minutebook.reporter import LARGEST, TIME_LIMIT_TEXT, Held, Reporter
from minutebook.server import NotDone, Server, ServerAway
from runtime.clock import wait_for

FORK = multiprocessing.get_context("fork")
LEASE = "1dd03b837b34516e8a7c7ff8626a8a85-2-secret"
END = "/api/operations/1dd03b83-7b34-516e-8a7c-7ff8626a8a85:end"
SOON_S = 10.0


class Known(Server):
    """A server that keeps what it was asked; `answers` raise or are taken one after the other."""

    def __init__(self, *answers: Exception) -> None:
        super().__init__("/nowhere/web.sock")
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.answers = list(answers)

    def ask(self, path: str, said: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        if path == "/api/followers":
            return {}
        self.asked.append((path, said))
        if self.answers:
            raise self.answers.pop(0)
        return {}


@pytest.fixture
def reporting() -> Iterator[Callable[..., tuple[Known, Reporter]]]:
    started: list[Reporter] = []

    def start(*answers: Exception) -> tuple[Known, Reporter]:
        server = Known(*answers)
        reporter = Reporter(server, {"name": "shop@host"})
        reporter.start()
        started.append(reporter)
        return server, reporter

    yield start
    for one in started:
        one.stop()


def in_child(act: Callable[[], None], *, is_killed: bool = False) -> None:
    """Let a process that was forked act, and end."""

    def run() -> None:
        act()
        if is_killed:
            os.kill(os.getpid(), signal.SIGKILL)

    child = FORK.Process(target=run)
    child.start()
    child.join(SOON_S)


Reporting = Callable[..., tuple[Known, Reporter]]


def test_what_a_process_hands_over_is_sent_though_the_process_is_gone(
    reporting: Reporting,
) -> None:
    server, reporter = reporting()

    in_child(lambda: reporter.report((END, {"lease": LEASE})))

    assert wait_for(lambda: server.asked == [(END, {"lease": LEASE})], SOON_S)


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

    reporter.report((END, {"lease": LEASE}))

    beat = ("/api/operations:beat", {"beats": [{"lease": LEASE}]})
    end = (END, {"lease": LEASE})
    assert wait_for(lambda: server.asked == [end, beat, end], SOON_S)


@pytest.mark.parametrize(
    ("after_s", "outcome", "error"),
    [
        pytest.param(None, "cut off", "its process is gone", id="killed"),
        pytest.param(60.0, "cut off", "its process is gone", id="killed_before_its_limit"),
        pytest.param(0.0, "failed", TIME_LIMIT_TEXT, id="by_celery_s_time_limit"),
    ],
)
def test_a_process_that_is_killed_is_reported_with_what_it_held(
    reporting: Reporting, after_s: float | None, outcome: str, error: str
) -> None:
    server, reporter = reporting()
    killed_at = None if after_s is None else monotonic() + after_s

    in_child(lambda: reporter.held.note(LEASE, killed_at), is_killed=True)

    said = {"lease": LEASE, "outcome": outcome, "error": error}
    assert wait_for(lambda: server.asked == [(END, said)], SOON_S)


def test_a_process_that_holds_nothing_more_ends_unreported_and_leaves_its_place() -> None:
    held = Held()

    def act() -> None:
        held.note(LEASE, None)
        held.clear()

    for _ in range(3):
        in_child(act, is_killed=True)
        assert [*held.of_killed()] == []
    assert len(os.read(held._free, 2 * Held.PLACES)) == 2 * Held.PLACES
    held.close()


def test_the_worker_s_own_process_takes_no_place() -> None:
    held = Held()
    held.note(LEASE, None)
    held.clear()

    assert [*held.of_killed()] == []
    held.close()


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
    reporter.report((END, {"lease": LEASE}))

    reporter.stop()

    assert [path for path, _ in server.asked if path == END] == [END, END]
