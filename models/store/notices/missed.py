"""Enqueue the notices of missed occurrences: one for an action and an episode, or one for all.

An episode is a downtime, or another cause on one day in UTC. The ids of its notices follow from it:
two daemons, and the ticks of one downtime, enqueue each once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import sqlalchemy as sa

from models.action.hooks import HooksModel
from models.notices import NoticeKind, quiet_until, targets_of
from models.sql import in_many, read_clock
from models.store import notices as store
from models.store.conditions import IS_OWED
from models.store.notices import Origin
from models.store.notices.alerting import alert_targets
from models.stored import instant_in
from models.tables import actions, notices, small_apps
from models.values import format_instant
from runtime.sections import AlertSettings

# More actions of one episode than this have one notice together, to the admins.
MOST_SINGLY = 10
# A tick may find more of an episode in its next batches.
HELD_FOR = timedelta(minutes=1)
MOST_NAMED = 5
_KIND = NoticeKind.MISSED


@dataclass(frozen=True, slots=True)
class Episode:
    """Why occurrences of some actions were missed; `key` is the same for the same cause."""

    key: str
    cause: str

    @property
    def id(self) -> UUID:
        """The id under which its notices are found."""
        return uuid5(NAMESPACE_OID, f"missed | {self.key}")


@dataclass(slots=True)
class Missed:
    """What an action missed in an episode, and the newest occurrence that runs instead."""

    count: int
    first_at: datetime
    last_at: datetime
    ran_instead_at: datetime | None = None
    hooks: HooksModel | None = None

    def add(self, count: int, first_at: datetime, last_at: datetime) -> None:
        """Add occurrences."""
        self.count += count
        self.first_at = min(self.first_at, first_at)
        self.last_at = max(self.last_at, last_at)

    def payload(self) -> dict[str, Any]:
        """Return what a notice says of it."""
        ran = self.ran_instead_at
        return {
            "missed": self.count,
            "first_at": format_instant(self.first_at),
            "last_at": format_instant(self.last_at),
            "ran_instead_at": None if ran is None else format_instant(ran),
        }


def enqueue(
    connection: sa.Connection,
    episode: Episode,
    missed: Mapping[UUID, Missed],
    alerts: AlertSettings,
) -> None:
    """Enqueue the notices of an episode, in the transaction that records what was missed.

    They wait a minute, for further actions of the episode. If those are more than ten, one notice
    to the admins stands for all; without admins, only the first ten actions have a notice.
    """
    known = _told(connection, episode)
    if None in known:
        return
    admins = alert_targets(alerts)
    heard = {uid for uid, one in missed.items() if targets_of(_KIND, one.hooks, admins)}
    fresh = sorted(heard - known)
    if admins and len(known) + len(fresh) > MOST_SINGLY:
        _enqueue_digest(connection, episode, missed, len(known | heard), alerts)
        return
    room = MOST_SINGLY - len(known)
    if fresh[:room]:
        _enqueue_singly(connection, episode, {uid: missed[uid] for uid in fresh[:room]}, alerts)


def _told(connection: sa.Connection, episode: Episode) -> set[UUID | None]:
    """Return the actions with a notice of the episode; None stands for the notice for all."""
    its = notices.c.episode_id == episode.id
    query = sa.select(notices.c.action_uid).where(its).distinct()
    return set(connection.execute(query).scalars())


_ACTIONS = (
    sa.select(
        actions.c.uid,
        actions.c.small_app_id,
        actions.c.name,
        actions.c.event,
        small_apps.c.name.label("small_app"),
    )
    .join(small_apps, small_apps.c.id == actions.c.small_app_id)
    .order_by(actions.c.uid)
)


def _payload(row: Any, episode: Episode, missed: Mapping[UUID, Missed]) -> dict[str, Any]:
    """Return what a notice says of what one action missed."""
    return {
        "kind": _KIND,
        "small_app": row.small_app,
        "action": row.name,
        "action_uid": str(row.uid),
        "state": "missed",
        "reason": episode.cause,
        "event": row.event,
        **missed[row.uid].payload(),
    }


def _enqueue_singly(
    connection: sa.Connection,
    episode: Episode,
    missed: Mapping[UUID, Missed],
    alerts: AlertSettings,
) -> None:
    not_before = _not_before(connection, alerts)
    for row in connection.execute(_ACTIONS.where(in_many(connection, actions.c.uid, [*missed]))):
        targets = targets_of(_KIND, missed[row.uid].hooks, alert_targets(alerts))
        origin = Origin(
            row.small_app_id, row.uid, row.uid, f"missed {episode.id}",
            not_before=not_before, episode_id=episode.id,
        )  # fmt: skip
        store.enqueue(connection, origin, _KIND, targets, _payload(row, episode, missed))


def _enqueue_digest(
    connection: sa.Connection,
    episode: Episode,
    missed: Mapping[UUID, Missed],
    count: int,
    alerts: AlertSettings,
) -> None:
    payload = {
        "kind": _KIND,
        "state": "missed",
        "reason": episode.cause,
        "actions": count,
        "missed": sum(one.count for one in missed.values()),
        "first_at": format_instant(min(one.first_at for one in missed.values())),
        "last_at": format_instant(max(one.last_at for one in missed.values())),
        "most_missed": _most_missed(connection, missed),
    }
    not_before = _not_before(connection, alerts)
    origin = Origin(None, None, episode.id, "all", not_before=not_before, episode_id=episode.id)
    store.enqueue(connection, origin, _KIND, alert_targets(alerts), payload)
    _withdraw_single(connection, episode)


def _most_missed(
    connection: sa.Connection, missed: Mapping[UUID, Missed]
) -> list[dict[str, object]]:
    most = sorted(missed, key=lambda uid: (-missed[uid].count, uid))[:MOST_NAMED]
    query = sa.select(actions.c.uid, actions.c.name).where(actions.c.uid.in_(most))
    names = {row.uid: row.name for row in connection.execute(query)}
    return [{"name": names.get(uid), "missed": missed[uid].count} for uid in most]


def settle(connection: sa.Connection, episode: Episode, counted: Mapping[str, Any]) -> None:
    """Let the notice for all of an episode say what was counted at the end of the tick.

    Another daemon may have enqueued single ones meanwhile: they are withdrawn.
    """
    for row in connection.execute(_held(episode)).all():
        changed = sa.update(notices).where(notices.c.id == row.id, notices.c.tries == 0)
        connection.execute(changed.values(payload={**row.payload, **counted}))
    _withdraw_single(connection, episode)


def hold(connection: sa.Connection, episode: Episode) -> bool:
    """Return whether the notice for all of an episode is not sent yet, and lock it.

    Of two daemons, the second to count what was missed then sees what the first recorded.
    """
    return bool(connection.execute(_held(episode).with_for_update()).all())


def _held(episode: Episode) -> sa.Select[Any]:
    its = (notices.c.episode_id == episode.id, notices.c.action_uid.is_(None))
    return sa.select(notices.c.id, notices.c.payload).where(*its, notices.c.tries == 0, IS_OWED)


def _withdraw_single(connection: sa.Connection, episode: Episode) -> None:
    single = (notices.c.episode_id == episode.id, notices.c.action_uid.is_not(None))
    _withdraw(connection, *single, notices.c.tries == 0)


def withdraw_after(connection: sa.Connection, now: datetime) -> None:
    """Withdraw what no one has received of occurrences after `now`: the clock was set back to it.

    They are deleted, for the same may be missed again.
    """
    query = sa.select(notices.c.id, notices.c.payload)
    found = connection.execute(query.where(IS_OWED, notices.c.kind == _KIND))
    ahead = [row.id for row in found if _is_after(row.payload, now)]
    if ahead:
        _withdraw(connection, in_many(connection, notices.c.id, ahead))


def _is_after(payload: Mapping[str, Any], now: datetime) -> bool:
    last_at = instant_in(payload.get("last_at"))
    return last_at is not None and last_at > now


def _withdraw(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> None:
    connection.execute(sa.delete(notices).where(*where, IS_OWED))


def _not_before(connection: sa.Connection, alerts: AlertSettings) -> datetime:
    now = read_clock(connection)
    return quiet_until(now, alerts.quiet, alerts.timezone) or now + HELD_FOR
