"""What a worker's own process does for the processes of its pool, by one thread.

It repeats what a task could not report, reports what a killed process held, and says that the
worker lives.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

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
        text = json.dumps([within_s + monotonic(), requests], default=str).encode()
        try:
            self._outbox.send(text if len(text) <= LARGEST else _shortened(requests))
        except OSError as error:
            logger.error("a report is lost: %s: %s", error, requests[-1][0])

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._hear(CHECK_S)
                self._note_killed()
                if self._reports and monotonic() >= self._again_at:
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
            give_up_at, requests = json.loads(text)
            self._reports.append(Report([(path, said) for path, said in requests], give_up_at))

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
        waiting, self._reports = self._reports, []
        while waiting:
            one = waiting.pop(0)
            try:
                self._send_one(one)
            except ServerAway as error:
                self._again_at = monotonic() + AGAIN_S
                self._note_trouble(str(error))
                # Behind the others, which it must not hold up.
                self._reports.append(one)
                break
            if one.requests:
                # It is to be asked for again in a moment.
                self._reports.append(one)
                self._again_at = monotonic() + AGAIN_S
        left = [*waiting, *self._reports]
        self._reports = [one for one in left if monotonic() < one.give_up_at]
        for one in left[:]:
            if monotonic() >= one.give_up_at:
                logger.error("not reported: %s", one.requests[-1][0])

    def _keep(self) -> None:
        """Renew the leases of the attempts whose ends are not accepted yet."""
        said = [said for one in self._reports for _, said in one.requests]
        beats = [{"lease": one["lease"]} for one in said if "lease" in one]
        if beats:
            with suppress(ServerAway, NotDone):
                self.server.ask("/api/operations:beat", {"beats": beats}, ASK_S)

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
        while True:
            self._hear(0.01)
            self._send()
            if not self._reports or monotonic() >= give_up_at:
                break
            threading.Event().wait(CHECK_S)
        self._say_alive(ASK_S, stopping=True)


def _shortened(requests: Any) -> bytes:
    """Return a report without what makes it too long."""
    path, said = requests[-1]
    kept = {name: one for name, one in said.items() if name not in ("traceback", "returned")}
    cut = {**kept, "error": str(kept.get("error", ""))[:1000], "progress": {}}
    return json.dumps([REPEAT_S + monotonic(), [(path, cut)]], default=str).encode()


class Held:
    """What each process of a pool runs, in memory that they share with their parent.

    A process has one place. The free ones lie in a pipe: to read a number is to take a place.
    """

    PLACES = 1_024
    SIZE = 256
    # Whether a lease follows; the process; the length of the text.
    _HEAD = struct.Struct("=BIH")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self.PLACES * self.SIZE)
        self._free, self._give = os.pipe()
        os.set_blocking(self._free, False)
        os.write(self._give, b"".join(struct.pack("=H", one) for one in range(self.PLACES)))
        self._parent = os.getpid()
        self._mine: tuple[int, int | None] = (0, None)

    def close(self) -> None:
        """Give the memory and the pipe back."""
        self._memory.close()
        os.close(self._free)
        os.close(self._give)

    def note(self, lease: str, killed_at: float | None) -> None:
        """Note what this process holds, and when Celery kills it, by the machine's clock."""
        start = self._place()
        if start is None:
            return
        text = f"{lease} {'' if killed_at is None else killed_at}".encode()
        head = self._HEAD.size
        self._memory[start + head : start + head + len(text)] = text
        self._memory[start : start + head] = self._HEAD.pack(0, os.getpid(), len(text))
        self._memory[start] = 1

    def clear(self) -> None:
        """Note that this process holds nothing."""
        pid, start = self._mine
        if pid == os.getpid() and start is not None:
            self._memory[start] = 0

    def _place(self) -> int | None:
        """Return where this process's place begins; None without one."""
        if os.getpid() == self._parent:
            return None
        if self._mine[0] != os.getpid():
            try:
                (number,) = struct.unpack("=H", os.read(self._free, 2))
                self._mine = (os.getpid(), number * self.SIZE)
            except (BlockingIOError, struct.error):
                self._mine = (os.getpid(), None)
        return self._mine[1]

    def of_killed(self) -> Iterator[tuple[str, float | None]]:
        """Yield what processes held that are gone; their places are free again."""
        for start in range(0, self.PLACES * self.SIZE, self.SIZE):
            holds, pid, length = self._HEAD.unpack_from(self._memory, start)
            if not pid or _is_alive(pid):
                continue
            begins = start + self._HEAD.size
            text = self._memory[begins : begins + length].decode()
            self._memory[start : start + self._HEAD.size] = bytes(self._HEAD.size)
            os.write(self._give, struct.pack("=H", start // self.SIZE))
            if holds:
                lease, _, killed_at = text.partition(" ")
                yield lease, float(killed_at) if killed_at else None


def is_too_late(killed_at: float | None) -> bool:
    """Return whether a process that has ended was ended by Celery's time limit."""
    return killed_at is not None and monotonic() >= killed_at - ABOUT_S


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
