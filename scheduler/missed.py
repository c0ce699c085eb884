"""Record missed occurrences with their cause, and enqueue the notices about them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.action.hooks import HooksModel
from models.store.notices import missed as notices
from models.store.notices.missed import Episode, Missed
from models.store.operations import record
from scheduler.decision import OVERTAKEN, TOO_LATE
from scheduler.downtime import Outage, outage_at

Hooks = Mapping[UUID, HooksModel | None]
Rows = Sequence[dict[str, Any]]


def record_missed(
    connection: sa.Connection,
    rows: Rows,
    spans: Rows,
    hooks: Hooks,
    ran_instead: Mapping[UUID, datetime] | None = None,
) -> int:
    """Record missed operations and spans, and enqueue the notices; return how many are new.

    `hooks` are those of the actions; `ran_instead` is the newest occurrence that is recorded to run
    beside them.
    """
    if not rows and not spans:
        return 0
    last_at = max([*(row["occurrence_at"] for row in rows), *(one["last_at"] for one in spans)])
    settings = settings_in_use()
    outage = outage_at(connection, last_at, settings.scheduler.longest_gap)
    judged = _Judged(outage, last_at)
    rows = [row | {"reason": judged.add(row["action_uid"], _of_row(row))} for row in rows]
    spans = [span | {"reason": judged.add(span["action_uid"], _of_span(span))} for span in spans]
    count = record.record_missed(connection, rows, spans)
    episodes = judged.episodes
    # In one order, so that two daemons never deadlock.
    for episode, missed in sorted(episodes.items(), key=lambda one: one[0].key) if count else ():
        for uid, one in missed.items():
            one.hooks, one.ran_instead_at = hooks.get(uid), (ran_instead or {}).get(uid)
        notices.enqueue(connection, episode, missed, settings.alert)
    return count


# Reason, count and ends of missed occurrences of an action.
What = tuple[str, int, datetime, datetime]


def _of_row(row: Mapping[str, Any]) -> What:
    at = row["occurrence_at"]
    return row["reason"], 1, at, at


def _of_span(span: Mapping[str, Any]) -> What:
    return span["reason"], span["count"], span["first_at"], span["last_at"]


@dataclass
class _Judged:
    """What each action missed in each episode.

    What was overtaken without an outage has none: `catch_up: latest` asks for the newest alone.
    """

    outage: Outage | None
    last_at: datetime
    episodes: dict[Episode, dict[UUID, Missed]] = field(default_factory=lambda: defaultdict(dict))
    # Actions that are alike missed the same: what is known of a reason, a count and both ends.
    _known: dict[What, tuple[Episode | None, str]] = field(default_factory=dict)

    def add(self, uid: UUID, what: What) -> str:
        """Add what an action missed; return the reason with its cause."""
        if what not in self._known:
            self._known[what] = self._judge(*what)
        episode, why = self._known[what]
        if episode is not None:
            _, count, first_at, last_at = what
            of_episode = self.episodes[episode]
            if uid not in of_episode:
                of_episode[uid] = Missed(0, first_at, last_at)
            of_episode[uid].add(count, first_at, last_at)
        return why

    def _judge(
        self, reason: str, count: int, first_at: datetime, last_at: datetime
    ) -> tuple[Episode | None, str]:
        """Return the episode, and the reason with its cause: the outage, if it was missed in it."""
        outage = self.outage
        is_by_time = reason.startswith((TOO_LATE, OVERTAKEN))
        if outage is not None and is_by_time and outage.covers(first_at, last_at):
            is_one_overtaken = count == 1 and reason.startswith(OVERTAKEN)
            return outage.episode, f"{reason}: {outage.text}" if is_one_overtaken else outage.text
        if reason.startswith(OVERTAKEN):
            return None, reason
        return Episode(f"{self.last_at.date()} | {reason}", reason), reason


def reason_within(span_reason: str, reason: str) -> str:
    """Return why one occurrence of a span was missed, `reason` being what its rule says."""
    if span_reason.startswith((TOO_LATE, OVERTAKEN)):
        return reason
    return f"{reason}: {span_reason}" if reason == OVERTAKEN else span_reason
