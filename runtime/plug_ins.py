"""Plug-ins: rooms that an installation may lack, found by the entry points of what is installed.

Each says in its `plug_in.py` what it adds. No other room imports them; a door asks here for what
there is to add to it.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, NamedTuple

GROUP = "minutebook.plugins"
REFUSED = 2

# Names of modules, and of what is in one as `module:name`, so that a door loads only what it shows.
Names = tuple[str, ...]
NONE: Mapping[str, Any] = MappingProxyType({})


class Branch(NamedTuple):
    """Migrations in one order: the kernel's, which have no name, or those of a plug-in."""

    name: str
    # The package that holds them.
    package: str
    # The newest; asking Alembic would delay each start by 0.1 s.
    head: str

    @property
    def version_table(self) -> str:
        """The table of the revision. Not Alembic's own: an application may use that beside us."""
        return "_".join(filter(None, ("minutebook", self.name, "version")))

    @property
    def works_from(self) -> str:
        """The fact that names the oldest revision whose code works with the database."""
        return "_".join(filter(None, (self.name, "schema_works_from")))


class PlugIn(NamedTuple):
    """What a room adds to the doors and to the work of others."""

    # Modules that declare tables, and the migrations that make them.
    tables: Names = ()
    branch: Branch | None = None
    # Settings: subclasses of `runtime.config.Settings` with further ones, and those whose values
    # have names: a variable may give one of them alone.
    settings: Names = ()
    named_settings: Names = ()
    # Modules that declare steps, and the modules that extras of these bring, by the extra's name.
    steps: Names = ()
    # Those that a restricted small app may use.
    free_steps: Names = ()
    extras: Mapping[str, Names] = NONE
    # By name: the command's place, and its text in `--help`.
    commands: Mapping[str, tuple[str, str]] = NONE
    # What `minutebook up --demo` loads first: takes the installation.
    demo: Names = ()
    # Modules that add commands to a group of the command line, by the group's name.
    subcommands: Mapping[str, Names] = NONE
    # Routers of the HTTP API.
    endpoints: Names = ()
    # Whether people sign in to its pages.
    signs_in: bool = False
    # What mounts pages: takes the application, returns their routers.
    mounts: Names = ()
    # Routers of pages within the dashboard; packages with their `templates` and `texts.toml`; and
    # templates that are shown in places of other pages.
    pages: Names = ()
    pages_in: Names = ()
    page_parts: Mapping[str, Names] = NONE
    # The fields of steps in the form that makes actions; see `web/dashboard/documents.py`.
    form_fields: Mapping[str, tuple[tuple[str, str, str], ...]] = NONE
    # What the dashboard's pages of small apps show as well; see `web/dashboard/apps.py`.
    apps_page: Names = ()
    app_page: Names = ()
    app_live: Names = ()
    # Grammars of a small app's document: subclasses of `SmallAppModel` with further keys; and
    # those by which a document is known to be one.
    app_document: Names = ()
    app_keys: Names = ()
    # What to write for a key of theirs that is missing.
    examples: Mapping[str, str] = NONE
    # Checks of a small app's document: take it, return its problems.
    app_checks: Names = ()
    # What it may not name: take its model and the trust in it, return problems.
    app_allowed: Names = ()
    # What its admin should check: take the settings and its model, return sentences.
    app_warnings: Names = ()
    # Store what a plug-in keeps of it: take a connection, the small app's id and its model.
    app_stored: Names = ()
    # Return by kind the names that actions may use: take a connection and the small app's id.
    app_names: Names = ()
    # What its view shows as well, see `services.apps.show`: its fields as a view, their values, and
    # the lines for them on a terminal.
    app_view: Names = ()
    app_shown: Names = ()
    app_lines: Names = ()
    # The folders of its files in the home folder, with what bounds each.
    home: Mapping[str, str] = NONE
    # Conditions of actions that want to send mail; each has an index.
    mail_wanted: Names = ()
    # What a manual run mails beside its steps that send: see `services/runs/outgoing.py`.
    mailed: Names = ()
    # The query of the mails of a small app that count against its ceiling; takes its id. And the
    # verbs of the audit trail that may have sent another one.
    mails: Names = ()
    mail_tests: Names = ()
    # What `/metrics` shows as well, each a `models.store.measures.Figure`.
    gauges: Names = ()
    counted: Names = ()
    # What the step `maintenance` prunes as well; see `tasks/steps/maintenance/work.py`.
    pruning: Names = ()


# The steps of the kernel; they are declared in light modules, and reach no work.
KERNEL_STEPS = (
    *("tasks.steps.celery_task", "tasks.steps.job"),
    *("tasks.steps.command", "tasks.steps.maintenance"),
)


@cache
def plug_ins() -> tuple[PlugIn, ...]:
    """Return the plug-ins of this installation, by their names.

    One that cannot be loaded ends the process: half of its tables, settings and pages would be
    worse.
    """
    found = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    return tuple(map(_plug_in, found))


def _plug_in(entry: EntryPoint) -> PlugIn:
    try:
        plug_in: PlugIn = entry.load()
    except Exception as error:
        source = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
        why = f"{type(error).__name__}: {error}"
        # Modules are still loading: no door can explain it yet.
        sys.stderr.write(
            f"error: the plug-in {entry.name} = {entry.value}{source} cannot be loaded ({why}); "
            "install that distribution again, or uninstall it\n"
        )
        sys.exit(REFUSED)
    return plug_in


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
