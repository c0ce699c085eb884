"""`minutehand operation …`: show, retry and cancel operations."""

from typing import Annotated

import typer

from cli.arguments import Timeout, Wait, existing
from cli.render import show
from cli.tree import group
from models.operation import OperationState
from views import operations, runs

commands = group("Operations: the runs of actions.")

Id = Annotated[str, typer.Argument(help="Id of an operation.", metavar="ID")]
Ids = Annotated[list[str], typer.Argument(help="Ids of operations.", metavar="ID...")]


@commands.command("list")
def list_operations(
    context: typer.Context,
    action: Annotated[str | None, typer.Option(help="Only of this action (name or uid).")] = None,
    state: Annotated[list[OperationState] | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most operations to list.")] = 20,
) -> None:
    """List operations, the newest first."""
    show(context, operations.list_operations(existing(context), action, state or (), limit))


@commands.command("show")
def show_operation(context: typer.Context, operation_id: Id) -> None:
    """Show an operation: its state, its attempts and the state of each step."""
    show(context, operations.show(existing(context), operation_id))


@commands.command("state")
def state(context: typer.Context, operation_id: Id) -> None:
    """Show the state of an operation, or `unknown`. Never asks the broker."""
    show(context, operations.state(existing(context), operation_id))


@commands.command("logs")
def logs(context: typer.Context, operation_id: Id) -> None:
    """Show the last 200 log lines of an operation's steps."""
    show(context, operations.log(existing(context), operation_id))


@commands.command("rerun")
def rerun(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Run missed operations, in the current revision of their action."""
    made = runs.rerun(existing(context), operation_ids, timeout if wait else None)
    show(context, made, is_awaited=wait)


@commands.command("retry")
def retry(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Retry failed, partial or cancelled operations, in the current revision of their action."""
    made = runs.retry(existing(context), operation_ids, timeout if wait else None)
    show(context, made, is_awaited=wait)


@commands.command("cancel")
def cancel(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Cancel operations at once if they have not started; ask running ones to end."""
    made = runs.cancel(existing(context), operation_ids, timeout if wait else None)
    show(context, made, is_awaited=wait)
