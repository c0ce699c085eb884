"""The findings of `minutebook doctor`, and the parallel run of its checks."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from threading import Thread

from pydantic import Field

from runtime.clock import monotonic
from services.view import Instant, Listing, View


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class Checked(View):
    """The result of a check."""

    what: str = Field(description="What was checked: `database`, `broker`, `home` …")
    level: Level = Field(description="`ok`, or how bad it is.")
    text: str = Field(description="What was found.")
    remedy: str | None = Field(None, description="What to do about it.")
    since: Instant | None = Field(None, description="Since when, if that is known.")
    consequences: tuple[str, ...] = Field((), description="What follows from it.")


class Report(Listing[Checked]):
    """All findings, in the order of the checks."""

    @property
    def exit_code(self) -> int:
        return int(any(one.level is Level.FAULT for one in self.root))


Check = Callable[[], Iterable[Checked]]


def ok(what: str, text: str) -> Checked:
    """Return a finding without a problem."""
    return Checked(what=what, level=Level.OK, text=text)


def warning(what: str, text: str, remedy: str) -> Checked:
    """Return a finding that may become a fault."""
    return Checked(what=what, level=Level.WARNING, text=text, remedy=remedy)


def fault(what: str, text: str, remedy: str) -> Checked:
    """Return a finding that keeps Minutebook from its work."""
    return Checked(what=what, level=Level.FAULT, text=text, remedy=remedy)


def look(checks: dict[str, Check], within_s: float) -> list[Checked]:
    """Return the findings of all checks, in order, after `within_s` seconds at most.

    The checks run in parallel; one without an answer in time is a fault.
    """
    found: dict[str, list[Checked]] = {}

    def run(what: str, check: Check) -> None:
        try:
            found[what] = list(check())
        except Exception as error:  # a broken server may make a driver raise anything
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
    remedy = "is it reachable from here?"
    every = [
        finding
        for what in checks
        for finding in found.get(what, [fault(what, f"{what}: {silent}", remedy)])
    ]
    return [one for place, one in enumerate(every) if not _is_said_again(one, every, place)]


def _is_said_again(one: Checked, every: Sequence[Checked], place: int) -> bool:
    """Return whether another finding says more, or a later one the same."""
    return one.level is not Level.OK and any(
        other.level is not Level.OK
        and other.text.startswith(one.text)
        and (other.text != one.text or number > place)
        for number, other in enumerate(every)
    )
