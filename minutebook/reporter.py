"""What a worker's own process does for the processes of its pool, by one thread.

It renews the leases of what runs, repeats what a task could not report, reports what a killed
process held, and says that the worker lives.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from minutebook.held import ANSWERS, Held
from minutebook.lease import LOST
from minutebook.server import NotDone, Server, ServerAway

logger = logging.getLogger("minutebook.follow")

START_S = 5.0
ASK_S = 5.0
CHECK_S = 0.25
LIVES_EACH_S = 30.0
AGAIN_S = 1.0
# How long to repeat a report; then the server decides by itself.
REPEAT_S = 600.0
# How long a worker that stops may take for what is left to report.
STOP_S = 8.0
LARGEST = 200_000
# How many leases the server renews in one request.
MOST_BEATS = 1_000
NOT_READY = "not-ready"
TIME_LIMIT_TEXT = "Celery's own time limit ended the task"
# Celery checks time limits once a second, and our clock starts slightly later.
ABOUT_S = 0.5


@dataclass
class Report:
    """Requests to send in this order; each may be repeated. A refusal ends them."""

    requests: list[tuple[str, dict[str, Any]]]
    give_up_at: float


class Reporter:
    """The thread, and the way to it from each process of the pool; made before the pool forks."""

    def __init__(self, server: Server, worker: dict[str, Any]) -> None:
        self.server, self.pid = server, os.getpid()
        self._worker = worker
        self._inbox, self._outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for one in (self._inbox, self._outbox):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST * 2)
        self.held = Held()
        self._reports: list[Report] = []
        self._again_at = self._lives_at = 0.0
        # Why the server does not answer, as far as that was said.
        self._trouble = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="minutebook", daemon=True)

    @property
    def is_child(self) -> bool:
        """Whether this process is one of the pool, which starts another one after its end."""
        return os.getpid() != self.pid

    def start(self) -> None:
        """Say that the worker lives, within five seconds, and start the thread."""
        self._say_alive(START_S)
        self._thread.start()

    def stop(self) -> None:
        """Send what is left, for some seconds, and say that the worker stops."""
        self._stop.set()
        self._outbox.send(b"")
        self._thread.join(STOP_S + ASK_S)
        if not self._thread.is_alive():
            self.close()

    def close(self) -> None:
        """Close what was opened; nothing is reported from now on."""
        self._inbox.close()
        self._outbox.close()
        self.held.close()
        self.server.close()

    def report(self, *requests: tuple[str, dict[str, Any]], within_s: float = REPEAT_S) -> None:
        """Let the thread send these requests, and repeat them."""
        # The clock is the machine's: it is the same in all processes.
        text = json.dumps([requests, within_s + monotonic()], default=str).encode()
        try:
            self._outbox.send(text if len(text) <= LARGEST else _shortened(requests))
        except OSError as error:
            logger.error("a report is lost: %s: %s", error, requests[-1][0])

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._hear(CHECK_S)
                self._note_killed()
                if monotonic() >= self._again_at:
                    self._send()
                    self._keep()
                if monotonic() >= self._lives_at:
                    self._say_alive(ASK_S)
            except Exception:  # the next report must be sent
                logger.exception("Minutebook: a report failed")
        self._leave()

    def _hear(self, within_s: float) -> None:
        """Receive what processes ask for, as soon as it comes."""
        self._inbox.settimeout(within_s)
        try:
            text = self._inbox.recv(LARGEST * 2)
        # Before Python 3.10 they are two classes.
        except (TimeoutError, socket.timeout):
            return
        if text:
            self._reports.append(Report(*json.loads(text)))

    def _note_killed(self) -> None:
        for lease, killed_at in self.held.of_killed():
            outcome, error = "cut off", "its process is gone"
            if is_too_late(killed_at):
                outcome, error = "failed", TIME_LIMIT_TEXT
            said = {"lease": lease, "outcome": outcome, "error": error}
            path = f"/api/operations/{UUID(lease.partition('-')[0])}:end"
            self._reports.append(Report([(path, said)], monotonic() + REPEAT_S))

    def _send(self) -> None:
        """Send what is to be reported, until the server does not answer."""
        for one in self._reports[:]:
            # Behind the others, which it must not hold up.
            self._reports.append(self._reports.pop(0))
            try:
                self._send_one(one)
            except ServerAway as error:
                self._note_trouble(str(error))
                break
        self._reports = [one for one in self._reports if one.requests]
        if self._reports:
            # They are to be asked for again in a moment.
            self._again_at = monotonic() + AGAIN_S
        for one in [one for one in self._reports if monotonic() >= one.give_up_at]:
            self._reports.remove(one)
            logger.error("not reported: %s", one.requests[-1][0])

    def _keep(self) -> None:
        """Renew all leases, as soon as one is due; one of an end that waits always is."""
        asked_at, running = monotonic(), self.held.running()
        requests = [its for one in self._reports for its in one.requests]
        ending = [said["lease"] for _, said in requests if "lease" in said]
        if not ending and all(asked_at < one.renewed_at + one.heartbeat_s for one in running):
            return
        # Ends first: a task whose lease is not renewed does it itself.
        leases = (*ending, *(one.lease.decode() for one in running))
        beats = [{"lease": one} for one in leases[:MOST_BEATS]]
        try:
            found = self.server.ask("/api/operations:beat", {"beats": beats}, ASK_S)
        except (ServerAway, NotDone) as error:
            self._again_at = monotonic() + AGAIN_S
            self._note_trouble(str(error))
            return
        self._note_trouble("")
        for place, answer in zip(running, found["answers"][len(ending) :]):
            # In the opposite order of who reads it.
            place.answer = ANSWERS.index(LOST if answer["lost"] else answer["stop"])
            place.renewed_at = asked_at

    def _send_one(self, report: Report) -> None:
        """Send the requests of a report; leaves those that are to be sent later."""
        while report.requests:
            path, said = report.requests[0]
            try:
                self.server.ask(path, said, ASK_S)
            except NotDone as refused:
                if refused.kind == NOT_READY:
                    return
                logger.warning("%s: %s; nothing more is reported", path, refused)
                report.requests.clear()
                return
            self._note_trouble("")
            report.requests.pop(0)

    def _say_alive(self, within_s: float, *, stopping: bool = False) -> None:
        try:
            self.server.ask("/api/followers", {**self._worker, "stopping": stopping}, within_s)
        except (ServerAway, NotDone) as error:
            self._note_trouble(str(error))
            self._lives_at = monotonic() + AGAIN_S
        else:
            self._note_trouble("")
            self._lives_at = monotonic() + LIVES_EACH_S

    def _note_trouble(self, trouble: str) -> None:
        # Once for each change, not at each try.
        if trouble and not self._trouble:
            logger.error("Minutebook: %s", trouble)
        elif self._trouble and not trouble:
            logger.warning("Minutebook answers again")
        self._trouble = trouble

    def _leave(self) -> None:
        """Report what is left: the pool has ended, by force perhaps."""
        give_up_at = monotonic() + STOP_S
        self._note_killed()
        self._hear(0.01)
        self._send()
        while self._reports and monotonic() < give_up_at:
            self._hear(CHECK_S)
            self._send()
        self._say_alive(ASK_S, stopping=True)


def _shortened(requests: Any) -> bytes:
    """Return a report without what makes it too long."""
    path, said = requests[-1]
    kept = {name: one for name, one in said.items() if name not in ("traceback", "returned")}
    cut = {**kept, "error": str(kept.get("error", ""))[:1000], "progress": {}}
    return json.dumps([[(path, cut)], REPEAT_S + monotonic()], default=str).encode()


def is_too_late(killed_at: float) -> bool:
    """Return whether a process that has ended was ended by Celery's time limit."""
    return monotonic() >= killed_at - ABOUT_S
