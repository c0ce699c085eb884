"""`minutebook action …`: check, store, show, run and pause scheduled actions.

Commands import what only they need: loading everything takes longer than most of them.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import AllApps, DryRun, EveryApp, Timeout, Wait, backend, existing, of
from cli.render import print_lines, show, text_of
from cli.tree import group
from cli.verbs import with_fields
from models.errors import InvalidDocument, Refused
from models.store.actions.search import ActionFilter
from models.values import counted
from services import actions
from services.backend import every

if TYPE_CHECKING:
    from services.changes.result import Changes
    from services.runs import RunPlan

commands = group("Scheduled actions: what to do, when, for whom.")

# The owner whose actions `apply --prune` keeps to the files.
PRUNES = "apply"
# For more documents `add` shows details only with --verbose.
FEW = 10

Files = Annotated[list[Path], typer.Argument(help="JSON or JSON Lines files; - is stdin.")]
Name = Annotated[
    str,
    typer.Argument(help="Name or uid of an action.", metavar="ACTION"),
]
Optional = Annotated[
    str | None,
    typer.Argument(help="Name or uid.", metavar="ACTION"),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show each action's next occurrences.")]


@commands.command("check")
def check(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON file; - is stdin.")],
) -> None:
    """Check a document and show its rules and next occurrences. Stores nothing."""
    from services import changes
    from services.files import documents_in

    made = backend(context).call(changes.apply, documents_in([file]), details=True, dry_run=True)
    show(context, made, is_check=True)


@commands.command("add")
def add(context: typer.Context, files: Files, verbose: Verbose = False) -> None:
    """Store new actions. If a document is invalid or a name is taken, nothing is stored."""
    from services import changes
    from services.files import documents_in

    documents = documents_in(files)
    details = verbose or len(documents) <= FEW
    made = backend(context).call(changes.add, documents, details=details)
    show(context, made, summary=not details)


@commands.command("apply")
def apply(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(help="JSON or JSON Lines files, or folders of *.json; - is stdin."),
    ],
    *,
    dry_run: DryRun = False,
    verbose: Verbose = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Delete actions of earlier --prune runs that are in no file now."
        ),
    ] = False,
    owner: Annotated[
        str | None, typer.Option(help=f"With --prune: owner of those actions (default: {PRUNES}).")
    ] = None,
    yes: Yes = False,
) -> None:
    """Create actions, or store the documents as new revisions of existing ones."""
    from services import changes
    from services.files import files_in, naming_each, read_documents

    if owner and not prune:
        raise Refused("--owner is for --prune; write the owner of an action into its document")
    read = [one for file in files_in(files, may_be_empty=prune) for one in read_documents(file)]
    documents, whose = [one for _, one in read], (owner or PRUNES) if prune else None
    opened = backend(context)

    def applied(**options: Any) -> "Changes":
        with naming_each([place for place, _ in read]):
            return opened.call(changes.apply, documents, prune=whose, **options)

    if dry_run:
        show(context, applied(details=True, dry_run=True), dry_run=True)
        return
    if prune and not yes:
        _agree_to_prune(context, applied(details=True, dry_run=True))
    show(context, applied(details=verbose))


def _agree_to_prune(context: typer.Context, tried: "Changes") -> None:
    """Show what would be deleted and ask; raises Refused without a terminal, Abort for a no."""
    pruned = [one.name for one in tried.root if one.change == "deleted"]
    if not pruned:
        return
    many = counted(len(pruned), "action")
    if not sys.stdin.isatty():
        names = ", ".join(pruned[:FEW])
        raise Refused(
            f"--prune would delete {many} ({names}); see --dry-run, and write --yes to delete them"
        )
    if not of(context).as_json:
        print_lines(text_of(tried, dry_run=True))
    typer.confirm(f"delete {many}?", abort=True, err=True)


@commands.command("edit")
def edit(context: typer.Context, action: Name, yes: Yes = False) -> None:
    """Edit an action in $VISUAL or $EDITOR; show the plan of changes and ask before storing it.

    A faulty document goes back to the editor. If nothing is stored, the draft is kept.
    """
    from cli.actions import editing

    is_asking = not yes
    if is_asking and not sys.stdin.isatty():
        raise Refused("there is no terminal to ask on; write --yes to store without asking")

    def agreed(tried: "Changes") -> None:
        if not of(context).as_json:
            print_lines(text_of(tried, dry_run=True))
        if is_asking:
            typer.confirm("store this?", abort=True, err=True)

    show(context, editing.edit(existing(context), action, agreed, is_repeatable=is_asking))


@commands.command("rename")
def rename(
    context: typer.Context,
    action: Name,
    to: Annotated[str, typer.Argument(help="The new name.", metavar="NEW")],
) -> None:
    """Give an action another name; its uid, its history and its due occurrences stay."""
    from services import changes

    show(context, existing(context).call(changes.rename, action, to))


@commands.command("list")
@with_fields
def list_actions(context: typer.Context, wanted: ActionFilter, all_apps: AllApps = False) -> None:
    """List the actions of one small app or all."""
    from services.actions import search

    listed = every(existing(context), search.list_actions, wanted=wanted, all_apps=all_apps)
    show(context, actions.Actions(listed), all_apps=all_apps)


@commands.command("show")
def show_action(context: typer.Context, action: Name) -> None:
    """Show an action: its document, its status, and its last runs."""
    from services import upcoming

    show(context, existing(context).call(upcoming.show, action))


@commands.command("next")
def next_command(
    context: typer.Context,
    action: Name,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many to show.")] = 5,
) -> None:
    """Show the next occurrences, in the action's zone and in UTC."""
    from services import upcoming

    found = existing(context).call(upcoming.next_of, action, count)
    # A list says nothing of why it is empty.
    whole = None if found.root else existing(context).call(upcoming.show, action)
    show(context, found, whole=whole)


@commands.command("explain")
def explain(
    context: typer.Context,
    action: Annotated[
        str, typer.Argument(help="Name or uid; for a deleted action, its uid.", metavar="ACTION")
    ],
    at: Annotated[
        str,
        typer.Argument(
            help="2026-11-23T06:00:00Z, or 2026-11-23T07:00:00 in the action's zone.",
            metavar="INSTANT",
        ),
    ],
    subject: Annotated[
        str | None, typer.Option(help="The user that an event action is about.")
    ] = None,
) -> None:
    """Explain why an action ran, or did not run, at an instant."""
    from services import explanation

    show(context, existing(context).call(explanation.explain, action, at, subject))


@commands.command("run")
@with_fields
def run(
    context: typer.Context,
    wanted: ActionFilter,
    *,
    action: Optional = None,
    every: Annotated[
        bool, typer.Option("--all", help="Run every enabled action of the small app.")
    ] = False,
    all_apps: EveryApp = False,
    wait: Wait = False,
    timeout: Timeout = 3600.0,
    dry_run: DryRun = False,
    user: Annotated[str | None, typer.Option(help="The user to run an event action for.")] = None,
    notify: Annotated[
        bool | None,
        typer.Option(
            "--notify/--no-notify",
            help="Mail what a step leaves to you (default: the action's; on a terminal, ask).",
        ),
    ] = None,
) -> None:
    """Run an action now. If it is paused or its last run has not ended, exit 2."""
    from services import runs
    from services.waiting import all_awaited, awaited

    opened = existing(context)
    if [every, action is not None, wanted != ActionFilter()].count(True) != 1:
        raise Refused("name one ACTION, or write a filter such as --owner OWNER, or --all")
    timeout_s = timeout if wait else None
    if action is None:
        if dry_run or user is not None or notify is not None:
            raise Refused(
                "--dry-run, --user and --notify are for one ACTION; leave them out for several"
            )
        made = opened.call(runs.run_all, wanted, all_apps=all_apps)
        made = all_awaited(opened, made, timeout_s)
        show(context, made, is_awaited=wait)
    elif dry_run:
        show(context, opened.call(runs.plan, action, user, notify))
    else:
        if notify is None and sys.stdin.isatty():
            with suppress(InvalidDocument):  # the run itself refuses a broken action
                notify = _asked_to_notify(opened.call(runs.plan, action, user))
        ran = opened.call(runs.run, action, user, notify=notify)
        show(context, awaited(opened, ran, timeout_s))


def _asked_to_notify(plan: "RunPlan") -> bool | None:
    """Ask whether a run sends the mail that a step leaves to the user; None if there is none."""
    left = [one for one in plan.outgoing if one.is_asked]
    if not left:
        return None
    asked = f"mail {counted(sum(one.count for one in left), 'user')} {left[0].when}?"
    return typer.confirm(asked, default=False, err=True)


def _changing(verb: str, text: str) -> None:
    """Make the command that pauses or resumes actions."""

    @commands.command(verb, help=text)
    @with_fields
    def change(
        context: typer.Context,
        wanted: ActionFilter,
        *,
        action: Optional = None,
        all_apps: EveryApp = False,
        dry_run: DryRun = False,
    ) -> None:
        _change(context, verb, action, wanted, all_apps=all_apps, dry_run=dry_run)


_changing(
    "pause",
    "Pause actions. Occurrences due so far are decided; unstarted runs are skipped.",
)
_changing("resume", "Resume actions. Occurrences during the pause are not caught up.")


@commands.command("delete")
@with_fields
def delete(
    context: typer.Context,
    wanted: ActionFilter,
    *,
    action: Optional = None,
    all_apps: EveryApp = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete actions: cancel unstarted runs, let a running one finish, keep history."""
    if not (yes or dry_run) and sys.stdin.isatty():
        if action is None:
            _change(context, "delete", action, wanted, all_apps=all_apps, dry_run=True)
        typer.confirm(f"delete {action or 'them'}?", abort=True, err=True)
    _change(context, "delete", action, wanted, all_apps=all_apps, dry_run=dry_run)


def _change(
    context: typer.Context,
    verb: str,
    action: str | None,
    wanted: ActionFilter,
    *,
    all_apps: bool,
    dry_run: bool,
) -> None:
    """Change one action, or those that a filter admits; raises Refused for both or neither."""
    from services import changes
    from services.changes import many

    if (action is None) == (wanted == ActionFilter()):
        raise Refused(f"name either an action to {verb}, or a filter such as --owner OWNER")
    opened = existing(context)
    if action is not None:
        show(context, opened.call(getattr(changes, verb), action, dry_run=dry_run), dry_run=dry_run)
    else:
        how = {"all_apps": all_apps, "dry_run": dry_run}
        made = opened.call(getattr(many, verb), wanted, **how)
        show(context, made, verb=verb, dry_run=dry_run)
