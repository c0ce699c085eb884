"""Tell of missed occurrences: one notice for an action and a cause, or one for all actions.

The transaction that records what was missed begins a finding of its cause. A tick counts it in the
tables half a minute later, when other batches and daemons have recorded the rest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.health import REMEDIES
from models.action.plan import hooks_of
from models.notices import FindingKind, NoticeKind, Target, quiet_until
from models.operation import Cause, OperationState
from models.sql import database_now, in_many, read_clock
from models.store import notices as store
from models.store.actions.downtime import most_missed
from models.store.actions.missed import Missed, by_action, total
from models.store.notices import Origin, findings
from models.store.notices.alerting import NO_HOOKS, alert_targets
from models.store.notices.findings import IS_OPEN, Found
from models.tables import actions, missed_spans, operations, small_apps
from models.tables import findings as stored
from models.values import counted, format_instant
from runtime.sections import AlertSettings

# More actions of one cause than this have one notice together, to the admins.
MOST_SINGLY = 10
HELD_FOR = timedelta(seconds=30)
_IS_MISSED = stored.c.kind == FindingKind.MISSED
# An instant in the future comes from a clock that was ahead.
IS_TO_BE_TOLD = sa.and_(
    IS_OPEN, _IS_MISSED, sa.not_(stored.c.began_at.between(database_now(-HELD_FOR), database_now()))
)


def found(about: str, text: str, day: str = "") -> Found:
    """Return the finding of a cause; the reason of what was missed contains `about`."""
    return Found(FindingKind.MISSED, f"{about}{day}", text, REMEDIES[FindingKind.MISSED])


def tell(connection: sa.Connection, alerts: AlertSettings) -> None:
    """Tell what was missed for each cause that was found half a minute ago, and end it.

    If those are more than ten actions, one notice to the admins stands for all; without admins,
    only the first ten that have receivers have a notice.
    """
    ids = connection.execute(sa.select(stored.c.id).where(IS_TO_BE_TOLD)).scalars().all()
    now, admins = read_clock(connection), alert_targets(alerts)
    not_before = quiet_until(now, alerts.quiet, alerts.timezone) or now
    for row in findings.end(connection, ids):
        missed = _counted(connection, row)
        tell_them = _together if len(missed) > MOST_SINGLY and admins else _singly
        for origin, targets, told in tell_them(connection, row, missed, admins):
            its = replace(origin, finding_id=row.id, not_before=not_before)
            store.enqueue(connection, its, "missed", targets, told)


def _counted(connection: sa.Connection, row: sa.Row[Any]) -> dict[UUID, Missed]:
    """Return what each action missed for that cause, by the tables."""
    about, lately = row.about.partition(" | ")[0], row.began_at
    of_operations = (
        operations.c.recorded_at >= lately,
        operations.c.reason.contains(about, autoescape=True),
    )
    of_cause = missed_spans.c.reason.contains(about, autoescape=True)
    return by_action(connection, of_operations, (missed_spans.c.recorded_at >= lately, of_cause))


_SHOWN = ("uid", "small_app_id", "name", "event", "plan")
_ACTIONS = (
    sa.select(*(actions.c[name] for name in _SHOWN), small_apps.c.name.label("small_app"))
    .join(small_apps, small_apps.c.id == actions.c.small_app_id)
    .order_by(actions.c.uid)
)
# Where a notice goes, and what it says.
Told = Iterator[tuple[Origin, tuple[Target, ...], dict[str, Any]]]


def _singly(
    connection: sa.Connection,
    row: sa.Row[Any],
    missed: Mapping[UUID, Missed],
    admins: tuple[Target, ...],
) -> Told:
    among = in_many(connection, actions.c.uid, [*missed])
    rows = ((one, _targets(one, admins)) for one in connection.execute(_ACTIONS.where(among)))
    for one, targets in list(islice((each for each in rows if each[1]), MOST_SINGLY)):
        told = {
            "small_app": one.small_app,
            "action": one.name,
            "action_uid": str(one.uid),
            "event": one.event,
            "ran_instead_at": _next_run(connection, one.uid, missed[one.uid].last_at),
        }
        payload = _payload(row, one.name, missed[one.uid]) | told
        yield Origin(one.small_app_id, one.uid), targets, payload


def _targets(one: Any, admins: tuple[Target, ...]) -> tuple[Target, ...]:
    return tuple(dict.fromkeys((*(hooks_of(one.plan) or NO_HOOKS).of_missed, *admins)))


def _together(
    connection: sa.Connection,
    row: sa.Row[Any],
    missed: Mapping[UUID, Missed],
    admins: tuple[Target, ...],
) -> Told:
    told = {"actions": len(missed), "most_missed": most_missed(connection, missed)}
    who, every = counted(len(missed), "action"), total(missed.values())
    yield Origin(), admins, _payload(row, who, every) | told


def _payload(row: sa.Row[Any], who: str, its: Missed) -> dict[str, Any]:
    text = f"{who} missed {counted(its.times, 'occurrence')}: {row.text}"
    return {
        **findings.payload_of(NoticeKind.FINDING_BEGAN, [row], text),
        "reason": row.text,
        "missed": its.times,
        "first_at": format_instant(its.first_at),
        "last_at": format_instant(its.last_at),
    }


def _next_run(connection: sa.Connection, uid: UUID, after: datetime) -> str | None:
    """Return the first occurrence of the clock after `after` that was not missed."""
    its = operations.c
    later = (its.action_uid == uid, its.occurrence_at > after, its.cause == Cause.SCHEDULE)
    query = sa.select(sa.func.min(its.occurrence_at)).where(*later)
    found = connection.execute(query.where(its.state != OperationState.MISSED)).scalar_one()
    return None if found is None else format_instant(found)
