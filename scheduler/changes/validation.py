"""Validate documents: first without the database, then what depends on their stored actions."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp, Steps
from models.action.document import ParseContext, load_action
from models.action.policy import kept_too_short
from models.celery_task import NO_TASKS, CeleryRules
from models.errors import InvalidAction, Outdated, Problem
from models.parsing import DEFAULT_TICK
from models.stored import document_in
from models.trust import TRUSTED, Trust
from models.values import composed, parse_name
from models.values.durations import format_span
from runtime.sections.limits import LimitSettings
from scheduler.changes.revisions import Revision, revision_of

# A cursor with its action, as `models.store.actions.cursors` returns it.
Stored = sa.Row[Any]
# How many revisions are kept for documents like theirs; more would only take memory.
MOST_CACHED = 1_000
# Rules that begin with their action, unless they say where.
BEGINNING = ("every", "rrule")


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


class Drafts:
    """The documents of one change as revisions: at first as if each were a new action.

    Those that differ only in their names are read once. `created_at` is the creation of new
    actions. With `may_exist`, a due date may be past: `settled` looks whether it is the action's.
    """

    def __init__(
        self,
        documents: Sequence[object],
        author: ChangeContext,
        created_at: datetime,
        *,
        may_exist: bool = False,
    ) -> None:
        """Validate documents; raises InvalidAction with all problems of all."""
        self.documents, self.created_at = documents, created_at
        self._author = author
        self._revision_cache: dict[object, tuple[Revision, str]] = {}
        context = ParseContext(
            default_zone=author.small_app.zone,
            now=created_at,
            steps=author.steps,
            created_at=created_at,
            kept_due_dates=None if may_exist else frozenset(),
            tick=author.tick,
            celery=author.celery,
            trust=author.trust,
            commands=author.commands,
            channels=author.channels,
            calendars=author.calendars,
        )
        self._context = context
        places: dict[object, int] = {}

        def checked(number: int) -> Revision:
            revision = self._revision_of(documents[number], context)
            name = revision.columns["name"]
            first = places.setdefault(name, number)
            if first != number:
                remedy = f"is already in document [{first}]; give each its own name"
                raise InvalidAction([Problem("name", name, remedy)])
            _check_look_back(revision.columns["look_back_s"], author.kept_for)
            return revision

        self.revisions: list[Revision] = self._each(range(len(documents)), checked)

    def settle(self, rows: Mapping[int, Stored]) -> None:
        """Let revisions begin, and be paused, as their stored actions."""

        def settled(number: int) -> Revision:
            row, document = rows[number], self.documents[number]
            is_paused = not row.active and not _says(document, "active")
            if not is_paused and not _begins_with_action(document):
                return self.revisions[number]
            context = replace(self._context, created_at=row.created_at, is_paused=is_paused)
            return self._revision_of(document, context)

        for number, revision in zip(rows, self._each(rows, settled), strict=True):
            self.revisions[number] = revision

    def check_due_dates(self, rows: Mapping[int, Stored | None], now: datetime) -> None:
        """Raise InvalidAction for due dates that are past at `now` and in no stored document."""

        def check(number: int) -> None:
            model, row = self.revisions[number].model, rows[number]
            if model is None or not any(at <= now for at in model.when.due_dates):
                return
            kept = _due_dates(row, self._author.steps)
            context = replace(self._context, now=now, kept_due_dates=kept)
            revision_of(self.documents[number], context, self._author.name)

        self._each(rows, check)

    def _each(self, numbers: Iterable[int], make: Callable[[int], Any]) -> list[Any]:
        """Return what is made for each document; raises InvalidAction with all problems of all."""
        problems: list[Problem] = []
        made = []
        for number in numbers:
            try:
                made.append(make(number))
            except InvalidAction as error:
                where = f"[{number}] " if len(self.documents) > 1 else ""
                problems += [replace(one, path=where + one.path) for one in error.problems]
        if problems:
            raise InvalidAction(problems)
        return made

    def _revision_of(self, document: object, context: ParseContext) -> Revision:
        """Return what `revision_of` does, from a document like this one if there was one."""
        name, text = _parted(document)
        if name is None:
            return revision_of(document, context, self._author.name)
        begins_at = context.created_at if _begins_with_action(document) else None
        likeness = (text, begins_at, context.is_paused, context.kept_due_dates)
        written = f'{{"name": {json.dumps(name, ensure_ascii=False)}'
        if likeness not in self._revision_cache:
            made = revision_of(document, context, self._author.name)
            if len(self._revision_cache) < MOST_CACHED:
                self._revision_cache[likeness] = (
                    made,
                    made.columns["document"].removeprefix(written),
                )
            return made
        alike, rest = self._revision_cache[likeness]
        model = alike.model and alike.model.model_copy(update={"name": name})
        return Revision(
            model, alike.plan, {**alike.columns, "name": name, "document": written + rest}
        )


def _parted(document: object) -> tuple[str, str] | tuple[None, None]:
    """Return the name of a document and all else as text; None for one without a valid name."""
    if not isinstance(document, dict):
        return None, None
    try:
        name = composed(parse_name(document.get("name")))
        return name, repr({key: value for key, value in document.items() if key != "name"})
    except (ValueError, RecursionError):
        return None, None


def _says(document: object, key: str) -> bool:
    return isinstance(document, Mapping) and key in document


def _begins_with_action(document: object) -> bool:
    """Return whether a rule counts from the creation of its action."""
    when = document.get("when") if isinstance(document, Mapping) else None
    return any(
        not _says(rule, "starting_at") and any(_says(rule, key) for key in BEGINNING)
        for rule in (when if isinstance(when, list) else [when])
    )


def _due_dates(row: Stored | None, steps: Steps) -> frozenset[datetime]:
    """Return the due dates of a stored document; none if it is broken."""
    try:
        document = None if row is None else document_in(row.document)
        return load_action(document, steps=steps).when.due_dates
    except InvalidAction:
        return frozenset()


def _check_look_back(longest_s: int, kept_for: timedelta | None) -> None:
    longest = timedelta(seconds=longest_s)
    if kept_for is not None and longest > kept_for:
        remedy = kept_too_short(longest, kept_for)
        raise InvalidAction([Problem("policy.look_back", format_span(longest), remedy)])
