"""Plans with the calendars of their small apps, as these are now."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from models.parsing import Calendars
from models.store import tenants
from models.store.actions.status import plan_in

if TYPE_CHECKING:
    from models.action.plan import Plan

SECOND = timedelta(seconds=1)
# In the text of a plan that names calendars.
NAMING = '"calendars":["'


def names_calendars(plan: object) -> bool:
    """Return whether a plan, or its text, leaves out a calendar; a broken one does not."""
    return NAMING in plan if isinstance(plan, str) else getattr(plan, "names_calendars", False)


def closing(connection: sa.Connection, plan: "Plan", small_app_id: int) -> "Plan":
    """Return a plan that leaves out what the calendars of its small app hold."""
    if not plan.names_calendars:
        return plan
    return plan.with_calendars(tenants.calendars_of(connection, small_app_id))


def calendars_for(
    connection: sa.Connection, plans: Iterable[tuple[object, int]]
) -> Mapping[int, Calendars]:
    """Return the calendars of the small apps whose plans name some, by id.

    Each plan, or its text, is given with its small app.
    """
    naming = {small_app_id for plan, small_app_id in plans if names_calendars(plan)}
    return tenants.calendars_of_each(connection, naming) if naming else {}


def closing_rows(
    connection: sa.Connection, rows: Iterable[Mapping[Any, Any]]
) -> list[dict[str, Any]]:
    """Return rows of actions whose plans leave out what the calendars of their small apps hold."""
    found = [dict(row) for row in rows]
    naming = [row for row in found if names_calendars(row["plan"])]
    if not naming:
        return found
    from models.action.plan import Plan

    calendars = tenants.calendars_of_each(connection, {row["small_app_id"] for row in naming})
    for row in naming:
        plan = plan_in(row)
        its_own = calendars.get(row["small_app_id"], {})
        row["plan"] = plan.with_calendars(its_own) if isinstance(plan, Plan) else plan
    return found


def next_open(row: Mapping[str, Any]) -> datetime | None:
    """Return when an action of `closing_rows` is due next: it was stored without its calendars."""
    at: datetime | None = row["next_occurrence_at"]
    if at is None or not names_calendars(row["plan"]):
        return at
    found: datetime | None = row["plan"].schedule(row["uid"]).next(at - SECOND)
    return found
