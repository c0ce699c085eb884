"""Arguments that commands share, and the installation that a command works on."""

from dataclasses import dataclass
from typing import Annotated

import typer

from views.installation import Installation
from views.installation import existing as that_is_made

Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end.")]
Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what it would do; store nothing.")]


@dataclass
class Invocation(Installation):
    """One call of the command line: the installation that it works on, and how it prints."""

    as_json: bool = False


def of(context: typer.Context) -> Invocation:
    """Return the invocation that a command belongs to."""
    invocation = context.find_object(Invocation)
    if invocation is None:
        raise RuntimeError("the command line has no invocation")
    return invocation


def installation(context: typer.Context) -> Installation:
    """Return the installation to work on; an embedded one is made when it is new."""
    return of(context)


def existing(context: typer.Context) -> Installation:
    """Return the installation to look at; raises NotFound where there is none."""
    return that_is_made(of(context))
