"""Views of operations, the runs of actions."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.action.plan import Target
from models.notices import shown_target
from models.operation import OperationState
from models.store import notices, operations
from runtime.database import reading
from small_apps.store import small_apps
from views.finding import find, operation_id
from views.installation import Installation
from views.view import Instant, Listing, View


class OperationRow(View):
    """An operation: one run of an action, for one occurrence."""

    id: UUID
    action_uid: UUID
    action_name: str
    revision: int = Field(description="The action's revision that it runs.")
    occurrence_at: Instant
    subject: str | None = Field(description="The user of its event.")
    event_id: str | None
    event_at: Instant | None = Field(description="When the event that made it due happened.")
    state: str
    reason: str | None = Field(description="Why it is in this state, if there is a reason.")
    cause: str = Field(description="`schedule`, `event`, `manual`, `rerun`, `retry` or `backfill`.")
    triggerer: str = Field(description="Who or what caused it, as text.")
    queue: str
    attempt: int = Field(description="Counts from 1.")
    failures: int = Field(description="Attempts that failed.")
    losses: int = Field(description="Attempts whose worker was lost.")
    sendings: int = Field(description="How often its message was sent.")
    in_doubt: str | None
    handing_at: Instant | None
    waiting_for: UUID | None = Field(description="The operation that must end first.")
    turn: str | None = Field(
        description="Where small apps share its queue: `waits` for its turn, or `taken`."
    )
    recorded_at: Instant
    not_before: Instant = Field(description="It is not sent before.")
    queued_at: Instant | None
    started_at: Instant | None = Field(description="Start of the current attempt.")
    heartbeat_at: Instant | None
    finished_at: Instant | None
    cancel_requested_at: Instant | None
    worker: str | None
    steps: Any = Field(description="Each step: name, state, message, error, details.")
    phase: str | None
    message: str | None
    progress: float | None = Field(description="0 to 1.")
    processed: int | None
    total: int | None
    eta_at: Instant | None = Field(description="Estimated end.")
    result: Any
    error: str | None


class Operations(Listing[OperationRow]):
    """Operations, the newest first."""


class Attempt(View):
    """One attempt of an operation."""

    operation_id: UUID
    attempt: int
    state: str
    started_at: Instant
    finished_at: Instant | None
    worker: str | None
    error: str | None


class Notice(View):
    """A notice that an operation caused."""

    id: UUID
    kind: str
    state: str
    tries: int
    created_at: Instant
    finished_at: Instant | None
    error: str | None
    to: str = Field(description="An address, or a webhook's host: its URL is a secret.")


class Operation(OperationRow):
    """An operation with its attempts and its notices."""

    zone: str = Field(description="IANA zone of its small app.")
    attempts: tuple[Attempt, ...]
    notices: tuple[Notice, ...]


class OperationStateView(View):
    """The state of an operation, `unknown` if it does not exist."""

    id: str
    state: str


class LogLine(View):
    """A line that a step logged."""

    at: str = Field(description="When, in UTC.")
    level: str
    message: str


class Log(Listing[LogLine]):
    """The last 200 lines that an operation's steps logged."""


def list_operations(
    installation: Installation, action: str | None, states: Sequence[OperationState], limit: int
) -> Operations:
    """Return a small app's newest operations, of one action or all, in some states or any."""
    app = installation.small_app
    with reading(installation.engine) as connection:
        uid = find(connection, app, action)["uid"] if action else None
        rows = operations.recent(connection, limit, small_app_id=app.id, uid=uid, states=states)
    return Operations(tuple(OperationRow(**_values(row)) for row in rows))


def show(installation: Installation, id: str) -> Operation:
    """Return an operation with its attempts and notices; raises NotFound."""
    with reading(installation.engine) as connection:
        row = operations.get(connection, operation_id(id))
        return Operation(
            **_values(row),
            zone=small_apps.by_id(connection, row["small_app_id"]).zone,
            attempts=tuple(Attempt(**one) for one in _attempts(connection, row["id"])),
            notices=tuple(_notice(one) for one in notices.of_operation(connection, row["id"])),
        )


def state(installation: Installation, id: str) -> OperationStateView:
    """Return the state of an operation; never asks the broker."""
    with reading(installation.engine) as connection:
        return OperationStateView(id=id, state=operations.get_operation_state(id, connection))


def log(installation: Installation, id: str) -> Log:
    """Return the last log lines of an operation's steps."""
    with reading(installation.engine) as connection:
        row = operations.get(connection, operation_id(id))
        lines = operations.log_lines(connection, row["id"])
    return Log(tuple(LogLine(**one) for one in lines))


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in OperationRow.model_fields}


def _attempts(connection: sa.Connection, id: UUID) -> list[dict[str, Any]]:
    return [dict(one) for one in operations.attempts_of(connection, id)]


def _notice(row: Mapping[str, Any]) -> Notice:
    keys = [key for key in Notice.model_fields if key != "to"]
    return Notice(**{key: row[key] for key in keys}, to=shown_target(Target(**row["target"])))
