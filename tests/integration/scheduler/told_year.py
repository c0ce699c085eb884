"""What lists and plans of changes say in a simulated year, held against the oracle."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from models.sql import read_clock
from runtime.database import reading
from scheduler.changes.change import Change
from scheduler.changes.plan import load, plan_changes
from tests.factories import author
from tests.integration.scheduler.oracle import Action, OnEvents, Revision, busiest
from views.actions.search import list_actions
from views.changes import pruning
from views.installation import Installation

MOST = 1_000
SHOWN = 5
OWNER = "year"


def check_list(
    installation: Installation, lived: Mapping[str, Action], now: datetime, known_until: datetime
) -> None:
    """Assert that a list has all actions, with their standing and their next occurrences."""
    rows = list_actions(installation, MOST).items
    told = {
        one.name: (
            one.standing,
            one.active,
            one.revision,
            _within(one.next_occurrence_at, known_until),
            _within(one.next_if_resumed_at, known_until),
        )
        for one in rows
    }
    expected = {
        name: (action.standing, action.is_on, action.number, *_next(action, now, known_until))
        for name, action in lived.items()
        if action.deleted_at is None
    }

    assert (now, told) == (now, expected)


def _next(
    action: Action, now: datetime, known_until: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return the next occurrence, and that of a paused action if it is resumed."""
    following = _following(action.revision, now, known_until)
    first = following[0] if following else None
    is_active, is_paused = action.standing == "active", action.standing == "paused"
    return first if is_active else None, first if is_paused else None


def _within(at: datetime | None, until: datetime) -> datetime | None:
    return at if at is not None and at < until else None


def check_plan(
    installation: Installation,
    lived: Mapping[str, Action],
    name: str,
    document: dict[str, Any],
    revision: Revision,
    known_until: datetime,
) -> None:
    """Assert that the plan of a change says what the change will do."""
    action = lived[name]
    with reading(installation.engine) as connection:
        now = read_clock(connection)
        (told,) = plan_changes(connection, [document], author(), now)
    before, edited = action.before(), action.edited
    sent, missed = action.foreseen(revision, now)
    adopts = edited is not None and edited[1] is not None

    assert (now, told.change, told.uid) == (now, Change.CHANGED, action.uid)
    assert told.number == action.number + 1 + adopts
    assert told.is_edited == (edited is not None)
    assert (now, list(told.sent), told.missed) == (now, sent, missed)
    assert _known(told.before, known_until) == _shown(before, now, known_until)
    assert _known(told.after, known_until) == _shown(revision, now, known_until)


def check_load(
    installation: Installation,
    lived: Mapping[str, Action],
    name: str,
    document: dict[str, Any],
    revision: Revision,
) -> None:
    """Assert that the plan of a change names the busiest minute of the next day."""
    with reading(installation.engine) as connection:
        now = read_clock(connection)
        told = load(connection, plan_changes(connection, [document], author(), now), now)
    others = [one.revision for key, one in lived.items() if key != name and _is_due(one)]
    was = [lived[name].revision] if _is_due(lived[name]) else []
    becomes = [] if isinstance(revision, OnEvents) else [revision]

    assert (now, told.before) == (now, busiest([*others, *was], now))
    assert (now, told.after) == (now, busiest([*others, *becomes], now))


def check_prune(installation: Installation, lived: Mapping[str, Action], name: str) -> None:
    """Assert that a plan without the action's document would delete it, and nothing else."""
    others = (key for key, one in lived.items() if one.deleted_at is None and key != name)
    documents = [{"name": key} for key in others]
    with reading(installation.engine) as connection:
        told = pruning.beside(connection, installation, documents, OWNER)

    assert [(one.name, one.uid, one.revision) for one in told] == [
        (name, lived[name].uid, lived[name].number)
    ]


def _is_due(action: Action) -> bool:
    """Return whether the clock makes it due."""
    is_there = action.deleted_at is None and not action.is_aside
    return is_there and not isinstance(action.revision, OnEvents)


def _shown(revision: Revision | None, now: datetime, known_until: datetime) -> list[datetime]:
    is_shown = revision is not None and revision.active
    return _following(revision, now, known_until) if revision is not None and is_shown else []


def _following(revision: Revision, now: datetime, known_until: datetime) -> list[datetime]:
    """Return what the clock makes due next."""
    if isinstance(revision, OnEvents):
        return []
    return _known(revision.following(now, SHOWN), known_until)


def _known(instants: Iterable[datetime], until: datetime) -> list[datetime]:
    """Return the instants that lie where the oracle knows all."""
    return [at for at in instants if at < until]
