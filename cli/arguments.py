"""Shared arguments of commands, and the installation that a command uses."""

from dataclasses import dataclass
from typing import Annotated

import typer

from views.installation import Installation
from views.installation import existing as that_is_made

Wait = Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")]
Timeout = Annotated[float, typer.Option(min=0, help="Longest wait in seconds.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; store nothing.")]


@dataclass
class Invocation(Installation):
    """One call of the command line: its installation and output format."""

    as_json: bool = False


def of(context: typer.Context) -> Invocation:
    """Return the invocation that a command belongs to."""
    invocation = context.find_object(Invocation)
    if invocation is None:
        raise RuntimeError("the command line has no invocation")
    return invocation


def installation(context: typer.Context) -> Installation:
    """Return the installation to use, creating an embedded one if there is none."""
    return of(context)


def existing(context: typer.Context) -> Installation:
    """Return the installation to read; raises NotFound if there is none."""
    return that_is_made(of(context))
