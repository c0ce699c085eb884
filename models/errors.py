"""Every error that Minutehand raises on purpose, named for the fact.

Texts say what is wrong, which value, and what to write instead. They are turned into exit codes
and answers at the edges only (`cli/main.py`, `tasks/execute.py`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_LENGTH = 80


class SchedulerError(Exception):
    """The base of every error that a user or an operator can act on."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a document: where (`when.timezone`), what value, and what to write instead."""

    path: str
    value: object
    remedy: str

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.path}: {self.remedy}"
        shown = repr(self.value) if isinstance(self.value, str) else _json(self.value)
        if len(shown) > SHOWN_LENGTH:
            shown = shown[: SHOWN_LENGTH - 1] + "…"
        return f"{self.path} {shown}: {self.remedy}"


def _json(value: object) -> str:
    """Return `value` as an admin would have written it, in characters that any output can take."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text.encode("utf-8", "backslashreplace").decode()


class InvalidDocument(SchedulerError):
    """A document (action, small app, user list) has faults; `problems` holds all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InvalidAction(InvalidDocument):
    """A scheduled action's document has faults."""


class UnknownStep(SchedulerError):
    """An operation names a step that this worker does not know."""


class NotFound(SchedulerError):
    """No small app, action, operation or user has that name or id."""


class Refused(SchedulerError):
    """What was asked is not allowed now; nothing was done (paused, already active, wrong state)."""


class IllegalMove(SchedulerError):
    """An operation was to make a move that the table of moves does not have: a fault of ours."""


class LeaseLost(SchedulerError):
    """This attempt no longer owns its operation: stop, write nothing more."""


class BrokerUnavailable(SchedulerError):
    """The broker took nothing, or it is unknown what it took; the outbox sends again."""
