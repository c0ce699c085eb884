"""What `minutehand doctor` finds, and how long it looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Thread

from runtime.clock import monotonic


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    what: str
    level: Level
    text: str
    remedy: str | None = None


Check = Callable[[], Sequence[Finding]]


def ok(what: str, text: str) -> Finding:
    """Return that all is well."""
    return Finding(what, Level.OK, text)


def warning(what: str, text: str, remedy: str) -> Finding:
    """Return a doubt."""
    return Finding(what, Level.WARNING, text, remedy)


def fault(what: str, text: str, remedy: str) -> Finding:
    """Return what keeps Minutehand from its work."""
    return Finding(what, Level.FAULT, text, remedy)


def look(checks: dict[str, Check], within_s: float) -> list[Finding]:
    """Return what all checks find, in their order, in `within_s` seconds at most.

    They look at the same time; one that gives no answer in time is a fault.
    """
    found: dict[str, Sequence[Finding]] = {}

    def run(what: str, check: Check) -> None:
        try:
            found[what] = check()
        except Exception as error:  # whatever a broken server makes a driver raise
            text = (str(error).strip().splitlines() or [""])[0]
            found[what] = [fault(what, f"{type(error).__name__}: {text}", "see what it says")]

    threads = {
        what: Thread(target=run, args=(what, check), daemon=True) for what, check in checks.items()
    }
    for thread in threads.values():
        thread.start()
    end = monotonic() + within_s
    for thread in threads.values():
        thread.join(max(0.0, end - monotonic()))
    silent = f"no answer within {within_s:g} s"
    return [
        finding
        for what in checks
        for finding in found.get(what, [fault(what, silent, "is it reachable from here?")])
    ]
