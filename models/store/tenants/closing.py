"""Plans with what they depend on, as it is now: calendars of small apps, ends of operations."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from models.sql import read_clock
from models.store import tenants
from models.store.actions.status import plan_in

if TYPE_CHECKING:
    from models.action.plan import Plan
    from models.parsing import Calendars

SECOND = timedelta(seconds=1)
# In the text of a plan that names calendars.
NAMING = '"calendar":"'
# In the text of a plan that counts from the end of the last operation.
COUNTING = '"from":"end"'


def names_calendars(plan: object) -> bool:
    """Return whether a plan, or its text, leaves out a calendar; a broken one does not."""
    return NAMING in plan if isinstance(plan, str) else bool(getattr(plan, "calendars", ()))


def is_counted(plan: object) -> bool:
    """Return whether a plan, or its text, may count from ends; a broken one does not."""
    return COUNTING in plan if isinstance(plan, str) else bool(getattr(plan, "from_end", None))


def is_due_as_stored(plan: object) -> bool:
    """Return whether the stored instant is the next occurrence of a plan, or of its text."""
    return not (names_calendars(plan) or is_counted(plan))


def closing(connection: sa.Connection, plan: "Plan", small_app_id: int) -> "Plan":
    """Return a plan that leaves out what the calendars of its small app hold."""
    if not plan.calendars:
        return plan
    return plan.with_calendars(tenants.calendars_of(connection, small_app_id))


def calendars_for(
    connection: sa.Connection, plans: Iterable[tuple[object, int]]
) -> "Mapping[int, Calendars]":
    """Return the calendars of the small apps whose plans name some, by id.

    Each plan, or its text, is given with its small app.
    """
    naming = {small_app_id for plan, small_app_id in plans if names_calendars(plan)}
    return tenants.calendars_of_each(connection, naming) if naming else {}


def closing_rows(
    connection: sa.Connection, rows: Iterable[Mapping[Any, Any]]
) -> list[dict[str, Any]]:
    """Return rows of actions whose plans are as they stand now.

    They leave out what the calendars of their small apps hold, and name what is counted from ends.
    """
    found = [dict(row) for row in rows]
    naming = [row for row in found if names_calendars(row["plan"])]
    counting = [row for row in found if is_counted(row["plan"])]
    if not (naming or counting):
        return found
    from models.action.plan import Plan
    from models.store.actions.last_ends import last_ends

    for row in (*naming, *counting):
        row["plan"] = plan_in(row)
    calendars = calendars_for(connection, ((row["plan"], row["small_app_id"]) for row in naming))
    for row in naming:
        if isinstance(row["plan"], Plan):
            row["plan"] = row["plan"].with_calendars(calendars.get(row["small_app_id"], {}))
    ends = last_ends(connection, [row["uid"] for row in counting], read_clock(connection))
    for row in counting:
        if isinstance(row["plan"], Plan) and row["uid"] in ends:
            row["plan"], _ = ends[row["uid"]].count(row["plan"], row["uid"])
    return found


def next_open(row: Mapping[str, Any]) -> datetime | None:
    """Return when an action of `closing_rows` is due next, None if that is not known."""
    at: datetime | None = row["next_occurrence_at"]
    if at is None or is_due_as_stored(row["plan"]):
        return at
    found: datetime | None = row["plan"].schedule(row["uid"]).next(at - SECOND)
    return found
