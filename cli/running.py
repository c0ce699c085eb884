"""`minutehand action run`: one action now, or all of them."""

from typing import Annotated
from uuid import UUID

import typer

from broker.app import configure
from cli import preview
from cli.invocation import Invocation, existing
from cli.output import print_json, print_line
from cli.waiting import finish, say_unsent, wait_for_end
from models.errors import Refused
from models.operation import WENT_WELL, OperationState
from models.store import actions, operations
from runtime.database import reading
from scheduler.on_demand import manual


def run(
    context: typer.Context,
    action: Annotated[
        str | None, typer.Argument(help="Name or uid of an action.", metavar="ACTION")
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Run every active action of the small app.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")] = 3600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do.")] = False,
    user: Annotated[
        str | None, typer.Option(help="Whom an action on events is to be about.")
    ] = None,
) -> None:
    """Run an action now. Exit 2 when it is paused or already active: nothing is recorded."""
    invocation = existing(context)
    if every == (action is not None):
        raise Refused("name one ACTION, or write --all")
    if action is not None:
        _run_one(invocation, action, timeout if wait else None, user=user, is_dry=dry_run)
    elif dry_run or user is not None:
        raise Refused("--dry-run and --user are for one ACTION; leave them out with --all")
    else:
        _run_all(invocation, timeout if wait else None)


def _run_one(
    invocation: Invocation, name: str, timeout_s: float | None, *, user: str | None, is_dry: bool
) -> None:
    with reading(invocation.engine) as connection:
        row = actions.find(connection, invocation.small_app.id, name)
    if is_dry:
        preview.print_dry_run(invocation, row, user)
        return
    configure(invocation.settings)
    operation_id, sent = manual.run_now(invocation.engine, row["uid"], invocation.actor, user)
    say_unsent(invocation, sent)
    state = None
    if timeout_s is not None:
        state = wait_for_end(invocation.engine, operation_id, timeout_s)
    _print(invocation, operation_id, state)
    if timeout_s is not None and state not in WENT_WELL:
        raise typer.Exit(1)


def _run_all(invocation: Invocation, timeout_s: float | None) -> None:
    configure(invocation.settings)
    asked, sent = manual.run_all(invocation.engine, invocation.actor, invocation.small_app.id)
    say_unsent(invocation, sent)
    finish(
        invocation,
        [
            {"action": one.name, "uid": one.uid, "refused": one.refused}
            if one.operation_id is None
            else {
                "action": one.name,
                "uid": one.uid,
                "id": one.operation_id,
                "state": OperationState.PENDING,
                "told": one.name,
            }
            for one in asked
        ],
        timeout_s,
        WENT_WELL,
    )


def _print(invocation: Invocation, operation_id: UUID, state: OperationState | str | None) -> None:
    with reading(invocation.engine) as connection:
        row = operations.get(connection, operation_id)
    if invocation.as_json:
        print_json({"id": operation_id, "state": state or row["state"], "error": row["error"]})
        return
    error = f": {row['error']}" if row["error"] else ""
    print_line(f"operation {operation_id} {state or row['state']}{error}")
