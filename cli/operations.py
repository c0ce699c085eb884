"""`minutehand operation …`: what ran, how it stands, and each step's story."""

from typing import Annotated, Any
from uuid import UUID

import typer

from cli.invocation import existing
from cli.output import instant, plain, print_json, print_line, print_table
from cli.tree import group
from models.action.plan import Target
from models.errors import NotFound
from models.notices import shown_target
from models.operation import OperationState
from models.store import actions, notices, operations
from runtime.database import reading

commands = group("Operations: the runs of actions.")

LIST_COLUMNS = {
    "id": "ID",
    "action_name": "ACTION",
    "occurrence_at": "OCCURRENCE",
    "state": "STATE",
    "reason": "REASON",
    "attempt": "ATTEMPT",
}
SHOWN = (
    "state", "reason", "error", "triggerer", "action_name", "action_uid", "revision",
    "occurrence_at", "queue", "attempt", "recorded_at", "queued_at", "started_at", "finished_at",
    "worker", "phase", "message", "progress",
)  # fmt: skip
HIDDEN = {"small_app_id", "overlap_key", "task", "first_started_at"}

OperationId = Annotated[str, typer.Argument(help="Id of an operation.", metavar="ID")]


@commands.command("list")
def list_operations(
    context: typer.Context,
    action: Annotated[str | None, typer.Option(help="Only of this action (name or uid).")] = None,
    state: Annotated[list[OperationState] | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 20,
) -> None:
    """List operations, the newest first."""
    invocation = existing(context)
    app = invocation.small_app
    with reading(invocation.engine) as connection:
        uid = actions.find(connection, app.id, action)["uid"] if action else None
        rows = operations.recent(
            connection, limit, small_app_id=app.id, uid=uid, states=state or ()
        )
    if invocation.as_json:
        print_json([_public(row) for row in rows])
    else:
        print_table(rows, LIST_COLUMNS)


@commands.command("show")
def show(context: typer.Context, operation_id: OperationId) -> None:
    """Show an operation: its state, attempts, and the story of each step."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        row = operations.get(connection, operation_uuid(operation_id))
        tries = operations.attempts_of(connection, row["id"])
        told = [_notice(one) for one in notices.of_operation(connection, row["id"])]
    if invocation.as_json:
        print_json({**_public(row), "attempts": [dict(one) for one in tries], "notices": told})
        return
    print_line(str(row["id"]))
    for key in SHOWN:
        if row[key] is not None:
            print_line(f"  {key:<14} {plain(row[key])}")
    for step in row["steps"] or []:
        _print_step(step)
    for one in tries:
        ended = f", ended {instant(one['finished_at'])}" if one["finished_at"] else ""
        error = f": {one['error']}" if one["error"] else ""
        print_line(
            f"  attempt {one['attempt']}: {one['state']}, began {instant(one['started_at'])}"
            f"{ended}{error}"
        )
    for one in told:
        error = f": {one['error']}" if one["error"] else ""
        print_line(f"  {one['kind']} notice to {one['to']}: {one['state']}{error}")


@commands.command("state")
def state(context: typer.Context, operation_id: OperationId) -> None:
    """Print the state of an operation, `unknown` when there is none; never asks the broker."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        found = str(operations.get_operation_state(operation_id, connection))
    if invocation.as_json:
        print_json({"id": operation_id, "state": found})
    else:
        print_line(found)


@commands.command("logs")
def logs(context: typer.Context, operation_id: OperationId) -> None:
    """Print the last 200 log lines of an operation's steps."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        row = operations.get(connection, operation_uuid(operation_id))
        lines = operations.log_lines(connection, row["id"])
    if invocation.as_json:
        print_json(lines)
        return
    for line in lines:
        print_line(f"{line['at']} {line['level']:<7} {line['message']}")


def _notice(row: dict[str, Any]) -> dict[str, Any]:
    """Return what people may see of a notice."""
    keys = ("id", "kind", "state", "tries", "created_at", "finished_at", "error")
    return {**{key: row[key] for key in keys}, "to": shown_target(Target(**row["target"]))}


def _print_step(step: dict[str, Any]) -> None:
    print_line(f"  step {step['name']}: {step['state']}")
    for key in ("message", "error"):
        if step.get(key):
            print_line(f"    {step[key]}")
    for key, value in (step.get("details") or {}).items():
        print_line(f"    {key}: {value}")


def _public(row: Any) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in HIDDEN}


def operation_uuid(text: str) -> UUID:
    """Return the id that a user wrote; raises NotFound for what is none."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(
            f"{text!r} is not an operation's id; write one as `minutehand operation list` shows"
        ) from None
