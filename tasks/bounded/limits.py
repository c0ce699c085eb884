"""What ends the work of a child process: its limits, or a stop; and why it has no result."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from models.errors import SchedulerError

# What a child may still do after a stop, such as end its query on a server.
GRACE_S = 2.0


class InputFailed(SchedulerError):
    """An input cannot be used; `permanent`: not before the input or its settings change."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


class Stopped(Exception):
    """The work was asked to stop; existing data are unchanged."""


class Over(StrEnum):
    """A limit that a child exceeded."""

    MEMORY = "memory"
    CPU = "cpu"
    TIME = "time"


class OverLimit(InputFailed):
    """A child exceeded a limit, or crashed, so its input cannot be used."""


@dataclass
class Watch:
    """Progress and cancellation of one read; any thread may call `stop`, repeatedly."""

    should_stop: Callable[[], bool] = lambda: False
    progress: Callable[[int, int | None], None] = lambda _done, _total: None
    _interrupts: list[Callable[[], object]] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End the read, and interrupt its waits for a server or an engine."""
        self._stopped.set()
        for interrupt in tuple(self._interrupts):
            interrupt()

    @property
    def is_stopped(self) -> bool:
        """Whether the read was asked to stop."""
        return self._stopped.is_set() or self.should_stop()

    def check(self) -> None:
        """Raise Stopped if the read was asked to stop."""
        if self.is_stopped:
            raise Stopped

    @contextmanager
    def interrupted_by(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Let `stop` call `interrupt` while the block runs."""
        self._interrupts.append(interrupt)
        try:
            yield
        finally:
            self._interrupts.remove(interrupt)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one child, and the setting of each, if it has one.

    Errors begin with `shown`, the name of the child's input. `memory_mb` is the address space
    beyond that of an idle child: no child can use more memory. None: neither memory nor CPU is
    limited.
    """

    memory_mb: int | None
    cpu_s: float | None
    time_s: float
    settings: Mapping[Over, str] = field(default_factory=dict)
    # What the child gets beyond `time_s` to end in order by itself.
    slack_s: float = 0.0
    shown: str = ""
    remedy: str = "make it smaller"

    def error(self, text: str, *, permanent: bool = False) -> OverLimit:
        """Return an error about the child's input; `text` says what is wrong with it."""
        return OverLimit(f"{self.shown} {text}".lstrip(), permanent=permanent)

    def over(self, kind: Over) -> OverLimit:
        """Return the error of a child that exceeded the limit `kind`."""
        # A busy machine may have been slow; memory and CPU are the same at each try.
        return self.error(self.exceeded(kind), permanent=kind is not Over.TIME)

    def exceeded(self, kind: Over) -> str:
        """Return what exceeded the limit `kind`, and what to do about it."""
        text, value, unit = {
            Over.MEMORY: ("needs more than {} of memory", self.memory_mb, "MiB"),
            Over.CPU: ("needs more than {} of CPU time", self.cpu_s, "s"),
            Over.TIME: ("takes longer than {}", self.time_s, "s"),
        }[kind]
        setting = self.settings.get(kind)
        if setting is None:
            return f"{text.format(f'{value:g} {unit}')}; {self.remedy}"
        return f"{text.format(f'{setting}={value:g}')}; {self.remedy}, or raise {setting}"


def result_of(answer: Mapping[str, Any] | None, code: int | None, limits: Limits) -> Any:
    """Return the result in a child's `answer`; None is no answer.

    Raises OverLimit for an exceeded limit and a crash, and InputFailed and Stopped as the child
    did.
    """
    if answer is None:
        raise _ended(code, limits)
    if "result" in answer:
        return answer["result"]
    if "over" in answer:
        raise limits.over(Over(answer["over"]))
    if "failed" in answer:
        raise InputFailed(answer["failed"], permanent=answer["permanent"])
    if "stopped" in answer:
        raise Stopped
    raise limits.error(f"failed: {answer['error']}")


def _ended(code: int | None, limits: Limits) -> OverLimit:
    """Return the error of a child that ended without an answer."""
    if code is None:
        return limits.error("cannot be read: its process was lost")
    if -code == signal.SIGXCPU:
        return limits.over(Over.CPU)
    if code >= 0:
        return limits.error(f"ended its process with the code {code}")
    text = f"ended its process with {signal.Signals(-code).name}"
    if limits.memory_mb is not None:
        # C++ code that gets no memory often aborts.
        text += f"; perhaps it {limits.exceeded(Over.MEMORY)}"
    return limits.error(text)
