"""`minutebook backfill ACTION`: run a range of an action's past."""

from typing import Annotated, Literal

import typer

from cli.arguments import DryRun, Timeout, Wait, existing
from cli.render import show
from models.errors import Refused
from services import backfills
from services.waiting import backfill_awaited


def backfill(
    context: typer.Context,
    action: Annotated[
        str,
        typer.Argument(help="Name or uid of an action.", metavar="ACTION"),
    ],
    *,
    first: Annotated[
        str | None,
        typer.Option("--from", help="First instant of the range; P3D means three days ago."),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last instant of the range.")] = None,
    only: Annotated[
        Literal["missing", "failed"] | None, typer.Option(help="Only these (default: both).")
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = 3600.0,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel what has not started.")] = False,
) -> None:
    """Run the missing and failed occurrences of a range of the past."""
    opened = existing(context)
    if cancel:
        show(context, opened.call(backfills.cancel, action))
        return
    begin, end = _given("--from", first), _given("--to", last)
    if dry_run:
        show(context, opened.call(backfills.plan, action, begin, end, only))
    else:
        started = opened.call(backfills.start, action, begin, end, only)
        show(context, backfill_awaited(opened, started, timeout if wait else None))


def _given(option: str, text: str | None) -> str:
    if text is None:
        raise Refused(
            f"{option} is missing; write an instant such as 2026-11-20T06:00, or a span such as P3D"
        )
    return text
