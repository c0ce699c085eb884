"""`minutehand backfill ACTION`: run a range of an action's past."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import typer

from broker.app import configure
from cli import preview
from cli.invocation import Invocation, existing
from cli.output import instant, print_json, print_line
from cli.waiting import say_unsent
from models.errors import Refused
from models.operation import ENDED, WENT_WELL, OperationState, by_backfill
from models.store import actions
from models.store.operations import backfills
from models.values import parse_instant
from runtime.clock import wait_for
from runtime.database import reading
from scheduler.on_demand import backfill as filling
from scheduler.on_demand.backfill_range import Mode, Wanted, parse_pace

ACTIVE = "active"


class Only(StrEnum):
    """Which occurrences are wanted, where not all of these are."""

    MISSING = "missing"
    FAILED = "failed"


def backfill(
    context: typer.Context,
    action: Annotated[str, typer.Argument(help="Name or uid of an action.", metavar="ACTION")],
    *,
    first: Annotated[str | None, typer.Option("--from", help="First instant of the range.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last instant of the range.")] = None,
    only: Annotated[Only | None, typer.Option(help="Only these (default: both).")] = None,
    pace: Annotated[str | None, typer.Option(help="At most so many: 30/min.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")] = 3600.0,
    cancel: Annotated[bool, typer.Option("--cancel", help="Stop the active backfill.")] = False,
) -> None:
    """Run the occurrences of a range of the past that are missing or failed."""
    invocation = existing(context)
    configure(invocation.settings)
    with reading(invocation.engine) as connection:
        row = actions.find(connection, invocation.small_app.id, action)
    if cancel:
        _cancel(invocation, row)
        return
    mode = Mode(only) if only else Mode.ALL
    zone = preview.zone_of(row["plan"], invocation.small_app.zone)
    ends = _instant("--from", first, zone), _instant("--to", last, zone)
    wanted = Wanted(row["uid"], *ends, mode, parse_pace(pace) if pace else None)
    if dry_run:
        _rehearse(invocation, row, wanted)
    else:
        _start(invocation, row, wanted, timeout if wait else None)


def _instant(option: str, text: str | None, zone: str) -> datetime:
    if text is None:
        raise Refused(f"{option} is missing; write an instant such as 2026-11-20T06:00")
    try:
        return parse_instant(text, zone)
    except ValueError as error:
        raise Refused(f"{option} {text!r}: {error}") from None


def _kept_for(invocation: Invocation) -> timedelta:
    return invocation.settings.retention.kept_for


def _rehearse(invocation: Invocation, row: Mapping[str, Any], wanted: Wanted) -> None:
    found = filling.rehearse(invocation.engine, wanted, _kept_for(invocation))
    if invocation.as_json:
        whose = {"uid": row["uid"], "name": row["name"], "mode": wanted.mode}
        print_json({**whose, "from": wanted.first, "to": wanted.last, **found})
        return
    print_line(
        f"{row['name']} would have {found['recorded']} recorded, {found['repeated']} repeated,"
        f" {found['passed_over']} passed over; nothing was stored"
    )
    print_line(f"  first {instant(found['first'])}, last {instant(found['last'])}")


def _start(
    invocation: Invocation, row: Mapping[str, Any], wanted: Wanted, timeout_s: float | None
) -> None:
    engine, actor = invocation.engine, invocation.actor
    id, sent = filling.start(engine, wanted, actor, _kept_for(invocation))
    say_unsent(invocation, sent)
    if timeout_s is not None:
        wait_for(lambda: _is_over(_standing(invocation, id)), timeout_s)
    shown = _standing(invocation, id)
    if invocation.as_json:
        print_json({"uid": row["uid"], "name": row["name"], **shown})
    else:
        print_line(f"backfill {id} of {row['name']}")
        print_line(f"  {preview.backfill_in_words(shown)}")
        counts = ", ".join(f"{count} {state}" for state, count in shown["operations"].items())
        if timeout_s is not None:
            print_line(f"  operations: {counts or 'none'}")
    is_well = shown["state"] == "done" and set(shown["operations"]) <= set(WENT_WELL)
    if timeout_s is not None and not is_well:
        raise typer.Exit(1)


def _standing(invocation: Invocation, id: UUID) -> dict[str, Any]:
    """Return a backfill as JSON, with how many of its operations stand in each state."""
    with reading(invocation.engine) as connection:
        row = backfills.get(connection, id)
        states = backfills.states_of(connection, row, by_backfill(id, row["actor"]))
    return {**preview.backfill(row), "operations": states}


def _is_over(shown: Mapping[str, Any]) -> bool:
    states: set[OperationState] = set(shown["operations"])
    return shown["state"] != ACTIVE and states <= ENDED


def _cancel(invocation: Invocation, row: Mapping[str, Any]) -> None:
    ids, count = filling.cancel(invocation.engine, row["uid"], invocation.actor)
    if invocation.as_json:
        print_json({"uid": row["uid"], "name": row["name"], "backfills": ids, "cancelled": count})
        return
    for id in ids:
        print_line(f"cancelled backfill {id} of {row['name']}")
    print_line(f"  {count} operations cancelled that had not started")
