"""Record missed occurrences with their cause, and enqueue the notices about them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.action.hooks import HooksModel
from models.store import operations
from models.store.notices import missed as notices
from models.store.notices.missed import Episode, Missed
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
    parts = [*map(_of_row, rows), *map(_of_span, spans)]
    episodes = _episodes(parts, outage, last_at)
    rows = [row | {"reason": _why(_of_row(row), outage)} for row in rows]
    spans = [span | {"reason": _why(_of_span(span), outage)} for span in spans]
    count = operations.record_missed(connection, rows, spans)
    # In one order, so that two daemons never deadlock.
    for episode, missed in sorted(episodes.items(), key=lambda one: one[0].key) if count else ():
        for uid, one in missed.items():
            one.hooks, one.ran_instead_at = hooks.get(uid), (ran_instead or {}).get(uid)
        notices.enqueue(connection, episode, missed, settings.alert)
    return count


# Uid, reason, count and ends of missed occurrences of an action.
Part = tuple[UUID, str, int, datetime, datetime]


def _of_row(row: Mapping[str, Any]) -> Part:
    at = row["occurrence_at"]
    return row["action_uid"], row["reason"], 1, at, at


def _of_span(span: Mapping[str, Any]) -> Part:
    its = (span["first_at"], span["last_at"])
    return span["action_uid"], span["reason"], span["count"], *its


def _is_of(outage: Outage | None, part: Part) -> bool:
    _, reason, _, first_at, last_at = part
    is_by_time = reason.startswith((TOO_LATE, OVERTAKEN))
    return is_by_time and outage is not None and outage.covers(first_at, last_at)


def _why(part: Part, outage: Outage | None) -> str:
    """Return the reason with its cause: the outage, if the occurrences lie in it."""
    _, reason, count, _, _ = part
    if outage is None or not _is_of(outage, part):
        return reason
    is_overtaken = count == 1 and reason.startswith(OVERTAKEN)
    return f"{reason}: {outage.text}" if is_overtaken else outage.text


def _episodes(
    parts: Iterable[Part], outage: Outage | None, last_at: datetime
) -> dict[Episode, dict[UUID, Missed]]:
    """Return what each action missed in each episode.

    What was overtaken without an outage has none: `catch_up: latest` asks for the newest alone.
    """
    found: dict[Episode, dict[UUID, Missed]] = defaultdict(dict)
    for part in parts:
        uid, reason, count, first_at, until = part
        if outage is not None and _is_of(outage, part):
            episode = outage.episode
        elif reason.startswith(OVERTAKEN):
            continue
        else:
            episode = Episode(f"{last_at.date()} | {reason}", reason)
        one = found[episode].setdefault(uid, Missed(0, first_at, until))
        one.add(count, first_at, until)
    return found


def reason_within(span_reason: str, reason: str) -> str:
    """Return why one occurrence of a span was missed, `reason` being what its rule says."""
    if span_reason.startswith((TOO_LATE, OVERTAKEN)):
        return reason
    return f"{reason}: {span_reason}" if reason == OVERTAKEN else span_reason
