"""Decide event actions in a tick, by one index range per small app, event and delay."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import readable
from models.store import key_values
from models.store.people import events
from models.stored import instant_in
from runtime.database import reading, unhurried
from runtime.logs.events import EventLog
from scheduler.events import Watched, decided_by_events, watched_of
from scheduler.quarantine import Quarantine
from scheduler.record import ActionRef, Decided, Recorded, State, record

logger = EventLog("minutebook.tick")
SECOND = timedelta(seconds=1)


@dataclass
class EventTick:
    """Decides all event actions up to `now`; `take` gets what each batch recorded.

    Once `is_outdated`, `now` was wrong, and nothing more is recorded.
    """

    engine: sa.Engine
    now: datetime
    is_outdated: Callable[[sa.Connection], bool]
    take: Callable[[Recorded], None]
    error: str | None = None
    # Actions being changed are left as well: the next tick decides from where this one began.
    quarantine: Quarantine = field(default_factory=Quarantine)
    # What is too late, by action: recorded at the end, in bounded memory.
    late: dict[ActionRef, Decided] = field(default_factory=dict)

    def decide_all(self) -> None:
        """Decide, record and send in batches; then store the instant up to which all is decided.

        A second run is harmless: ids prevent duplicates, and late occurrences are recorded together
        with that instant. An unexpected error ends only this tick's events, not its sweep.
        """
        try:
            self._decide_all()
        except sa.exc.SQLAlchemyError:
            raise
        except Exception as error:
            logger.exception(
                "events_failed",
                "the events of this tick are not decided; the next tick tries again",
            )
            self.error = f"{type(error).__name__}: {error}"

    def _decide_all(self) -> None:
        with reading(self.engine) as connection:
            seen = key_values.value(connection, key_values.EVENTS_DECIDED)
            rows = events.event_actions(connection)
            self._decide(connection, self._watched(rows, instant_in(seen)))
        if not self.quarantine.left:
            self._note(seen)

    def follow(self, uid: UUID) -> None:
        """Decide, record and send what is due at `now` by an end of that action, without a delay.

        The window is that one second. What is not recorded now is left to the next tick.
        """
        with reading(self.engine) as connection:
            decided = key_values.instant_value(connection, key_values.EVENTS_DECIDED)
            rows = events.dependants(connection, uid)
            since = self.now - SECOND
            watched = [
                replace(one, window=replace(one.window, since=max(since, one.window.since)))
                for one in self._watched(rows, decided)
                if not one.rule.lag
            ]
            self._decide(connection, watched)

    def _decide(self, connection: sa.Connection, watched: Sequence[Watched]) -> None:
        """Decide and record these actions, each batch in a transaction of its own."""
        for some in decided_by_events(connection, watched):
            self._record([_sent(one) for one in some if one.decision.due])
            for one in some:
                self._add_late(one)

    def _add_late(self, one: Decided) -> None:
        if one.decision.missed:
            late = replace(one.decision, due=())
            known = self.late.get(one.action)
            total = late if known is None else known.decision + late
            self.late[one.action] = one._replace(decision=total)

    def _note(self, seen: str | None) -> None:
        """Store the instant up to which all is decided, and record late occurrences with it."""
        with unhurried(self.engine) as connection:
            if self.is_outdated(connection):
                return
            if not self._holds(connection, self.late.keys()):
                # A change may have recorded what the action missed.
                return
            until = self.now.isoformat()
            if not key_values.move_value(connection, key_values.EVENTS_DECIDED, seen, until):
                # Another daemon was first, and recorded the late occurrences.
                return
            missed = record(connection, list(self.late.values()))
        self.take(missed)

    def _holds(self, connection: sa.Connection, changed: Collection[ActionRef]) -> bool:
        if not changed:
            return True
        revisions = events.hold_all(connection, {one.uid for one in changed})
        return all(revisions.get(one.uid) == one.revision for one in changed)

    def _watched(self, rows: Sequence[sa.Row[Any]], decided: datetime | None) -> list[Watched]:
        found = []
        for row in rows:
            action = ActionRef(row.uid, row.small_app_id, row.name, row.revision)
            try:
                state = State(action, readable(row.plan), row.effective_from)
                found.append(watched_of(state, self.now, decided))
            except Exception as error:  # one broken action must not stop the others
                with self.engine.begin() as connection:
                    if self._holds(connection, [action]):
                        self.quarantine.add(connection, action.uid, error)
                    else:
                        self.quarantine.left.add(action.uid)
        return found

    def _record(self, decided: Sequence[Decided]) -> None:
        if not decided:
            return
        with self.engine.begin() as connection:
            if self.is_outdated(connection):
                return
            held = self._held(connection, decided)
            recorded = self.quarantine.recorded(connection, held, record)
        self.take(recorded)

    def _held(self, connection: sa.Connection, decided: Sequence[Decided]) -> list[Decided]:
        """Return the decisions about unchanged actions, locked until they are recorded.

        A change has decided the old revision up to now, so later occurrences belong to the new one.
        """
        uids = {one.action.uid for one in decided}
        revisions = events.hold_all(connection, uids)
        held = [one for one in decided if revisions.get(one.action.uid) == one.action.revision]
        self.quarantine.left |= uids - {one.action.uid for one in held}
        return held


def _sent(one: Decided) -> Decided:
    """Return what a decision sends: it is recorded at once, without what is too late."""
    return one._replace(decision=replace(one.decision, missed=(), missed_span=None))
