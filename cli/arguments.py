"""Shared arguments of commands, and where a command asks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import Refused
from services.backend import Backend, Local
from services.installation import Installation
from services.installation import existing as that_is_made

if TYPE_CHECKING:
    from cli.remote.server import Remote

Wait = Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")]
Timeout = Annotated[float, typer.Option(min=0, help="How long to wait, in seconds.")]
AllApps = Annotated[
    bool, typer.Option("--all-apps", "-A", help="Show all small apps, instead of --app.")
]
EveryApp = Annotated[
    bool, typer.Option("--all-apps", "-A", help="Those of all small apps, instead of --app.")
]
Until = Annotated[
    str | None,
    typer.Option(help="End: an instant, or a duration such as PT30M; without one, until a resume."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; store nothing.")]

ONLY_HERE = "this command works only on the machine itself; leave out --url, or unset SCHED_URL"


@dataclass
class Invocation(Installation):
    """One call of the command line: its installation or server, and its output format."""

    as_json: bool = False
    server: "Remote | None" = None


def of(context: typer.Context) -> Invocation:
    """Return the invocation that a command belongs to."""
    invocation = context.find_object(Invocation)
    if invocation is None:
        raise RuntimeError("the command line has no invocation")
    return invocation


def here(context: typer.Context) -> Installation:
    """Return the installation of this machine; raises Refused with --url."""
    invocation = of(context)
    if invocation.server is not None:
        raise Refused(ONLY_HERE)
    return invocation


def existing_here(context: typer.Context) -> Installation:
    """Return the installation of this machine; raises Refused with --url, NotFound for none."""
    return that_is_made(here(context))


def backend(context: typer.Context) -> Backend:
    """Return what to ask; an embedded installation is created if there is none."""
    return of(context).server or Local(of(context))


def existing(context: typer.Context) -> Backend:
    """Return what to ask; raises NotFound if there is no installation here, without --url."""
    return of(context).server or Local(that_is_made(of(context)))
