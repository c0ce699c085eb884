"""All that the page of an action shows, deleted or not, read at once."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import ceil
from statistics import median
from typing import Any

import sqlalchemy as sa

from models.errors import NotFound
from models.operation import DONE, TROUBLED, OperationState, worst
from models.sql import read_clock
from models.store import actions, notices, overview
from models.values.zones import offsets_of
from runtime.database import reading
from services.actions import Revision
from services.changes import add
from services.changes.result import Change
from services.installation import Installation
from services.lookup import app_of, find
from services.operations import Notice, notices_of
from services.operations.last_runs import LastRun, last_runs_of
from services.upcoming import Action, Occurrence, shown_in

# A page compares each with the one before.
MOST_REVISIONS = 10
MOST_NOTICES = 5
YEAR = timedelta(days=364)
ONE_DAY = timedelta(days=1)
FIRST_DATE = date(1970, 1, 1)
# How a run ends that its figures count.
RAN = DONE | {OperationState.FAILED}


@dataclass(frozen=True, slots=True)
class Day:
    """The operations of an action on one day: their worst state, and how many are in each."""

    state: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Year:
    """The days of a zone on which an action ran, until `now`."""

    now: datetime
    zone: str
    days: Mapping[date, Day]


@dataclass(frozen=True, slots=True)
class ActionPage:
    """An action, its next and its last runs, its year, its notices and its newest revisions.

    Of the revisions there is one more than MOST_REVISIONS if there are more.
    """

    shown: Action
    next: tuple[Occurrence, ...]
    runs: tuple[LastRun, ...]
    year: Year
    notices: tuple[Notice, ...]
    revisions: tuple[Revision, ...]
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the last runs: seconds, and the share of those that ended which succeeded."""

    median_s: float
    p95_s: float
    success: float


def action_page(
    installation: Installation, name: str, count: int, zone: str, before: int | None = None
) -> ActionPage:
    """Return an action with its next `count` occurrences; raises NotFound.

    Its revisions are those before the number `before`. A deleted one is named by its uid: it has a
    past and nothing to come.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name, include_deleted=True)
        now, uid = read_clock(connection), row["uid"]
        deleted_at: datetime | None = row["deleted_at"]
        shown = shown_in(connection, installation, row, now, count, runs=0)
        runs = last_runs_of(connection, [uid]).get(uid, ())
        its_notices = notices.of_operations(connection, [one.id for one in runs]) if runs else ()
        newest = actions.revisions_of(connection, uid, before, MOST_REVISIONS + 1)
        return ActionPage(
            shown=shown,
            next=() if deleted_at else shown.next,
            runs=runs,
            year=_year(connection, uid, now, zone),
            notices=notices_of(its_notices)[: -MOST_NOTICES - 1 : -1],
            revisions=tuple(Revision(**one) for one in newest),
            deleted_at=deleted_at,
        )


def _year(connection: sa.Connection, uid: Any, now: datetime, zone: str) -> Year:
    since = now - YEAR
    offsets = offsets_of(zone, since, now)
    days: dict[date, dict[str, int]] = {}
    for row in overview.counted(connection, [uid], since, ONE_DAY, offsets):
        days.setdefault(FIRST_DATE + row["span"] * ONE_DAY, {})[row["state"]] = row["count"]
    return Year(now, zone, {day: Day(worst(counts), counts) for day, counts in days.items()})


def figures_of(runs: Collection[LastRun]) -> Figures | None:
    """Return the figures of the last runs; None if none of them ended."""
    took = sorted(one.took_s for one in runs if one.took_s is not None)
    states = Counter(one.state for one in runs if one.state in RAN)
    if not took or not states:
        return None
    return Figures(
        median_s=median(took),
        p95_s=took[ceil(0.95 * len(took)) - 1],
        success=states[OperationState.SUCCESS] / states.total(),
    )


def last_trouble(runs: Sequence[LastRun]) -> tuple[LastRun, int] | None:
    """Return the last run that did not go well, and how many have the same reason."""
    bad = [one for one in runs if one.state in TROUBLED]
    return (bad[-1], sum(one.why == bad[-1].why for one in bad)) if bad else None


def since_when(found: ActionPage) -> datetime | None:
    """Return since when an action has its status; None if what is known does not reach back."""
    if found.shown.standing == "quarantined":
        return found.shown.updated_at
    if found.shown.standing == "paused":
        return _paused_at(found.revisions, found.shown.revision)
    ended = [one for one in found.runs if one.state in RAN]
    is_well = [one.state == OperationState.SUCCESS for one in ended]
    streak = next((n for n, one in enumerate(reversed(is_well)) if one != is_well[-1]), None)
    return None if streak is None else ended[-streak].at


def _paused_at(revisions: Sequence[Revision], newest: int | None) -> datetime | None:
    """Return when the first of the newest revisions that are paused began; None of older ones."""
    found = None
    if not revisions or revisions[0].number != newest:
        return None
    for one in revisions:
        if not isinstance(one.document, Mapping) or one.document.get("active") is not False:
            return found
        found = one.effective_from
    return None


def revision_of(installation: Installation, name: str, number: int) -> Any:
    """Return the document of an action's revision; raises NotFound."""
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        document = actions.revision_document(connection, row["uid"], number)
    if document is None:
        raise NotFound(f"{row['name']!r} has no revision {number}")
    return document


def restore(installation: Installation, uid: str) -> Change:
    """Create a deleted action again, by its last document, in its small app.

    Raises NotFound, and Refused if its name is taken.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, uid, include_deleted=True)
        app = app_of(connection, installation, row)
        document = actions.revision_document(connection, row["uid"], row["revision"])
    if document is None:
        raise NotFound(f"no record is left of the action {uid}")
    there = installation.for_request(app.name, is_bound=True, bearer=installation.actor)
    return add(there, [document]).root[0]
