"""`minutehand action …`: check, store, look at, run and stop scheduled actions."""

import json
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from broker.app import configure
from cli import explaining, foreseeing, owners, preview, running
from cli.documents import located, read_documents
from cli.invocation import Invocation, existing, of
from cli.output import instant, plain, print_json, print_line, print_table
from cli.tree import group
from models.action import ParseContext, ScheduledActionModel, parse_action, plan_of
from models.errors import InvalidAction, InvalidDocument, Problem
from models.sql import read_clock
from models.store import actions, operations
from models.store.operations import backfills
from runtime.database import reading
from scheduler.changes import change
from scheduler.changes.change import Changed

commands = group("Scheduled actions: what to do, when, for whom.")
commands.command("explain")(explaining.explain)
commands.command("run")(running.run)

Files = Annotated[list[Path], typer.Argument(help="JSON or JSON Lines files; - is stdin.")]
Name = Annotated[str, typer.Argument(help="Name or uid of an action.", metavar="ACTION")]

Optional = Annotated[str | None, typer.Argument(help="Name or uid.", metavar="ACTION")]
Owner = Annotated[str | None, typer.Option(help="Instead of ACTION: all of this owner.")]

LIST_COLUMNS = {
    "name": "NAME",
    "standing": "STANDING",
    "health": "HEALTH",
    "next_occurrence_at": "NEXT",
    "last_state": "LAST",
    "last_run_at": "LAST RUN",
    "uid": "UID",
}

SHOWN = (
    "uid", "standing", "health", "revision", "last_state", "last_run_at", "last_success_at",
    "run_number", "failures_in_row",
)  # fmt: skip


@commands.command("check")
def check(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON file; - is stdin.")],
) -> None:
    """Check a document and say what it means; nothing is stored."""
    invocation = of(context)
    shown = [_described(invocation, model) for _, model in _parsed(invocation, [file])]
    if invocation.as_json:
        print_json(shown)
        return
    for one in shown:
        print_line(f"{one['name']}: valid")
        preview.print_description(one)


@commands.command("add")
def add(context: typer.Context, files: Files) -> None:
    """Store new actions; nothing is stored when a document is wrong or a name is taken."""
    _store(of(context), files, change.create_all)


@commands.command("apply")
def apply(
    context: typer.Context,
    files: Files,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would change.")] = False,
) -> None:
    """Create the actions of these names, or make the documents their next revisions."""
    if dry_run:
        foreseeing.print_foreseen(of(context), files)
    else:
        _store(of(context), files, change.apply_all)


@commands.command("list")
def list_actions(
    context: typer.Context,
    unhealthy: Annotated[
        bool, typer.Option("--unhealthy", help="Only those that are not well.")
    ] = False,
    owner: Annotated[str | None, typer.Option(help="Only those of this owner.")] = None,
) -> None:
    """List the actions of the small app."""
    invocation = existing(context)
    alert = invocation.settings.alert
    with reading(invocation.engine) as connection:
        rows = actions.listed(connection, invocation.small_app.id, alert.overdue)
        now = read_clock(connection)
    wanted = [row for row in rows if owner is None or row["owner"] == owner]
    shown = [preview.summary(row, now, alert.after) for row in wanted]
    if unhealthy:
        shown = [one for one in shown if not one["is_healthy"]]
    if invocation.as_json:
        print_json(shown)
    else:
        print_table(shown, LIST_COLUMNS)


@commands.command("show")
def show(context: typer.Context, action: Name) -> None:
    """Show an action: its document, how it stands, and its last operations."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        alert = invocation.settings.alert
        row = actions.find(connection, invocation.small_app.id, action, alert.overdue)
        recent = operations.recent(connection, 5, uid=row["uid"])
        filled = backfills.of_action(connection, row["uid"], 5)
        now = read_clock(connection)
        upcoming = preview.upcoming(row, now, invocation.small_app.zone)
        upcoming |= preview.subjects_due(connection, row, now, upcoming["zone"])
    shown = preview.summary(row, now, alert.after) | {"document": preview.document(row)} | upcoming
    if invocation.as_json:
        ranges = [preview.backfill(one) for one in filled]
        print_json(shown | {"operations": [_brief(one) for one in recent], "backfills": ranges})
        return
    for key in SHOWN:
        print_line(f"{key:<16} {'-' if shown[key] is None else plain(shown[key])}")
    preview.print_description(shown)
    print_line(json.dumps(shown["document"], indent=2, ensure_ascii=False))
    for one in recent:
        print_line(f"{instant(one['occurrence_at'])}  {one['state']:<9} {one['id']}")
    for one in filled:
        print_line(f"backfill {one['id']} {preview.backfill_in_words(preview.backfill(one))}")


@commands.command("next")
def next_command(
    context: typer.Context,
    action: Name,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 5,
) -> None:
    """Print the next occurrences, in the action's zone and in UTC."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        row = actions.find(connection, invocation.small_app.id, action)
        now = read_clock(connection)
        shown = preview.upcoming(row, now, invocation.small_app.zone, count)
        shown |= preview.subjects_due(connection, row, now, shown["zone"], count)
    if invocation.as_json:
        print_json(shown["next"])
    else:
        preview.print_upcoming(shown)


@commands.command("pause")
def pause(context: typer.Context, action: Optional = None, owner: Owner = None) -> None:
    """Pause an action: what was due is decided first, unstarted operations are skipped."""
    _switch(existing(context), action, owner, active=False)


@commands.command("resume")
def resume(context: typer.Context, action: Optional = None, owner: Owner = None) -> None:
    """Switch an action on again; nothing of the pause is caught up."""
    _switch(existing(context), action, owner, active=True)


@commands.command("delete")
def delete(context: typer.Context, action: Optional = None, owner: Owner = None) -> None:
    """Delete an action: unstarted operations are cancelled, a running one ends, history stays."""
    invocation = existing(context)
    owners.one_of(action, owner)
    if action is None:
        owners.delete(invocation, str(owner))
        return
    with reading(invocation.engine) as connection:
        row = actions.find(connection, invocation.small_app.id, action)
    cancelled = change.delete(invocation.engine, row["uid"], invocation.remover)
    if invocation.as_json:
        print_json({"uid": row["uid"], "name": row["name"], "cancelled": cancelled})
    else:
        print_line(f"deleted {row['name']} ({row['uid']}), {cancelled} operations cancelled")


def _switch(invocation: Invocation, action: str | None, owner: str | None, *, active: bool) -> None:
    owners.one_of(action, owner)
    if action is None:
        owners.switch(invocation, str(owner), active=active)
    else:
        _set_active(invocation, action, active=active)


def _parsed(invocation: Invocation, files: list[Path]) -> list[tuple[object, ScheduledActionModel]]:
    """Return the documents and their models; raises InvalidDocument with all problems of all."""
    with reading(invocation.engine) as connection:
        now = read_clock(connection)
    author = invocation.author
    parse = ParseContext(
        default_zone=author.small_app.zone, now=now, steps=author.steps, celery=author.celery
    )
    documents = [one for file in files for one in read_documents(file)]
    problems: list[Problem] = []
    parsed = []
    for where, document in documents:
        try:
            parsed.append((document, parse_action(document, parse)))
        except InvalidAction as error:
            many = len(documents) > 1
            problems += (located(where, error) if many else error).problems
    if problems:
        raise InvalidDocument(problems)
    return parsed


def _store(invocation: Invocation, files: list[Path], store: change.StoreAll) -> None:
    configure(invocation.settings)
    documents = [document for file in files for _, document in read_documents(file)]
    stored = store(invocation.engine, documents, invocation.author)
    if invocation.as_json:
        print_json([_changed(one) for one in stored])
        return
    for one in stored:
        print_line(f"{one.change} {one.name} ({one.uid}), revision {one.revision}")
        with reading(invocation.engine) as connection:
            row = actions.find(connection, invocation.small_app.id, str(one.uid))
        preview.print_description(_described(invocation, preview.model(row)))


def _described(invocation: Invocation, model: ScheduledActionModel) -> dict[str, Any]:
    with reading(invocation.engine) as connection:
        now = read_clock(connection)
        warnings = preview.warnings(connection, invocation.small_app, model)
        plan, app = plan_of(model), invocation.small_app
        upcoming = preview.upcoming_of(plan, UUID(int=0), now, app.zone)
        upcoming |= preview.subjects_due_of(connection, app.id, plan, now, upcoming["zone"])
    return {"name": model.name, "warnings": warnings, **upcoming}


def _changed(one: Changed) -> dict[str, Any]:
    return {"uid": one.uid, "name": one.name, "change": one.change, "revision": one.revision}


def _brief(row: Any) -> dict[str, Any]:
    return {key: row[key] for key in ("id", "occurrence_at", "state", "reason", "error")}


def _set_active(invocation: Invocation, action: str, *, active: bool) -> None:
    configure(invocation.settings)
    with reading(invocation.engine) as connection:
        row = actions.find(connection, invocation.small_app.id, action)
    changed = change.set_active(
        invocation.engine, row["uid"], active=active, author=invocation.author
    )
    word = "resumed" if active else "paused"
    if invocation.as_json:
        print_json(_changed(changed))
    elif changed.change is change.Change.UNCHANGED:
        print_line(f"{row['name']} is {'active' if active else 'paused'} already")
    else:
        print_line(f"{word} {row['name']} ({row['uid']})")
