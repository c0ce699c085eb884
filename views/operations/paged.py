"""Operations a page at a time, in one of several orders."""

from datetime import datetime
from operator import itemgetter
from uuid import UUID

import sqlalchemy as sa

from models.sql import read_clock
from models.store import operations
from models.store.operations import pages
from models.store.operations.pages import OperationFilter, ranking
from models.store.operations.pages.ranking import OperationOrder, Rank
from models.stored import instant_in, uuid_in
from runtime.database import reading
from views.finding import wrong_cursor
from views.installation import Installation
from views.operations import OperationPage, views_of
from views.operations.filter import Filter, filter_of
from views.view import first_of


def page(
    installation: Installation,
    wanted: Filter,
    limit: int,
    cursor: str | None,
    order: OperationOrder = OperationOrder.TIME,
    *,
    all_apps: bool = False,
) -> OperationPage:
    """Return a page of the operations of a small app, or of all; raises NotFound and Refused.

    Rows that are recorded meanwhile stand before the first page, so that none is shown twice. Other
    orders than by time are those of the newest thousand that match.
    """
    with reading(installation.engine) as connection:
        after = cursor if order is OperationOrder.TIME else None
        asked = filter_of(connection, installation, wanted, after, all_apps=all_apps)
        if order is not OperationOrder.TIME:
            return _ranked(connection, asked, order, limit, cursor)
        rows = pages.page(connection, asked, limit + 1)
    shown, following = first_of(rows, limit, itemgetter("id"))
    return OperationPage(items=views_of(shown), next=following)


def _ranked(
    connection: sa.Connection,
    asked: OperationFilter,
    order: OperationOrder,
    limit: int,
    cursor: str | None,
) -> OperationPage:
    """Return a page of the newest thousand, sorted; `next` names the first page's instant too."""
    now, after = (read_clock(connection), None) if cursor is None else _place(cursor)
    found = ranking.ranks(connection, asked, order, now)
    left = found if after is None else [one for one in found if one < after]
    shown, following = first_of(left, limit, lambda one: _cursor_at(one, now))
    rows = {row["id"]: row for row in operations.by_ids(connection, [one.id for one in shown])}
    items = views_of(rows[one.id] for one in shown if one.id in rows)
    return OperationPage(items=items, next=following)


def _cursor_at(place: Rank, now: datetime) -> str:
    return f"{now.isoformat()}_{place.seconds!r}_{place.id}"


def _place(cursor: str) -> tuple[datetime, Rank]:
    at, _, rest = cursor.partition("_")
    seconds, _, text = rest.partition("_")
    now, id = instant_in(at), uuid_in(text)
    try:
        rank = Rank(float(seconds), id or UUID(int=0))
    except ValueError:
        raise wrong_cursor(cursor) from None
    if now is None or id is None:
        raise wrong_cursor(cursor)
    return now, rank
