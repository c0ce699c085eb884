"""Minutebook's errors, each named for its fact.

Texts say what is wrong, with which value, and what to write instead. Only the edges (`cli/main.py`,
`tasks/execute.py`) turn them into exit codes and answers.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

SHOWN_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do next, in the words of each door: a command, a page, and a request over HTTP.

    An empty one says nothing on a page; over HTTP it is the command's.
    """

    command: str
    page: str = ""
    http: str = ""


class SchedulerError(Exception):
    """The base of all errors that a user or an operator can act on.

    Its text is the one for a command line; `on_page` is the one for a page, `over_http` the one for
    a program. They differ only in the hint: the fact before it is put in words that every door
    understands, and names an argument as a request does.
    """

    def __init__(self, text: str = "", hint: Hint | None = None) -> None:
        super().__init__(f"{text}; {hint.command}" if hint and hint.command else text)
        self.fact = text
        self.on_page = f"{text}; {hint.page}" if hint and hint.page else text
        self.over_http = f"{text}; {hint.http}" if hint and hint.http else str(self)


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a document: its path (`when.timezone`), the value, and what to write instead."""

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
    """Return `value` as JSON, in characters that any output can take."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text.encode("utf-8", "backslashreplace").decode()


MOST_PROBLEMS = 100


class InvalidDocument(SchedulerError):
    """A document (action, small app, user list) has faults; `problems` holds the first hundred."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems[:MOST_PROBLEMS])
        if len(problems) > MOST_PROBLEMS:
            rest = Problem("document", None, "has more problems; correct these first")
            self.problems = (*self.problems, rest)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InvalidAction(InvalidDocument):
    """A scheduled action's document has faults."""


class UnknownStep(SchedulerError):
    """This worker does not know a step of the operation."""


class NotFound(SchedulerError):
    """No small app, action, operation or user has this name or id."""


class Refused(SchedulerError):
    """The request is not allowed now (paused, already active, wrong state); nothing was done."""


class Outdated(Refused):
    """The request was made to a revision that is not the current one; nothing was done."""


class IllegalMove(SchedulerError):
    """A move of an operation is not in the table of legal moves: a bug."""


class LeaseLost(SchedulerError):
    """This attempt no longer owns its operation: stop, write nothing more."""


class DatabaseWentBack(LeaseLost):
    """The row of a claimed attempt lacks its claim: the database lost commits."""

    def __init__(self, operation_id: UUID, attempt: int, how: str) -> None:
        super().__init__(f"the database went back: run {operation_id} {how}")
        self.operation_id, self.attempt, self.how = operation_id, attempt, how


class BrokerUnavailable(SchedulerError):
    """The broker accepted nothing, or what it accepted is unknown; the outbox sends again."""
