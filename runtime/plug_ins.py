"""Plug-ins: rooms that an installation may lack. Each says in its `plug_in.py` what it adds.

No other room imports them; a door asks here for what there is to add to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("data", "moving", "web.dashboard")

# Names of modules, and of what is in one as `module:name`, so that a door loads only what it shows.
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlugIn:
    """What a room adds to the doors and to the work of others."""

    # Modules that declare steps.
    steps: Names = ()
    # By name: the command's place, and its text in `--help`.
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Modules that add commands to a group of the command line, by the group's name.
    subcommands: Mapping[str, Names] = field(default_factory=dict)
    # Routers of the HTTP API.
    endpoints: Names = ()
    # What mounts pages: takes the application, returns their routers.
    mounts: Names = ()
    # Routers of pages within the dashboard.
    pages: Names = ()
    # What the dashboard's page of a small app shows as well; see `web/dashboard/apps.py`.
    app_page: Names = ()
    # Checks of a small app's document: take it, return its problems.
    app_checks: Names = ()
    # What the step `maintenance` prunes as well; see `tasks/steps/maintenance/work.py`.
    pruning: Names = ()


# The steps of the kernel; they are declared in light modules, and reach no work.
KERNEL_STEPS = (
    *("tasks.steps.celery_task", "tasks.steps.job"),
    *("tasks.steps.command", "tasks.steps.maintenance"),
)


@cache
def plug_ins() -> tuple[PlugIn, ...]:
    """Return the plug-ins of this installation."""
    # By their files: a program's own module may have the name of a room that is left out.
    here = (one for one in ROOMS if (ROOT / one.replace(".", "/") / "plug_in.py").exists())
    return tuple(import_module(f"{one}.plug_in").PLUG_IN for one in here)


def named(what: str) -> Iterator[str]:
    """Yield the names that plug-ins add to `what`, a field of PlugIn."""
    for one in plug_ins():
        yield from getattr(one, what)


def declare_steps() -> None:
    """Load the declarations of Minutebook's own steps; `minutebook.steps` then knows them."""
    for module in (*KERNEL_STEPS, *named("steps")):
        import_module(module)


def added(what: str) -> Iterator[Any]:
    """Yield what plug-ins add to `what`, loaded."""
    for name in named(what):
        yield loaded(name)


def loaded(name: str) -> Any:
    """Return what is named as `module:name`."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
