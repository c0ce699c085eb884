"""Start, plan, cancel and show backfills: runs of a past range of an action."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from models.operation import ENDED, WENT_WELL
from models.sql import read_clock
from models.store.actions.status import plan_in
from models.store.operations import backfills
from models.values import counted
from runtime.database import reading
from scheduler.on_demand import backfill as filling
from scheduler.on_demand.backfill_range import BackfillRequest, Mode
from services.actions.rules import zone_of
from services.installation import Installation
from services.lookup import app_of, find, instant_of
from services.verbs import OPERATE, READ, Verb
from services.view import Instant, Listing, View

First = Annotated[str, Field(description="First instant of the range.")]
Last = Annotated[str, Field(description="Last instant of the range.")]
Only = Annotated[
    Literal["missing", "failed"] | None, Field(description="Only these; both without it.")
]
ACTIVE = "active"
DONE = "done"


class Backfill(View):
    """A backfill; both ends belong to its range."""

    id: UUID = Field(description="Id of the backfill.")
    mode: str = Field(description="Which occurrences: `all`, `missing` or `failed`.")
    state: str = Field(description="`active`, `done`, `failed` or `cancelled`.")
    actor: str = Field(description="The account that requested it.")
    recorded: int = Field(description="Occurrences that got a new operation.")
    repeated: int = Field(description="Operations that run once more.")
    passed_over: int = Field(description="Occurrences that ran, run, wait or were skipped.")
    first_at: Instant = Field(alias="from", description="First instant of the range.")
    last_at: Instant = Field(alias="to", description="Last instant of the range.")
    requested_at: Instant = Field(description="When it was asked for.")
    finished_at: Instant | None = Field(
        description="When its operations were recorded, or it was cancelled."
    )
    error: str | None = Field(description="Why it failed or was cancelled.")


class StartedBackfill(Backfill):
    """A backfill that was just started, with the states of its operations."""

    uid: UUID = Field(description="Of the action.")
    name: str = Field(description="Of the action.")
    operations: dict[str, int] = Field(description="How many operations are in each state.")
    is_awaited: bool = Field(False, exclude=True)
    unsent: str | None = Field(None, description="Why the broker has not taken it yet.")

    @property
    def is_over(self) -> bool:
        """Whether it and all of its operations have ended."""
        return self.state != ACTIVE and set(self.operations) <= set(ENDED)

    @property
    def exit_code(self) -> int:
        """1 if the command waited for it and it did not succeed."""
        is_well = self.state == DONE and set(self.operations) <= set(WENT_WELL)
        return int(self.is_awaited and not is_well)

    @property
    def errors(self) -> tuple[str, ...]:
        if not self.is_awaited or self.is_over:
            return ()
        left = sum(count for state, count in self.operations.items() if state not in ENDED)
        state = f"backfill {self.id} is {self.state}, not ended: {counted(left, 'run')}"
        look = f"to look again: minutebook action show {self.uid}"
        return (f"stopped waiting: {state}; {look}",)


class BackfillPlan(View):
    """What a backfill would do."""

    uid: UUID = Field(description="Of the action.")
    name: str = Field(description="Of the action.")
    mode: str = Field(description="Which occurrences: `all`, `missing` or `failed`.")
    first_at: Instant = Field(alias="from", description="First instant of the range.")
    last_at: Instant = Field(alias="to", description="Last instant of the range.")
    recorded: int = Field(description="Occurrences that get an operation.")
    repeated: int = Field(description="Operations that run again.")
    passed_over: int = Field(description="Occurrences that are left as they are.")
    first: Instant = Field(description="First occurrence of the range.")
    last: Instant = Field(description="Last occurrence of the range.")


class CancelledBackfills(View):
    """The backfills of an action that were stopped."""

    uid: UUID = Field(description="Of the action.")
    name: str = Field(description="Of the action.")
    backfills: tuple[UUID, ...] = Field(description="Ids of the backfills that were cancelled.")
    cancelled: int = Field(description="Unstarted operations that were cancelled.")


def backfill_of(row: Mapping[str, Any]) -> Backfill:
    """Return the view of a backfill."""
    first_at = row["since"] + timedelta(seconds=1)
    return Backfill.of(row, first_at=first_at, last_at=row["until"])


class Backfills(Listing[Backfill]):
    """The backfills of an action, the newest first."""


@Verb("list_backfills", "GET /api/backfills", READ)
def list_backfills(
    installation: Installation, action: str, limit: Annotated[int, Field(ge=1, le=100)] = 20
) -> Backfills:
    """Return the backfills of an action, the newest first.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, action)
        rows = backfills.of_action(connection, row["uid"], limit)
    return Backfills(tuple(map(backfill_of, rows)))


@Verb(
    "plan_backfill",
    "POST /api/actions/{action}:plan-backfill?from=first&to=last",
    OPERATE,
)
def plan(
    installation: Installation, action: str, first: First, last: Last, only: Only = None
) -> BackfillPlan:
    """Return what a backfill would do.

    The ends are instants, in the action's zone without an offset, or spans before now.
    """
    row, wanted = _wanted(installation, action, first, last, only)
    kept_for = installation.settings.retention.kept_for
    found = filling.rehearse(installation.engine, wanted, kept_for)
    return BackfillPlan(
        uid=row["uid"],
        name=row["name"],
        mode=wanted.mode,
        first_at=wanted.first,
        last_at=wanted.last,
        **found,
    )


@Verb(
    "start_backfill",
    "POST /api/actions/{action}:backfill?from=first&to=last",
    OPERATE,
    status=202,
)
def start(
    installation: Installation, action: str, first: First, last: Last, only: Only = None
) -> StartedBackfill:
    """Run a range of an action's past.

    The ends are as in `plan`.
    """
    installation.publish()
    _, wanted = _wanted(installation, action, first, last, only)
    kept_for = installation.settings.retention.kept_for
    id, sent = filling.start(installation.engine, wanted, installation.actor, kept_for)
    return show(installation, id).model_copy(update={"unsent": installation.why_unsent(sent)})


@Verb("show_backfill", "GET /api/backfills/{id}", READ)
def show(installation: Installation, id: UUID) -> StartedBackfill:
    """Show a backfill, with the number of its operations in each state.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        stored = backfills.get(connection, id, installation.scope)
        states = backfills.states_of(connection, stored)
    return StartedBackfill(
        **dict(backfill_of(stored)),
        uid=stored["action_uid"],
        name=stored["action_name"],
        operations={str(state): count for state, count in states.items()},
    )


@Verb("cancel_backfills", "POST /api/actions/{action}:cancel-backfill", OPERATE)
def cancel(installation: Installation, action: str) -> CancelledBackfills:
    """Cancel an action's backfills, as far as their operations have not started."""
    installation.publish()
    with reading(installation.engine) as connection:
        row = find(connection, installation, action)
    ids, count = filling.cancel(installation.engine, row["uid"], installation.actor)
    return CancelledBackfills(
        uid=row["uid"], name=row["name"], backfills=tuple(ids), cancelled=count
    )


def _wanted(
    installation: Installation, action: str, first: str, last: str, only: str | None
) -> tuple[dict[str, Any], BackfillRequest]:
    with reading(installation.engine) as connection:
        row = find(connection, installation, action)
        zone = zone_of(plan_in(row), app_of(connection, installation, row).zone)
        now = read_clock(connection)
    since = instant_of("the start", first, zone, now)
    until = instant_of("the end", last, zone, now)
    return row, BackfillRequest(row["uid"], since, until, Mode(only) if only else Mode.ALL)
