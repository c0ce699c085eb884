"""Show lists of one small app or of all; follow a run; show something again and again."""

import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import existing, of
from cli.render import clear, is_terminal, print_line, show
from models.errors import Refused
from models.operation import WENT_WELL
from views.door import Door

if TYPE_CHECKING:
    from views.view import Listing, Shown

AGAIN_S = 2.0

Watch = Annotated[
    bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")
]


def show_list(
    context: typer.Context, read: Callable[[Door], "Listing[Any]"], *, all_apps: bool
) -> None:
    """Print what `read` lists; with `all_apps` of each small app, named in each row."""
    opened = existing(context)
    if not all_apps:
        show(context, read(opened))
        return
    from views import apps
    from views.finding import check_all_apps

    check_all_apps(of(context), all_apps)
    show(context, apps.in_each(opened, read))


def watch(context: typer.Context, door: Door, id: str) -> None:
    """Print a line at each change of a run until it ends; exit with 1 if it went wrong."""
    from cli.texts.operations import in_one_line
    from views.view import json_line
    from views.waiting import changes

    as_json = of(context).as_json
    for one in changes(door, id):
        print_line(json_line(one) if as_json else in_one_line(one), is_safe=as_json)
        # In a pipe, a line must not wait in the buffer.
        sys.stdout.flush()
    if one.state not in WENT_WELL:
        raise typer.Exit(1)


def follow_log(context: typer.Context, door: Door, id: str) -> None:
    """Print the log lines of a run as they come, until it ends."""
    from views.operations import Log
    from views.waiting import new_lines

    for lines in new_lines(door, id):
        for line in lines:
            show(context, Log((line,)))
        sys.stdout.flush()


def show_asked(
    context: typer.Context, ask: Callable[[], "Shown"], *, again: bool, **options: object
) -> None:
    """Show what `ask` returns: once, or with `again` every two seconds on a cleared terminal.

    Raises Refused for `again` in a pipe.
    """
    if not again:
        show(context, ask(), **options)
        return
    if not is_terminal(sys.stdout):
        raise Refused("--watch needs a terminal; leave it out, or repeat the command in a loop")
    pause = Event()
    while True:
        view = ask()
        clear()
        with suppress(typer.Exit):  # its exit code is for one look
            show(context, view, **options)
        pause.wait(AGAIN_S)
