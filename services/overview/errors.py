"""The errors of a week, those of the same text together."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.store import overview
from models.store.scope import Scope
from services.view import Instant, View

BACK = timedelta(days=7)
# Of the operations that did not go well, the last ones are read.
MOST_READ = 1_000
MOST = 10
MOST_ACTIONS = 3
# A number, an id, an address, a path with a date: what differs from one run to the next. A word is
# searched once, from its beginning: some errors are one word of hundreds of letters.
_VARYING = re.compile(r"(?<!\S)[^\s\d]*\d\S*")


class FailedAction(View):
    """An action whose run had an error."""

    app: str = Field(description="Its small app.")
    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Uid of the action.")


class ErrorGroup(View):
    """Errors of runs that differ at most in words with digits."""

    text: str = Field(description="The error; `…` stands for what differs.")
    count: int = Field(description="How many runs had it.")
    last_at: Instant = Field(description="When the last of them ended.")
    operation: UUID = Field(description="The last of them.")
    actions: tuple[FailedAction, ...] = Field(description="Up to three of their actions.")
    action_count: int = Field(description="How many actions they are of.")


def errors_of(
    connection: sa.Connection, scope: Scope, now: datetime, apps: Mapping[int, str]
) -> tuple[ErrorGroup, ...]:
    """Return the errors of the last week; the most frequent first, and the last one of as many."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in overview.errors(connection, scope, now - BACK, MOST_READ):
        if text := alike(row["error"]):
            groups.setdefault(text, []).append(row)
    ranked = sorted(groups.items(), key=lambda one: -len(one[1]))
    return tuple(_group(text, rows, apps) for text, rows in ranked[:MOST])


def alike(error: str) -> str:
    """Return an error, which is stored as one line, without words that have digits.

    It stays as it is if nothing else is left of it.
    """
    text = _VARYING.sub("…", error).strip()
    return text if any(map(str.isalpha, text)) else error.strip()


def _group(text: str, rows: Sequence[Mapping[str, Any]], apps: Mapping[int, str]) -> ErrorGroup:
    last = rows[0]
    is_same = all(row["error"] == last["error"] for row in rows)
    named = {
        row["action_uid"]: FailedAction(
            app=apps.get(row["small_app_id"], ""), action=row["name"], uid=row["action_uid"]
        )
        for row in rows
    }
    return ErrorGroup(
        text=last["error"].strip() if is_same else text,
        count=len(rows),
        last_at=last["finished_at"],
        operation=last["id"],
        actions=tuple(named.values())[:MOST_ACTIONS],
        action_count=len(named),
    )
