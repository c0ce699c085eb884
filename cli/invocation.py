"""What every command is given, until it takes it from `cli/arguments.py`."""

import typer

from cli.arguments import Invocation, of
from cli.arguments import existing as _existing

__all__ = ["Invocation", "existing", "of"]


def existing(context: typer.Context) -> Invocation:
    """Return the invocation of a command that looks at what is there."""
    _existing(context)
    return of(context)
