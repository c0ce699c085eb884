"""The daemons and workers of a storm: restarted, killed, frozen, stopped."""

import signal
from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, freeze_tree, thaw_tree
from tests.chaos.faults import Fault, Later

OF_EACH = 2
# A victim that ended by itself, or is gone.
GONE = (psutil.Error, ProcessLookupError, AssertionError)


class Crew:
    def __init__(self, installation: Installation, later: Later) -> None:
        self.installation, self.later = installation, later
        self._processes: dict[str, list[Process]] = {"daemon": [], "worker": []}

    def tend(self) -> None:
        """Restart ended processes, like a service manager."""
        for role, running in self._processes.items():
            running[:] = [one for one in running if one.is_alive]
            while len(running) < OF_EACH:
                running.append(
                    self.installation.daemon()
                    if role == "daemon"
                    else self.installation.worker("quick,heavy", concurrency=2)
                )

    def acts(self) -> dict[str, Callable[[Fault], None]]:
        return {
            "kill daemon": lambda fault: self._kill(self._one("daemon", fault)),
            "kill both daemons": lambda _: self._kill(*self._processes["daemon"]),
            "freeze daemon": lambda fault: self._freeze(fault, "daemon"),
            "stop daemon": lambda fault: self._one("daemon", fault).send(signal.SIGTERM),
            "fill disk of daemon": self._fill_disk,
            "kill child": lambda fault: self._child(fault).kill(),
            "kill worker": lambda fault: self._kill(self._one("worker", fault)),
            "freeze worker": lambda fault: self._freeze(fault, "worker"),
            "freeze child": self._freeze_child,
            "stop worker": lambda fault: self._one("worker", fault).send(signal.SIGTERM),
        }

    def _one(self, role: str, fault: Fault) -> Process:
        found = self._processes[role]
        return found[fault.number % len(found)]

    def _child(self, fault: Fault) -> psutil.Process:
        found = sorted(self._one("worker", fault).children())
        if not found:
            raise psutil.NoSuchProcess(0)
        return psutil.Process(found[fault.number // 7 % len(found)])

    def _kill(self, *processes: Process) -> None:
        for process in processes:
            process.kill()

    def _freeze(self, fault: Fault, role: str) -> None:
        freeze_for_a_while(self._one(role, fault).pid, fault, self.later)

    def _freeze_child(self, fault: Fault) -> None:
        freeze_for_a_while(self._child(fault).pid, fault, self.later)

    def _fill_disk(self, fault: Fault) -> None:
        """Stop the files of a daemon from growing, for a while."""
        daemon = psutil.Process(self._one("daemon", fault).pid)
        _, hard = daemon.rlimit(psutil.RLIMIT_FSIZE)
        self.later(fault, lambda: _limit_files(daemon, hard, hard))
        _limit_files(daemon, 0, hard)


def freeze_for_a_while(pid: int, fault: Fault, later: Later) -> None:
    """Freeze a process and its children until the fault ends."""
    later(fault, lambda: _thaw(pid))
    freeze_tree(pid)


def _thaw(pid: int) -> None:
    with suppress(*GONE):
        thaw_tree(pid)


def _limit_files(process: psutil.Process, most: int, hard: int) -> None:
    with suppress(*GONE):
        process.rlimit(psutil.RLIMIT_FSIZE, (most, hard))
