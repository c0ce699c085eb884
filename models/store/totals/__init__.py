"""Store totals that only grow, and find what they do not count yet."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.many_rows import add_all
from models.sql import database_now, is_among
from models.store.actions import missed
from models.store.facts import fact_query, move_fact
from models.store.totals.amounts import NO_APP, Key, Totals
from models.stored import document_in, instant_in, uuid_in
from models.tables import (
    actions,
    deliveries,
    missed_spans,
    notices,
    operations,
    totals,
)
from runtime.postgresql import IDLE_TRANSACTION_TIMEOUT_S

# The place up to which everything is counted.
COUNTED_TO = "totals_counted_to"
# A younger row may still be uncommitted: the database ends transactions that idle for this long.
SETTLED_AFTER_S = IDLE_TRANSACTION_TIMEOUT_S
# The rows of one transaction, so that memory and locks stay small after a long downtime.
PAGE = 5_000
FIRST_ID = UUID(int=0)
SPAN_IDS = range(2**63)
_COUNTED = tuple(
    operations.c[name]
    for name in (
        *("id", "small_app_id", "queue", "state", "cause", "attempt", "occurrence_at"),
        *("recorded_at", "first_started_at", "started_at", "finished_at", "steps"),
    )
)


@dataclass(frozen=True, slots=True)
class Place:
    """How far everything is counted.

    (at, id) are of the last operation. What else ended is counted up to `others_at`; of the missed
    spans recorded at that instant, those up to `span_id`.
    """

    at: datetime
    id: UUID
    others_at: datetime
    span_id: int = 0

    @classmethod
    def of(cls, text: str | None, first: datetime) -> "Place":
        """Return the stored place; `first` if there is none that can be read."""
        stored = document_in(text or "")
        at, others_at = instant_in(stored.get("at")), instant_in(stored.get("others_at"))
        id, span_id = uuid_in(stored.get("id")), stored.get("span_id", 0)
        if (
            at is None
            or others_at is None
            or id is None
            or span_id not in SPAN_IDS
            or max(at, others_at) > first
        ):
            # Before the first count; or the clock was set back: what lies ahead is passed over.
            return cls(first, FIRST_ID, first)
        return cls(at, id, others_at, span_id)

    def text(self) -> str:
        """Return the place as it is stored."""
        ends = {"at": self.at.isoformat(), "others_at": self.others_at.isoformat()}
        return json.dumps({**ends, "id": str(self.id), "span_id": self.span_id})


@dataclass(frozen=True, slots=True)
class Page:
    """What is to be counted next, from the place stored as `seen` up to `place`."""

    found: Totals
    seen: str | None
    place: Place
    is_last: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing ended; the first page is stored even then, for its place."""
        return self.is_last and self.seen is not None and not self.found.amounts


def next_page(connection: sa.Connection) -> Page:
    """Return what ended since the last count and is settled, at most `PAGE` rows of a kind."""
    until, seen, last_end, *last_others = connection.execute(_COUNTED_TO).one()
    place = Place.of(seen, until)
    found = Totals()
    ends = ((place.at, last_end), *((place.others_at, one) for one in last_others))
    if all(last is None or last < at for at, last in ends):
        return Page(found, seen, Place(until, FIRST_ID, until), is_last=True)
    given = {"at": place.at, "id": place.id, "until": until, "most": PAGE}
    rows = connection.execute(_ENDED, given).all()
    found.add_ended(rows)
    _add_deliveries(connection, found, [row.id for row in rows if row.steps])
    if len(rows) == PAGE:
        further = replace(place, at=rows[-1].finished_at, id=rows[-1].id)
        return Page(found, seen, further, is_last=False)
    others_at, span_id = _add_others(connection, found, place, until)
    further = Place(until, FIRST_ID, others_at, span_id)
    return Page(found, seen, further, is_last=others_at == until)


def _add_deliveries(connection: sa.Connection, found: Totals, ids: Sequence[UUID]) -> None:
    query = (
        sa.select(operations.c.small_app_id, deliveries.c.state, _TIMES)
        .join(deliveries, deliveries.c.operation_id == operations.c.id)
        .where(is_among(connection, operations.c.id, ids))
        .group_by(operations.c.small_app_id, deliveries.c.state)
    )
    for row in connection.execute(query) if ids else ():
        found.add("deliveries", row.state, app=row.small_app_id, by=row.times)


def _add_others(
    connection: sa.Connection, found: Totals, place: Place, until: datetime
) -> tuple[datetime, int]:
    """Add missed spans, and the notices that ended; return up to where, as in `Place`."""
    given = {"at": place.others_at, "id": place.span_id, "until": until, "most": PAGE}
    spans = connection.execute(_MISSED, given).mappings().all()
    for span in spans:
        found.add("missed", app=span["small_app_id"], by=missed.count(connection, span))
    is_full = len(spans) == PAGE
    at, id = (spans[-1]["recorded_at"], spans[-1]["id"]) if is_full else (until, 0)
    for row in connection.execute(_NOTICES, {"at": place.others_at, "until": at}):
        app = NO_APP if row.small_app_id is None else row.small_app_id
        found.add("notices", row.state, app=app, by=row.times)
    return at, id


def _page(query: sa.Select[Any], at: sa.Column[Any], id: sa.Column[Any]) -> sa.Select[Any]:
    """Return the query of a page of rows after the place (at, id), before `until`."""
    is_beyond = sa.or_(at > _AT, sa.and_(at == _AT, id > sa.bindparam("id", type_=id.type)))
    return (
        query.where(at >= _AT, at < _UNTIL, is_beyond).order_by(at, id).limit(sa.bindparam("most"))
    )


# Each tick asks these: made once.
_AT, _UNTIL = (sa.bindparam(one, type_=notices.c.finished_at.type) for one in ("at", "until"))
_TIMES = sa.func.count().label("times")


def _last(at: sa.Column[Any]) -> sa.ScalarSelect[Any]:
    """Return the query of the last settled instant of a column, by the end of its index."""
    return sa.select(sa.func.max(at)).where(at < database_now(-SETTLED_AFTER_S)).scalar_subquery()


# When nothing ended, this one statement shows it.
_COUNTED_TO = sa.select(
    database_now(-SETTLED_AFTER_S),
    fact_query(COUNTED_TO).scalar_subquery(),
    _last(operations.c.finished_at),
    _last(missed_spans.c.recorded_at),
    _last(notices.c.finished_at),
)
_ENDED = _page(sa.select(*_COUNTED), operations.c.finished_at, operations.c.id)
_NOTICES = (
    sa.select(notices.c.small_app_id, notices.c.state, _TIMES)
    .where(notices.c.finished_at >= _AT, notices.c.finished_at < _UNTIL)
    .group_by(notices.c.small_app_id, notices.c.state)
)
_MISSED = _page(
    missed.query(actions.c.uid.is_not(None)),
    missed_spans.c.recorded_at,
    missed_spans.c.id,
)


def store_page(connection: sa.Connection, page: Page) -> bool:
    """Add a page's counts, once; False if another daemon has counted it meanwhile."""
    if not move_fact(connection, COUNTED_TO, page.seen, page.place.text()):
        return False
    add(connection, page.found)
    return True


def add(connection: sa.Connection, found: Totals) -> None:
    """Add amounts to the stored totals, always in the same order, so that no two deadlock."""
    rows = [{**key._asdict(), "amount": by} for key, by in sorted(found.amounts.items())]
    add_all(connection, totals, rows, "amount")


def all_of(connection: sa.Connection) -> Iterable[tuple[Key, float]]:
    """Return every total."""
    for *key, amount in connection.execute(sa.select(totals)):
        yield Key(*key), amount or 0.0
