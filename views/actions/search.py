"""Actions a page at a time, as a search finds them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from minutehand.steps import SmallApp
from models.action.plan import Broken
from models.sql import read_clock
from models.store.actions import search as found_in
from models.store.actions.search import Standing, Wanted
from models.store.operations.durations import last_runs
from models.store.scope import WHOLE_INSTALLATION, Scope
from runtime.database import reading
from small_apps.store import small_apps
from views.actions import ActionRow, row_of
from views.finding import check_all_apps, number_in, wrong_cursor
from views.installation import Installation
from views.view import Page, first_of
from views.words import rules_in_words, zone_of

MOST_DURATIONS = 20
MOST_WORDS = 10


class FoundAction(ActionRow):
    """An action on a page of a search."""

    when: tuple[str, ...] = Field(description="Its rules in words.")
    zone: str = Field(description="IANA zone of its first rule, else of its small app.")
    durations_s: tuple[float, ...] = Field(description="Of its last runs, the oldest first.")


class FoundActions(Page[FoundAction]):
    """Actions that a search found, by name."""


def list_actions(
    installation: Installation,
    limit: int,
    cursor: str | None = None,
    *,
    all_apps: bool = False,
    unhealthy: bool = False,
    owner: str | None = None,
) -> Page[ActionRow]:
    """Return a page of the actions of a small app, or of all; raises Refused for a wrong cursor.

    A page of unhealthy ones may have fewer than `limit`, and another page follow it.
    """
    check_all_apps(installation, all_apps)
    alert = installation.settings.alert
    scope = WHOLE_INSTALLATION if all_apps else Scope(installation.small_app.id)
    standing = Standing.TROUBLED if unhealthy else None
    asked = Wanted(scope, (), owner, standing, _place(cursor))
    with reading(installation.engine) as connection:
        rows = found_in.page(connection, asked, limit + 1, alert.overdue)
        shown, following = first_of(rows, limit, _cursor_at)
        now = read_clock(connection)
        apps = small_apps.by_ids(connection, {row["small_app_id"] for row in shown})
    names = {id: app.name for id, app in apps.items()}
    found = (row_of(row, now, alert.after, names.get(row["small_app_id"])) for row in shown)
    items = tuple(one for one in found if not (unhealthy and one.is_healthy))
    return Page[ActionRow](items=items, next=following)


def search(
    installation: Installation,
    words: str = "",
    owner: str | None = None,
    standing: Standing | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> FoundActions:
    """Return a page of the actions in the request's scope; raises Refused for a wrong cursor.

    Each word is in the name or in the owner. `troubled` are those that are not healthy.
    """
    alert = installation.settings.alert
    in_words = words.split()[:MOST_WORDS]
    asked = Wanted(installation.scope, in_words, owner, standing, _place(cursor))
    with reading(installation.engine) as connection:
        rows = found_in.page(connection, asked, limit + 1, alert.overdue)
        shown, following = first_of(rows, limit, _cursor_at)
        uids = [row["uid"] for row in shown if row["uid"] is not None]
        runs = last_runs(connection, uids, MOST_DURATIONS)
        apps = small_apps.by_ids(connection, {row["small_app_id"] for row in shown})
        now = read_clock(connection)
    found = (_found(row, now, alert.after, apps, runs.get(row["uid"], [])) for row in shown)
    return FoundActions(
        items=tuple(
            one for one in found if standing is not Standing.TROUBLED or not one.is_healthy
        ),
        next=following,
    )


def _found(
    row: Mapping[str, Any],
    now: datetime,
    alert_after: int,
    apps: Mapping[int, SmallApp],
    runs: Sequence[Mapping[str, Any]],
) -> FoundAction:
    app, plan = apps.get(row["small_app_id"]), row["plan"]
    zone = zone_of(plan, "UTC" if app is None else app.zone)
    return FoundAction(
        **dict(row_of(row, now, alert_after, None if app is None else app.name)),
        when=() if isinstance(plan, Broken) else rules_in_words(plan, zone),
        zone=zone,
        durations_s=tuple(run["seconds"] for run in runs),
    )


def _cursor_at(row: Mapping[str, Any]) -> str:
    return f"{row['small_app_id']}_{row['name']}"


def _place(cursor: str | None) -> tuple[str, int] | None:
    if cursor is None:
        return None
    app_id, separator, name = cursor.partition("_")
    if not separator:
        raise wrong_cursor(cursor)
    return name, number_in(app_id)
