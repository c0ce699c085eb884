"""Validate documents against their stored actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp, Steps
from models.action import DUE_DATE
from models.action.document import ParseContext
from models.action.plan import Plan
from models.action.policy import kept_too_short
from models.action.rules import DueDateModel
from models.celery_task import NO_TASKS, CeleryRules
from models.errors import InvalidAction, Outdated, Problem
from models.json_text import read_json
from models.parsing import DEFAULT_TICK
from models.trust import TRUSTED, Trust
from models.values.durations import format_span
from runtime.sections.limits import LimitSettings
from scheduler.changes.alike import AlikeDocuments
from scheduler.changes.revisions import Revision

# A cursor with its action, as `models.store.actions.cursors` returns it.
Stored = sa.Row[Any]


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The author of a change, the small app, the known steps, and relevant settings.

    `kept_for` is the retention of operations (None: forever), `celery` the allowed tasks,
    `commands` the allowed programs, `channels` those of hooks, `trust` how far the small app is
    trusted, `limits` its ceilings if it is not. With `expects`, the change is made only to that
    revision.
    """

    name: str
    small_app: SmallApp
    steps: Steps
    tick: timedelta = DEFAULT_TICK
    kept_for: timedelta | None = None
    celery: CeleryRules | None = NO_TASKS
    trust: Trust = TRUSTED
    expects: int | None = None
    commands: tuple[str, ...] | None = ()
    channels: tuple[str, ...] | None = ()
    calendars: Mapping[str, Sequence[object]] = field(default_factory=dict)
    limits: LimitSettings = field(default_factory=LimitSettings)


def check_revision(row: Stored, author: ChangeContext) -> None:
    """Raise Outdated if the action is not at the revision that the author expects."""
    if author.expects not in {None, row.revision}:
        raise Outdated(
            f"{row.name!r} is at revision {row.revision}, not {author.expects}: another change came"
            " first; read it again"
        )


# Called with how much is done of how much in total.
Watch = Callable[[int, int], None]


def unwatched(_done: int, _total: int) -> None:
    """Watch nothing."""


def in_halves(watch: Watch) -> tuple[Watch, Watch]:
    """Return what watches the first of two equal parts of a work, and the second."""
    return (
        lambda done, total: watch(done, 2 * total),
        lambda done, total: watch(total + done, 2 * total),
    )


def revisions_of(
    documents: Sequence[object],
    contexts: Sequence[ParseContext],
    author: ChangeContext,
    watch: Watch = unwatched,
) -> list[Revision]:
    """Return the revisions of documents; raises InvalidAction with all problems of all."""
    problems: list[Problem] = []
    revisions = []
    alike = AlikeDocuments(author.name)
    seen: dict[object, int] = {}
    for number, (document, context) in enumerate(zip(documents, contexts, strict=True)):
        try:
            revision = alike.revision_of(document, context)
            first = seen.setdefault(revision.columns["name"], number)
            if first != number:
                remedy = f"is already in document [{first}]; give each its own name"
                raise InvalidAction([Problem("name", revision.columns["name"], remedy)])
            _check_look_back(revision.columns["look_back_s"], author.kept_for)
            revisions.append(revision)
        except InvalidAction as error:
            where = f"[{number}] " if len(documents) > 1 else ""
            problems += [Problem(where + p.path, p.value, p.remedy) for p in error.problems]
        watch(number + 1, len(documents))
    if problems:
        raise InvalidAction(problems)
    return revisions


def _check_look_back(longest_s: int, kept_for: timedelta | None) -> None:
    longest = timedelta(seconds=longest_s)
    if kept_for is not None and longest > kept_for:
        remedy = kept_too_short(longest, kept_for)
        raise InvalidAction([Problem("policy.look_back", format_span(longest), remedy)])


def contexts_of(
    rows: Sequence[Stored | None],
    author: ChangeContext,
    now: datetime,
    since: datetime | None = None,
) -> list[ParseContext]:
    """Return the parse context of each document, by its stored action, if any; see `context_of`."""
    of_new = context_of(None, author, now, since=since)
    alike: dict[tuple[datetime, bool], ParseContext] = {}
    found = []
    for row in rows:
        if row is None:
            found.append(of_new)
        elif (previous := _previous(row)) is not None:
            found.append(context_of(row, author, now, previous))
        else:
            key = (row.created_at, row.active)
            found.append(alike.get(key) or alike.setdefault(key, context_of(row, author, now)))
    return found


def context_of(
    row: Stored | None,
    author: ChangeContext,
    now: datetime,
    previous: Mapping[str, object] | None = None,
    since: datetime | None = None,
) -> ParseContext:
    """Return a document's parse context; `previous` is the document that it edits.

    A new action is created at `since`, or `now` if not given.
    """
    return ParseContext(
        default_zone=author.small_app.zone,
        now=now,
        steps=author.steps,
        created_at=since if row is None else row.created_at,
        previous=previous,
        is_paused=row is not None and not row.active,
        tick=author.tick,
        celery=author.celery,
        trust=author.trust,
        commands=author.commands,
        channels=author.channels,
        calendars=author.calendars,
    )


def _previous(row: Stored) -> Mapping[str, object] | None:
    """Return the edited document, if it has a due date."""
    if row.document is None or DUE_DATE not in row.document:
        return None
    try:
        document = read_json(row.document)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def has_due_date_in(plan: Plan, since: datetime, until: datetime) -> bool:
    """Return whether a due date of the plan lies in (since, until]."""
    dates = (one.due_at for one in plan.rules if isinstance(one, DueDateModel))
    return any(since < at <= until for at in dates)
