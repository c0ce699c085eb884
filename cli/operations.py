"""`minutebook operation …`: show, retry and cancel operations."""

from typing import Annotated

import typer

from cli.arguments import AllApps, Timeout, Wait, existing
from cli.render import show
from cli.tree import group
from cli.watching import Watch, follow_log, show_asked, watch
from models.operation import OperationState
from views import operations

commands = group("Operations: the runs of actions.")

# The states in which a cancelled operation should end.
GONE = frozenset({OperationState.CANCELLED})

Id = Annotated[str, typer.Argument(help="Id of an operation.", metavar="ID")]
Ids = Annotated[list[str], typer.Argument(help="Ids of operations.", metavar="ID...")]


@commands.command("list")
def list_operations(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    action: Annotated[str | None, typer.Option(help="Only this action (name or uid).")] = None,
    state: Annotated[list[OperationState] | None, typer.Option(help="Only in this state.")] = None,
    all_apps: AllApps = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to list.")] = 20,
    since: Annotated[
        str | None,
        typer.Option(help="Only occurrences since this instant; P1D means one day ago."),
    ] = None,
    again: Watch = False,
) -> None:
    """List the operations of one small app or all, the newest first."""
    opened = existing(context)

    def listed() -> operations.Operations:
        wanted = (action, state, limit, since)
        return opened.ask(operations.list_operations, *wanted, all_apps=all_apps)

    show_asked(context, listed, again=again, all_apps=all_apps)


@commands.command("show")
def show_operation(context: typer.Context, operation_id: Id) -> None:
    """Show an operation: its state, its attempts and the state of each step."""
    show(context, existing(context).ask(operations.show, operation_id))


@commands.command("state")
def state(context: typer.Context, operation_id: Id) -> None:
    """Show the state of an operation, or `unknown`. Never asks the broker."""
    show(context, existing(context).ask(operations.state, operation_id))


@commands.command("logs")
def logs(
    context: typer.Context,
    operation_id: Id,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new lines as they come, until it ends.")
    ] = False,
) -> None:
    """Show the last 200 log lines of an operation's steps."""
    if follow:
        follow_log(context, existing(context), operation_id)
    else:
        show(context, existing(context).ask(operations.log, operation_id))


@commands.command("watch")
def watch_operation(context: typer.Context, operation_id: Id) -> None:
    """Follow an operation until it ends, with a line for each change."""
    watch(context, existing(context), operation_id)


@commands.command("rerun")
def rerun(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Run missed operations under the current revision of their action."""
    from views import runs
    from views.waiting import all_awaited, each

    opened = existing(context)
    made = runs.RepeatedAll(each(operation_ids, lambda id: opened.ask(runs.rerun, id)))
    show(context, all_awaited(opened, made, timeout if wait else None), is_awaited=wait)


@commands.command("retry")
def retry(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Retry failed, partial or cancelled operations under the current revision of their action."""
    from views import runs
    from views.waiting import all_awaited, each

    opened = existing(context)
    made = runs.RepeatedAll(each(operation_ids, lambda id: opened.ask(runs.retry, id)))
    show(context, all_awaited(opened, made, timeout if wait else None), is_awaited=wait)


@commands.command("cancel")
def cancel(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Cancel operations at once if they have not started; ask running ones to end."""
    from views import runs
    from views.waiting import all_awaited, each

    opened = existing(context)
    made = runs.CancelledAll(each(operation_ids, lambda id: opened.ask(runs.cancel, id)))
    show(context, all_awaited(opened, made, timeout if wait else None, GONE), is_awaited=wait)
