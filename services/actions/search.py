"""Actions a page at a time."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from models.errors import Hint, NotFound, Refused
from models.sql import read_clock
from models.store import tenants
from models.store.actions import SEE_ACTIONS
from models.store.actions import search as found_in
from models.store.actions.search import ActionFilter, Asked, Place, Standing
from models.store.actions.status import plan_in
from models.store.tenants.closing import closing_rows
from models.stored import document_in
from runtime.database import reading
from services.actions import ActionRow, Actions, StoredAction, StoredActions, row_of
from services.installation import Installation
from services.lookup import number_in, scope_of, wrong_cursor
from services.verbs import READ, Verb
from services.view import LARGEST_PAGE, MOST_DOCUMENTS, PAGE, Page, first_of


class FoundAction(ActionRow):
    """An action on a page of a search."""

    when: tuple[str, ...] = Field(description="Its rules in words.")
    zone: str = Field(description="IANA zone of its first rule, else of its small app.")


class FoundActions(Page[FoundAction]):
    """Actions that a search found, in the order that was asked for."""


@Verb("list_actions", "GET /api/actions", READ, pages=Actions)
def list_actions(
    installation: Installation,
    wanted: ActionFilter,
    limit: int,
    cursor: str | None = None,
    *,
    all_apps: bool = False,
) -> Page[ActionRow]:
    """List the actions of a small app, or of all, with their status, by name.

    Raises Refused for a wrong cursor. A page of unhealthy ones may have fewer than `limit`, and
    another page follow it.
    """
    scope = scope_of(installation, all_apps=all_apps)
    with reading(installation.engine) as connection:
        found, following = _page(
            connection, installation, Asked(scope, wanted, _place(cursor)), limit
        )
    return Page[ActionRow](items=tuple(one for one, _, _ in found), next=following)


@Verb("list_documents", "GET /api/actions:documents", READ, pages=StoredActions)
def list_documents(
    installation: Installation, wanted: ActionFilter, limit: int, cursor: str | None = None
) -> Page[StoredAction]:
    """List the actions of a small app with their documents, by name.

    Raises Refused for a wrong cursor.
    """
    asked = Asked(scope_of(installation, all_apps=False), wanted, _place(cursor))
    limit = min(limit, MOST_DOCUMENTS)
    with reading(installation.engine) as connection:
        rows = found_in.page(connection, asked, limit + 1, has_documents=True)
    shown, following = first_of(rows, limit, _cursor_at)
    items = tuple(StoredAction.of(row, document=document_in(row["document"])) for row in shown)
    return Page[StoredAction](items=items, next=following)


def search(
    installation: Installation, wanted: ActionFilter, limit: int = PAGE, cursor: str | None = None
) -> FoundActions:
    """Return a page of the actions in the request's scope; raises Refused for a wrong cursor."""
    asked = Asked(installation.scope, wanted, _place(cursor))
    with reading(installation.engine) as connection:
        found, following = _page(connection, installation, asked, limit)
    items = (FoundAction.of(one, **schedule_in(row, zone)) for one, row, zone in found)
    return FoundActions(items=tuple(items), next=following)


def chosen(
    installation: Installation, verb: str, wanted: ActionFilter, *, all_apps: bool
) -> list[ActionRow]:
    """Return the actions that a verb of many concerns; raises Refused without a filter.

    Raises NotFound for none.
    """
    if wanted == ActionFilter():
        raise Refused(
            f"nothing chooses the actions to {verb}",
            Hint(
                "name an action, or write a filter such as --owner or --standing",
                "select some of the list",
                "send a filter such as owner or standing",
            ),
        )
    scope, found, place = scope_of(installation, all_apps=all_apps), list[ActionRow](), None
    with reading(installation.engine) as connection:
        while True:
            asked = Asked(scope, wanted, _place(place))
            some, place = _page(connection, installation, asked, LARGEST_PAGE)
            found += [one for one, _, _ in some]
            if place is None:
                break
    if not found:
        raise NotFound("no action matches", SEE_ACTIONS)
    return found


def count(installation: Installation, wanted: ActionFilter, most: int) -> int | None:
    """Return how many actions a search finds, up to `most`; None if their health decides."""
    if wanted.standing is Standing.TROUBLED:
        return None
    with reading(installation.engine) as connection:
        return found_in.count(connection, Asked(installation.scope, wanted), most)


def schedule_in(row: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """Return a listed action's rules in words, and their zone; that loads the grammar of rules."""
    from models.action.plan import UnreadablePlan
    from services.actions.rules import rules_in_words, zone_of

    plan = plan_in(row)
    if isinstance(plan, UnreadablePlan):
        return {"when": (), "zone": zone}
    zone = zone_of(plan, zone)
    return {"when": rules_in_words(plan, zone), "zone": zone}


def _page(
    connection: sa.Connection,
    installation: Installation,
    asked: Asked,
    limit: int,
) -> tuple[list[tuple[ActionRow, dict[str, Any], str]], str | None]:
    """Return up to `limit` actions, their rows and apps' zones, and the cursor of the next page."""
    rows = found_in.page(connection, asked, limit + 1)
    shown, following = first_of(rows, limit, _cursor_at)
    shown = closing_rows(connection, shown)
    now = read_clock(connection)
    apps = tenants.by_ids(connection, {row["small_app_id"] for row in shown})
    found = []
    for row in shown:
        app = apps.get(row["small_app_id"])
        one = row_of(row, now, installation.settings.alert.after, None if app is None else app.name)
        if asked.filter.standing is not Standing.TROUBLED or not one.is_healthy:
            found.append((one, row, "UTC" if app is None else app.zone))
    return found, following


def _cursor_at(row: Mapping[str, Any]) -> str:
    return f"{row['small_app_id']}_{row['name']}"


def _place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    app_id, separator, name = cursor.partition("_")
    if not separator:
        raise wrong_cursor(cursor)
    return name, number_in(app_id)
