"""Actions a page at a time, as a search finds them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from minutehand.steps import SmallApp
from models.action.plan import Broken
from models.errors import Refused
from models.sql import read_clock
from models.store.actions import search as found_in
from models.store.actions.search import Standing, Wanted
from models.store.operations.durations import last_runs
from runtime.database import reading
from small_apps.store import small_apps
from views.actions import ActionRow, row_of
from views.installation import Installation
from views.view import View
from views.words import rules_in_words, zone_of

MOST_DURATIONS = 20
MOST_WORDS = 10


class FoundAction(ActionRow):
    """An action on a page of a search."""

    when: tuple[str, ...] = Field(description="Its rules in words.")
    zone: str = Field(description="IANA zone of its first rule, else of its small app.")
    durations_s: tuple[float, ...] = Field(description="Of its last runs, the oldest first.")


class ActionPage(View):
    """Actions that a search found, by name."""

    items: tuple[FoundAction, ...]
    next: str | None = Field(description="`cursor` of the next page; null for the last page.")


def search(
    installation: Installation,
    words: str = "",
    owner: str | None = None,
    standing: Standing | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> ActionPage:
    """Return a page of the actions in the request's scope; raises Refused for a wrong cursor.

    Each word is in the name or in the owner. `troubled` are those that are not healthy.
    """
    alert = installation.settings.alert
    after = None if cursor is None else _place(cursor)
    asked = Wanted(installation.scope, words.split()[:MOST_WORDS], owner, standing, after)
    with reading(installation.engine) as connection:
        rows = found_in.page(connection, asked, limit + 1, alert.overdue)
        shown = rows[:limit]
        uids = [row["uid"] for row in shown if row["uid"] is not None]
        runs = last_runs(connection, uids, MOST_DURATIONS)
        apps = {app.id: app for app in small_apps.listed(connection)}
        now = read_clock(connection)
    found = (_found(row, now, alert.after, apps, runs.get(row["uid"], [])) for row in shown)
    last = shown[-1] if len(rows) > limit else None
    return ActionPage(
        items=tuple(
            one for one in found if standing is not Standing.TROUBLED or not one.is_healthy
        ),
        next=None if last is None else f"{last['uid']}_{last['name']}",
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


def _place(cursor: str) -> tuple[str, UUID]:
    uid, _, name = cursor.partition("_")
    try:
        return name, UUID(uid)
    except ValueError:
        raise Refused(f"cursor {cursor!r} is not valid; use `next` of the previous page") from None
