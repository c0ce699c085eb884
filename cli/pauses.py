"""`minutebook pause`, `resume` and `queue list`."""

from typing import Annotated

import typer

from cli.arguments import Until, existing, of
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from models.errors import Refused
from services.status import pauses

queues = group("Queues: list what is sent to.")
offer(queues, list=pauses.list_queues)

TARGETS = "write --all, --queue NAME or --app NAME"

All = Annotated[bool, typer.Option("--all", help="Everything.")]
Queue = Annotated[
    str | None, typer.Option(help="A queue, as `minutebook queue list` shows it.", metavar="NAME")
]


def pause(
    context: typer.Context,
    all_: All = False,
    queue: Queue = None,
    until: Until = None,
    reason: Annotated[str | None, typer.Option(help="Why, for those who find it paused.")] = None,
) -> None:
    """Pause everything, a queue, or a small app (--app): what is due waits for the end.

    It is recorded meanwhile. What was sent before is put back when a worker takes it; what runs
    goes on. Without a target, show what is paused.
    """
    asked = existing(context)
    if all_ or queue or of(context).is_bound:
        show(context, asked.call(pauses.pause, queue, all_, until, reason))
    elif until or reason:
        raise Refused(f"nothing says what to pause; {TARGETS}")
    else:
        show(context, asked.call(pauses.list_pauses))


def resume(context: typer.Context, all_: All = False, queue: Queue = None) -> None:
    """End the pause of everything, of a queue, or of a small app (--app)."""
    if not (all_ or queue or of(context).is_bound):
        raise Refused(f"nothing says what to resume; {TARGETS}; `minutebook pause` lists pauses")
    show(context, existing(context).call(pauses.resume, queue, all_))
