"""Small apps in words."""

from collections.abc import Iterator

from cli.render import Line, document_lines, listing, sentence
from models.values import counted
from runtime.plug_ins import added
from services.apps import App, Apps
from services.apps.changes import AppliedApp, AppliedApps, DeletedApp
from services.apps.trust import HookSecret, TrustInApp
from services.words import both_clocks, instant


def _app(app: App) -> Iterator[Line]:
    yield f"{app.name}, zone {app.zone}"
    counts = f"{app.actions.total}, {app.actions.active} active"
    yield f"actions     {counts}, {counted(app.running, 'run')} running"
    if app.next is not None:
        yield f"next        {both_clocks(app.next.at, app.zone)}  {app.next.action}"
    yield f"people      {counted(app.users, 'user')}, {counted(app.groups, 'group')}"
    yield f"may reach   {_reach(app)}"
    for lines in added("app_lines"):
        yield from lines(app)
    for one in app.operations:
        yield f"{instant(one.occurrence_at)}  {one.state:<9} {one.id}  {one.action_name}"
    yield from document_lines(app.document)


def _reach(found: App | TrustInApp) -> str:
    """Return how far a small app is trusted, in a few words."""
    if found.trusted:
        return "trusted: all that the settings allow"
    lists = {"queues": found.queues, "tasks": found.tasks}
    given = [f"{what} {', '.join(names)}" for what, names in lists.items() if names]
    return "; ".join(["restricted", *given])


def _trust(found: TrustInApp) -> Iterator[str]:
    yield f"small app {found.name} is {_reach(found)}"


def _applied(one: AppliedApp) -> Iterator[str]:
    yield f"{one.change} small app {one.name}, zone {one.zone}"
    yield from (f"  {change}" for change in one.changes)
    yield from (f"  warning: {warning}" for warning in one.warnings)


def _applied_all(made: AppliedApps, *, dry_run: bool = False) -> Iterator[str]:
    for one in made.root:
        yield from _applied(one)
    if dry_run:
        yield "nothing was stored"


FORMS = {
    Apps: listing("name zone owner"),
    App: _app,
    AppliedApps: _applied_all,
    DeletedApp: sentence(
        "deleted small app {name}: {actions:action} deleted, {cancelled:run} cancelled"
    ),
    TrustInApp: _trust,
    HookSecret: sentence("{secret}"),
}
