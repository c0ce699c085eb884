"""`minutehand init`: a commented action, and settings, to begin with."""

from pathlib import Path

import typer

from cli.arguments import here
from cli.render import show
from views import starting


def init(context: typer.Context) -> None:
    """Write a commented action into this folder, and settings into the home folder.

    No file is overwritten.
    """
    show(context, starting.start(here(context), Path()))
