"""What another scheduler has, in one form for all schedulers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from models.errors import InvalidDocument, Problem

CORRECT = "correct it in the schedule it comes from"
# A remedy that begins with one of these does not say what is wrong.
VERBS = frozenset({"write", "give", "name", "use", "add", "remove", "set", "choose", "correct"})


@dataclass(frozen=True, slots=True)
class Known:
    """When the other scheduler runs an entry next, as its own engine found at `as_of`.

    At most five instants; the first is `as_of` itself if the entry is overdue.
    """

    next_at: tuple[datetime, ...]
    as_of: datetime


class CannotMove(ValueError):
    """Something that no action can express: why not, and what to do instead."""

    def __init__(self, why: str, instead: str) -> None:
        super().__init__(f"{why}; {instead}")
        self.why = why
        self.instead = instead


def check_said(unsaid: Sequence[object], taker: str) -> None:
    """Raise CannotMove for what an entry passes to `taker` and no action can hold."""
    if unsaid:
        parts = "; ".join(map(str, unsaid))
        instead = f"pass texts and numbers to the {taker}, a number beyond 2**63 - 1 as a text"
        raise CannotMove(f"an action cannot hold {parts}", instead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of another scheduler, as an action would say it.

    `where` names its place: a file and line, or a table and row. `remarks` say what differs apart
    from its instants, `unknown` what cannot be known. Without `known` instants are not compared.
    """

    name: str
    where: str
    operations: Mapping[str, Any]
    when: object
    policy: Mapping[str, Any] = field(default_factory=dict)
    hooks: Mapping[str, Any] = field(default_factory=dict)
    active: bool = True
    description: str = ""
    owner: str = ""
    remarks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    known: Known | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The action's document; keys with their default values are left out."""
        written: dict[str, Any] = {"name": self.name}
        written |= {
            key: value
            for key, value in (("description", self.description), ("owner", self.owner))
            if value
        }
        if not self.active:
            written["active"] = False
        written |= {"operations": dict(self.operations), "when": self.when}
        for key, group in (("policy", self.policy), ("hooks", self.hooks)):
            if group:
                written[key] = dict(group)
        return written


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that no action can express."""

    name: str
    where: str
    why: str
    instead: str

    @classmethod
    def by(cls, name: str, where: str, error: InvalidDocument) -> "Refused":
        """Return an entry that is refused by the faults of its document."""
        halves = [_halves(one) for one in error.problems]
        whys, instead = (dict.fromkeys(filter(None, one)) for one in zip(*halves, strict=True))
        return cls(name, where, "; ".join(whys), "; ".join(instead) or CORRECT)


def _halves(problem: Problem) -> tuple[str, str]:
    """Return what is wrong with which value, and what to write instead, empty if it is unsaid."""
    fault, _, remedy = problem.remedy.partition("; ")
    if fault.split(" ", 1)[0] in VERBS:
        fault, remedy = "is refused", problem.remedy
    shown = "" if problem.value is None else f" {problem.value!r}"
    return f"{problem.path}{shown} {fault}", remedy


def entry_or_refused(name: str, where: str, make: Callable[[], Entry]) -> Entry | Refused:
    """Return the entry that `make` returns, refused if it raises CannotMove."""
    try:
        return make()
    except CannotMove as error:
        return Refused(name, where, error.why, error.instead)
