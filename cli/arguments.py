"""Shared arguments of commands, and where a command asks: this machine or a server elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Concatenate, ParamSpec, Protocol, TypeVar

import typer

from models.errors import Refused
from runtime.clock import POLL_S
from views.installation import Installation
from views.installation import existing as that_is_made

if TYPE_CHECKING:
    from cli.remote.server import Server

P = ParamSpec("P")
Answer = TypeVar("Answer")

Wait = Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")]
Timeout = Annotated[float, typer.Option(min=0, help="How long to wait, in seconds.")]
AllApps = Annotated[
    bool, typer.Option("--all-apps", "-A", help="Show all small apps, instead of --app.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; store nothing.")]

ONLY_HERE = "this command works only on the machine itself; leave out --url, or unset SCHED_URL"


class Door(Protocol):
    """What answers a command: the installation here, or a server elsewhere."""

    @property
    def poll_s(self) -> float:
        """How often to ask whether something has ended, in seconds."""

    def ask(
        self,
        function: Callable[Concatenate[Installation, P], Answer],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Return what a function of `views/` returns for an installation; raises its errors."""

    def seen_in(self, app: str) -> "Door":
        """Return what answers for one small app."""


@dataclass
class Here:
    """The installation of this machine."""

    installation: Installation
    poll_s = POLL_S

    def ask(
        self,
        function: Callable[Concatenate[Installation, P], Answer],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Call the function."""
        return function(self.installation, *args, **kwargs)

    def seen_in(self, app: str) -> "Here":
        """Return the installation as that small app sees it."""
        return Here(self.installation.seen_in(app))


@dataclass
class Invocation(Installation):
    """One call of the command line: its installation or server, and its output format."""

    as_json: bool = False
    server: "Server | None" = None


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


def door(context: typer.Context) -> Door:
    """Return what to ask; an embedded installation is created if there is none."""
    return of(context).server or Here(of(context))


def existing(context: typer.Context) -> Door:
    """Return what to ask; raises NotFound if there is no installation here, without --url."""
    return of(context).server or Here(that_is_made(of(context)))
