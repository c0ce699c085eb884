"""`minutebook run …`: show, retry and cancel runs."""

import sys
from typing import Annotated

import typer

from cli.arguments import AllApps, DryRun, EveryApp, Timeout, Wait, existing, of
from cli.render import print_line, show
from cli.tree import group
from cli.verbs import with_fields
from models.errors import Refused
from models.operation import WENT_WELL, OperationState
from services import operations
from services.backend import every
from services.operations.filter import OperationFilter

commands = group("Runs of actions: list, show, retry, cancel.")

# The states in which a run should end after a change.
ENDS = {"retry": WENT_WELL, "cancel": frozenset({OperationState.CANCELLED})}
BOTH = "ids and filters do not go together; leave out the ids, or the filters"

Id = Annotated[str, typer.Argument(help="Id of a run.", metavar="ID")]
Ids = Annotated[
    list[str] | None,
    typer.Argument(help="Ids of runs, instead of filters.", metavar="[ID...]"),
]


@commands.command("list")
@with_fields
def list_runs(
    context: typer.Context,
    wanted: OperationFilter,
    all_apps: AllApps = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to list.")] = 20,
) -> None:
    """List the runs of one small app or all, the newest first."""
    asked = {"wanted": wanted, "all_apps": all_apps}
    listed = every(existing(context), operations.list_operations, limit, **asked)
    show(context, operations.Operations(listed), all_apps=all_apps)


@commands.command("show")
def show_run(context: typer.Context, id: Id) -> None:
    """Show a run: its state, its attempts and the state of each step."""
    show(context, existing(context).call(operations.show, id))


@commands.command("logs")
def logs(
    context: typer.Context,
    id: Id,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new lines as they come, until it ends.")
    ] = False,
) -> None:
    """Show the last 200 log lines of a run's steps."""
    from services.waiting import new_lines

    opened = existing(context)
    if not follow:
        show(context, opened.call(operations.log, id))
        return
    for lines in new_lines(opened, id):
        for line in lines:
            show(context, operations.Log((line,)))
        # In a pipe, a line must not wait in the buffer.
        sys.stdout.flush()


@commands.command("watch")
def watch(context: typer.Context, id: Id) -> None:
    """Follow a run until it ends, with a line for each change."""
    from cli.texts.operations import in_one_line
    from services.view import json_line
    from services.waiting import changes

    as_json = of(context).as_json
    for one in changes(existing(context), id):
        print_line(json_line(one) if as_json else in_one_line(one), is_safe=as_json)
        sys.stdout.flush()
    if one.state not in WENT_WELL:
        raise typer.Exit(1)


def _changing(verb: str, text: str) -> None:
    """Make the command of a change, with the same options for each."""

    @commands.command(verb, help=text)
    @with_fields
    def change(
        context: typer.Context,
        wanted: OperationFilter,
        *,
        ids: Ids = None,
        all_apps: EveryApp = False,
        dry_run: DryRun = False,
        wait: Wait = False,
        timeout: Timeout = 3600.0,
    ) -> None:
        from services.runs import many
        from services.waiting import bulk_awaited

        filters = wanted.model_dump(exclude_defaults=True)
        if ids and filters:
            raise Refused(BOTH)
        opened = existing(context)
        chosen = many.Selection(ids=tuple(ids or ()), **filters)
        how = {"dry_run": dry_run, "all_apps": all_apps}
        done = opened.call(getattr(many, verb), chosen, **how)
        show(context, bulk_awaited(opened, done, timeout if wait else None, ENDS[verb]))


_changing(
    "retry",
    "Run missed, failed, partial or cancelled ones again, under their action's current revision.",
)
_changing("cancel", "Cancel runs at once if they have not started; ask running ones to end.")
