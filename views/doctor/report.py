"""What `minutehand doctor` finds, and how long it looks."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from threading import Thread

from pydantic import Field

from runtime.clock import monotonic
from views.view import Listing, View


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class Finding(View):
    """What was looked at, what was found, and what to do about it."""

    what: str = Field(description="What was looked at: `database`, `broker`, `home` …")
    level: Level
    text: str = Field(description="What was found.")
    remedy: str | None = Field(None, description="What to do about it.")


class Report(Listing[Finding]):
    """What was found, in the order of the checks."""

    @property
    def exit_code(self) -> int:
        """1 when something keeps Minutehand from its work."""
        return int(any(one.level is Level.FAULT for one in self.root))


Check = Callable[[], Sequence[Finding]]


def ok(what: str, text: str) -> Finding:
    """Return that all is well."""
    return Finding(what=what, level=Level.OK, text=text)


def warning(what: str, text: str, remedy: str) -> Finding:
    """Return what may become a fault."""
    return Finding(what=what, level=Level.WARNING, text=text, remedy=remedy)


def fault(what: str, text: str, remedy: str) -> Finding:
    """Return what keeps Minutehand from its work."""
    return Finding(what=what, level=Level.FAULT, text=text, remedy=remedy)


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
