"""The events of a tick: one range of an index for each small app, event and delay."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.store import actions, cursors, events, ticks
from runtime.database import reading
from scheduler.event_decide import (
    Late,
    Occurrence,
    Watched,
    plan_read,
    record_due,
    undecided,
    watched_of,
)
from scheduler.record import Recorded, Subject

logger = logging.getLogger("minutehand.tick")


@dataclass
class EventTick:
    """The deciding of all event actions up to `now`; `take` is given what each batch recorded."""

    engine: sa.Engine
    now: datetime
    take: Callable[[Recorded], None]
    set_aside: int = 0
    # Actions that somebody was changing: the next tick decides them, from where this one began.
    left: set[UUID] = field(default_factory=set)
    late: Late = field(default_factory=Late)

    def decide_all(self) -> None:
        """Decide, record and send, batch by batch; then note until when all is decided.

        No second run of this harms: ids tell what is recorded, and what is too late is recorded
        together with that note.
        """
        with reading(self.engine) as connection:
            seen = ticks.fact(connection, ticks.EVENTS_DECIDED)
            decided = ticks.as_instant(seen)
            watched = self._watched(events.event_actions(connection), decided)
            for some in undecided(connection, watched, self.now):
                self._record([one for one in some if not one.is_late])
                self.late.add(one for one in some if one.is_late)
        if self.left:
            return
        with self.engine.begin() as connection:
            until = self.now.isoformat()
            if not ticks.move_fact(connection, ticks.EVENTS_DECIDED, seen, until):
                # Another daemon was first, and has recorded what is too late.
                return
            missed = self.late.record(connection) if self.late else Recorded()
        self.take(missed)

    def _watched(self, rows: Sequence[sa.Row[Any]], decided: datetime | None) -> list[Watched]:
        found = []
        for row in rows:
            if row.edited_at is not None:
                self.left.add(row.uid)
                continue
            action = Subject(row.uid, row.small_app_id, row.name, row.revision)
            try:
                plan = plan_read(row.plan)
                found.append(watched_of(action, plan, row.effective_from, self.now, decided))
            except Exception as error:  # one broken action must not stop the others
                self._set_aside(action, error)
        return found

    def _record(self, due: Sequence[Occurrence]) -> None:
        if not due:
            return
        try:
            with self.engine.begin() as connection:
                recorded = record_due(connection, self._held(connection, due))
        except (sa.exc.IntegrityError, sa.exc.DataError) as error:
            if len(due) == 1:
                self._set_aside(due[0].watched.action, error)
                return
            for one in due:
                self._record([one])
            return
        self.take(recorded)

    def _held(self, connection: sa.Connection, due: Sequence[Occurrence]) -> list[Occurrence]:
        """Return those whose action is as we read it, locked until they are recorded.

        Whoever changes an action has decided it up to now: what comes after is not the old one's.
        """
        uids = {one.watched.action.uid for one in due}
        standing = events.hold_all(connection, uids)
        held = [
            one
            for one in due
            if standing.get(one.watched.action.uid) == one.watched.action.revision
        ]
        self.left |= uids - {one.watched.action.uid for one in held}
        return held

    def _set_aside(self, action: Subject, error: Exception) -> None:
        reason = f"{type(error).__name__}: {'; '.join(str(error).splitlines())[:1000]}"
        with self.engine.begin() as connection:
            standing = events.hold_all(connection, {action.uid}).get(action.uid)
            if standing != action.revision or not cursors.hold_action(connection, action.uid):
                self.left.add(action.uid)
                return
            actions.set_aside(connection, action.uid, reason)
        logger.error("action %s is set aside: %s", action.uid, reason)
        self.set_aside += 1


def withdraw_what_lies_ahead(connection: sa.Connection, now: datetime) -> None:
    """Undo what a clock that ran ahead took for missed: it is decided anew from `now` on."""
    first_at = events.withdraw_missed(connection, now)
    seen = ticks.instant_fact(connection, ticks.EVENTS_DECIDED)
    until = min(at for at in (seen, first_at, now) if at is not None)
    if seen is not None:
        ticks.set_fact(connection, ticks.EVENTS_DECIDED, until.isoformat())
