"""Views of operations, the runs of actions."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import itemgetter
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.errors import NotFound, Refused
from models.notices import Target, shown_target
from models.operation import UNSTARTED
from models.store import actions, operations
from models.store.operations import pages
from runtime.database import glancing, reading
from services.installation import Installation
from services.lookup import operation_of
from services.operations.filter import OperationFilter, wanted_by
from services.operations.sent import SentTask, sent_task
from services.verbs import READ, Verb
from services.view import PAGE, Cursor, Instant, Limit, Listing, Page, View, first_of

# Characters of an error in a list.
SHORT = 60
# Eight hexadecimal digits or more: a name rarely is that.
_ID = re.compile(r"(?=.{8,36}$)[0-9a-f]{8}[0-9a-f-]*", re.IGNORECASE | re.ASCII)


class OperationRow(View):
    """An operation: one run of an action, for one occurrence."""

    id: UUID = Field(description="Its id, which anyone can compute; also the Celery task's.")
    app: str = Field(description="Its small app.")
    action_uid: UUID = Field(description="Uid of its action.")
    action_name: str = Field(description="Name of its action.")
    revision: int | None = Field(description="The action's revision that it runs.")
    occurrence_at: Instant = Field(description="The instant at which it was due.")
    subject: str | None = Field(description="The user of its event.")
    event_id: str | None = Field(description="Id of the event that made it due.")
    event_at: Instant | None = Field(description="When the event that made it due happened.")
    state: str = Field(
        description="`pending`, `queued`, `running`, or the state in which it ended."
    )
    reason: str | None = Field(description="Why it is in this state, if there is a reason.")
    cause: str = Field(description="`schedule`, `event`, `manual`, `retry` or `backfill`.")
    triggerer: str = Field(description="Who or what caused it, as text.")
    notify: bool | None = Field(
        description="Whether a step mails what it leaves to the user; null if the user did not say."
    )
    queue: str = Field(description="The queue that it is sent to.")
    attempt: int | None = Field(description="Counts from 1.")
    failures: int = Field(description="Attempts that failed.")
    losses: int = Field(description="Attempts whose worker was lost.")
    sendings: int = Field(description="How often its message was sent.")
    send_started_at: Instant | None = Field(
        description="Of a task of your own: when its sending began."
    )
    waiting_for: UUID | None = Field(description="The operation that must end first.")
    recorded_at: Instant = Field(description="When it was recorded.")
    not_before: Instant | None = Field(description="It is not sent before.")
    sent_at: Instant | None = Field(description="When the broker took it last.")
    first_started_at: Instant | None = Field(description="Start of its first attempt.")
    started_at: Instant | None = Field(description="Start of the current attempt.")
    heartbeat_at: Instant | None = Field(description="When its worker last renewed the lease.")
    finished_at: Instant | None = Field(description="When it ended.")
    cancel_requested_at: Instant | None = Field(description="When somebody asked to cancel it.")
    worker: str | None = Field(description="The worker that runs it, or ran it last.")
    steps: Any = Field(description="Each step: name, state, message, error, details.")
    run_type: str | None = Field(description="What kind of run it is, as its step announced it.")
    is_blocking: bool | None = Field(description="Whether a step changes data that users look at.")
    phase: str | None = Field(description="What the step that runs is doing.")
    message: str | None = Field(description="What the step that runs reported last.")
    progress: float | None = Field(description="0 to 1.")
    processed: int | None = Field(description="How much the step has done, of `total`.")
    total: int | None = Field(description="How much the step has to do.")
    eta_at: Instant | None = Field(description="Estimated end.")
    result: Any = Field(description="The figures of its steps, by name.")
    error: str | None = Field(description="Why it failed, or failed in part.")

    @property
    def why(self) -> str | None:
        """Why it is in its state, or the beginning of its error."""
        error = self.error or ""
        return self.reason or (error if len(error) <= SHORT else f"{error[: SHORT - 1]}…") or None


class Operations(Listing[OperationRow]):
    """Operations, the newest first."""


class OperationPage(Page[OperationRow]):
    """Operations, the last recorded first."""


class Attempt(View):
    """One attempt of an operation."""

    operation_id: UUID = Field(description="Id of the operation.")
    attempt: int = Field(description="Counts from 1.")
    state: str = Field(description="How it ended: a state, or why it was put back.")
    started_at: Instant = Field(description="When a worker took it.")
    finished_at: Instant | None = Field(description="When it ended.")
    worker: str | None = Field(description="The worker that ran it.")
    error: str | None = Field(description="Why it failed.")


class Notice(View):
    """A notice that an operation caused."""

    id: UUID = Field(description="Id of the notice.")
    kind: str = Field(description="`run_started`, `run_ended`, `finding_began` or `finding_ended`.")
    state: str = Field(description="`owed`, `done` or `failed`.")
    tries: int = Field(description="How often it was tried.")
    created_at: Instant = Field(description="When it was decided.")
    finished_at: Instant | None = Field(description="When it was delivered, or given up.")
    error: str | None = Field(description="Why the last try failed.")
    to: str = Field(description="An address, or a webhook's host: its URL is a secret.")


class Operation(OperationRow):
    """An operation with its attempts and its notices."""

    zone: str = Field(description="IANA zone of its small app.")
    attempts: tuple[Attempt, ...] = Field(description="All its attempts, in order.")
    notices: tuple[Notice, ...] = Field(description="Mails and webhooks about it.")
    waits: str | None = Field(
        description="What it waits for, and which operations hold its place, until it starts."
    )
    task: SentTask | None = Field(
        description="The task of an application that it sends; null if it runs steps or a job."
    )


class OperationStateView(View):
    """The state of an operation, `unknown` if it does not exist."""

    id: str = Field(description="Id of the operation.")
    state: str = Field(description="Its state; `unknown` if there is no such operation.")


class LogLine(View):
    """A line that a step logged."""

    at: str = Field(description="When, in UTC.")
    level: str = Field(description="`INFO`, `WARNING`, `ERROR` or `CRITICAL`.")
    message: str = Field(description="The line.")


class Log(Listing[LogLine]):
    """The last 200 lines that an operation's steps logged."""


@Verb("list_operations", "GET /api/operations", READ)
def list_operations(
    installation: Installation,
    wanted: OperationFilter,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    *,
    all_apps: bool = False,
) -> OperationPage:
    """List the operations of a small app, or of all, a page at a time; the last recorded first.

    Rows that are recorded meanwhile stand before the first page, so that none is shown twice.
    Raises NotFound and Refused.
    """
    with reading(installation.engine) as connection:
        asked = wanted_by(connection, installation, wanted, cursor, all_apps=all_apps)
        rows = pages.page(connection, asked, limit + 1)
    shown, following = first_of(rows, limit, itemgetter("id"))
    return OperationPage(items=views_of(shown), next=following)


def with_id(installation: Installation, text: str) -> UUID | None:
    """Return the id of the one operation that a text is the id of, or its first digits."""
    if not _ID.fullmatch(text):
        return None
    with reading(installation.engine) as connection, suppress(NotFound, Refused):
        id = operation_of(connection, text, installation.scope)
        state = operations.get_operation_state(id, connection, installation.scope)
        return None if state == operations.UNKNOWN else id
    return None


@Verb("show_operation", "GET /api/operations/{id}", READ)
def show(installation: Installation, id: str) -> Operation:
    """Show an operation with its attempts and notices.

    Raises NotFound.
    """
    # A list needs nothing of what sends and moves operations.
    from models.store import notices
    from models.store.operations.transitions import attempts_of

    with glancing(installation.engine) as connection:
        row = operations.get(
            connection, operation_of(connection, id, installation.scope), installation.scope
        )
        is_unstarted = row["state"] in UNSTARTED
        plan = actions.plan_at(connection, row["action_uid"], row["revision"])
        return Operation.of(
            row,
            attempts=_attempts(attempts_of(connection, row["id"])),
            notices=notices_of(notices.of_operations(connection, [row["id"]])),
            waits=_waits(connection, installation, row) if is_unstarted else None,
            task=sent_task(plan, installation.settings.celery),
        )


def _waits(
    connection: sa.Connection, installation: Installation, row: Mapping[str, Any]
) -> str | None:
    """Return what an operation waits for; that loads the scheduler, which a list does not need."""
    from scheduler.explain import waited_for

    return waited_for(connection, row, installation.settings)


@Verb("get_operation_state", "GET /api/operations/{id}/state", READ)
def state(installation: Installation, id: str) -> OperationStateView:
    """Return the state of an operation, `unknown` if it does not exist.

    Never asks the broker.
    """
    with glancing(installation.engine) as connection:
        found = operations.get_operation_state(id, connection, installation.scope)
    return OperationStateView(id=id, state=found)


@Verb("show_logs", "GET /api/operations/{id}/logs", READ)
def log(installation: Installation, id: str) -> Log:
    """Return the last log lines of an operation's steps."""
    with reading(installation.engine) as connection:
        row = operations.get(
            connection, operation_of(connection, id, installation.scope), installation.scope
        )
        lines = operations.log_lines(connection, row["id"])
    return Log(tuple(LogLine(**one) for one in lines))


def views_of(rows: Iterable[Mapping[str, Any]]) -> tuple[OperationRow, ...]:
    """Return stored operations."""
    return tuple(OperationRow.of(row) for row in rows)


def _attempts(rows: Iterable[Mapping[str, Any]]) -> tuple[Attempt, ...]:
    return tuple(Attempt(**one) for one in rows)


def notices_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Notice, ...]:
    """Return stored notices without what is secret in their targets."""
    return tuple(Notice.of(one, to=shown_target(Target(**one["target"]))) for one in rows)
