"""What becomes of another scheduler's entries: the report of an import."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import Field

from broker.celery_rules import rules_of
from interop.celery_work import check_exchange
from interop.entries import Entry
from interop.entries import Refused as RefusedEntry
from interop.outcomes import OUTCOMES, Kind, Outcome, outcomes
from models.action.document import ParseContext
from models.celery_task import CeleryRules
from models.errors import Refused
from models.hints import listed
from models.store.actions.search import ActionFilter
from models.values import format_instant
from runtime.clock import utc_now
from runtime.sections.commands import is_command_among, with_variables
from services import changes
from services.actions import ActionRow, search
from services.backend import Backend, every
from services.changes.result import Changes
from services.files import naming_each
from services.installation import Installation
from services.lookup import instant_of
from services.view import Instant, View
from tasks.steps.command import STEP as COMMAND
from tasks.steps.command import CommandParameters


class Moved(View):
    """What becomes of one entry."""

    name: str
    where: str = Field(description="Its place: a file and entry, or a table and row.")
    outcome: Kind
    next_in_original: tuple[Instant, ...] | None = Field(
        None,
        description="Its next instants in the other scheduler, at most five; null if not known.",
    )
    next_in_action: tuple[Instant, ...] = Field(
        (), description="Its next instants as an action, at most five."
    )
    next_differing: tuple[Instant | None, Instant | None] | None = Field(
        None,
        description="The first of these that differ, in the original and in the action.",
    )
    remarks: tuple[str, ...] = Field((), description="What else differs.")
    unknown: tuple[str, ...] = Field((), description="What cannot be known.")
    why: str = Field("", description="Why it cannot be an action.")
    instead: str = Field("", description="What to do instead.")
    document: dict[str, Any] | None = Field(None, description="The action.")


class Import(View):
    """What becomes of another scheduler's entries."""

    counts: dict[str, int] = Field(description="How many entries have each outcome.")
    entries: tuple[Moved, ...]
    cut_over_at: Instant | None = None
    tasks: tuple[str, ...] = Field(
        (),
        description="What SCHED_CELERY_TASKS has to allow too; for a server elsewhere: all.",
    )
    commands: tuple[str, ...] = Field(
        (), description="What SCHED_COMMANDS has to allow too; for a server elsewhere: all."
    )
    changes: Changes | None = Field(None, description="What was stored, with --apply.")
    left: tuple[str, ...] = Field(
        (), description="Actions of earlier imports that these entries do not have, with --apply."
    )

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The actions' documents."""
        return [one.document for one in self.entries if one.document is not None]

    @property
    def notes(self) -> tuple[str, ...]:
        stored = () if self.changes is None else self.changes.root
        changed = [one.name for one in stored if one.change == "changed"]
        apart = "if that was another file or database, import both again, each with --source NAME"
        delete = "delete those that are no longer wanted: minutebook action delete NAME"
        said = (
            (changed, f"an earlier import made them otherwise; {apart}"),
            (self.left, f"from an earlier import, not in this one; {delete}"),
        )
        return tuple(f"{listed(names)}: {what}" for names, what in said if names)

    @property
    def exit_code(self) -> int:
        """1 if some entries cannot be actions."""
        return int(any(one.outcome == "cannot" for one in self.entries))


def imported(
    installation: Installation,
    entries: Iterable[Entry | RefusedEntry],
    cut_over: str | None = None,
    *,
    source: str | None = None,
    is_for_here: bool = True,
) -> Import:
    """Return what becomes of entries; nothing is stored, and no database is read.

    `source` is where they come from, part of their owner `import:KIND:SOURCE`. The broker of the
    Celery application is that of this machine's settings, unless they are for a server elsewhere.
    """
    now = utc_now().replace(microsecond=0)
    at = None if cut_over is None else cut_over_of(cut_over, now)
    context = ParseContext(
        default_zone="UTC",
        now=now,
        created_at=now,
        steps=installation.steps,
        tick=installation.settings.scheduler.tick,
        # `action apply` checks what may be sent and run.
        celery=None,
        commands=None,
        channels=None,
    )
    kept_for = installation.settings.retention.kept_for
    # The broker of a server elsewhere is known to the server only.
    rules = rules_of(installation.settings) if is_for_here else None
    has_exchanges = rules is None or rules.has_exchanges
    named = (_from_source(one, source) for one in entries)
    checked = (check_exchange(one, has_exchanges=has_exchanges) for one in named)
    found = tuple(_moved(one) for one in outcomes(checked, context, at, kept_for))
    counts = Counter(one.outcome for one in found)
    return Import(
        counts={kind: counts[kind] for kind in OUTCOMES},
        entries=found,
        cut_over_at=at,
        **_not_allowed(found, rules, installation.settings.commands),
    )


def _not_allowed(
    found: Iterable[Moved], rules: CeleryRules | None, commands: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the tasks and programs that the settings have to allow too.

    Without `rules`, those of a server elsewhere, that is all of them.
    """
    documents = [one.document for one in found]
    tasks = {task for one in documents for task in _tasks(one)}
    programs = {name for one in documents for name in _commands(one)}
    if rules is not None:
        tasks = {one for one in tasks if not rules.allows(one)}
        programs = {one for one in programs if not is_command_among(one, commands)}
    return {"tasks": tuple(sorted(tasks)), "commands": tuple(sorted(programs))}


def _from_source(entry: Entry | RefusedEntry, source: str | None) -> Entry | RefusedEntry:
    if source is None or isinstance(entry, RefusedEntry):
        return entry
    return replace(entry, owner=f"{entry.owner}:{source}")


def stored(backend: Backend, made: Import) -> Import:
    """Store the actions of an import; return it with what was stored, and what is left.

    A name that an import from another source has made is followed by the source. Raises
    InvalidDocument, and Refused for names that belong to other actions.
    """
    if not made.documents:
        return made
    present = every(backend, search.list_actions, wanted=ActionFilter())
    owners = {one.name: one.owner for one in present}
    made = made.model_copy(update={"entries": tuple(_apart(one, owners) for one in made.entries)})
    _refuse_others(owners, made.documents)
    with naming_each([one["name"] for one in made.documents]):
        done = backend.call(changes.apply, made.documents)
    left = _left_of(present, made.documents)
    return made.model_copy(update={"changes": done, "left": left})


def _apart(one: Moved, owners: Mapping[str, str | None]) -> Moved:
    """Return an entry under a name of its own, if another source's import has its name."""
    if one.document is None:
        return one
    name, owner = one.document["name"], one.document["owner"]
    other = owners.get(name) or ""
    apart = f"{name} ({owner.rpartition(':')[2]})"
    if owners.get(apart) != owner and (other == owner or not other.startswith("import:")):
        return one
    return one.model_copy(update={"document": {**one.document, "name": apart}})


def _refuse_others(
    owners: Mapping[str, str | None], documents: Iterable[Mapping[str, Any]]
) -> None:
    """Raise Refused if a document would replace an action that no such import has made."""
    others = [
        one["name"]
        for one in documents
        if one["name"] in owners and owners[one["name"]] != one.get("owner")
    ]
    if others:
        raise Refused(
            f"nothing is stored: {len(others)} of these names belong to actions that this import"
            f" did not make ({listed(others)}); rename the entries or the actions, or give the"
            " actions the import's owner"
        )


def _left_of(
    present: Iterable[ActionRow], documents: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the names of actions that earlier imports of the same kind made, and this did not."""
    documents = list(documents)
    owners = {one["owner"] for one in documents}
    names = {one["name"] for one in documents}
    return tuple(one.name for one in present if one.owner in owners and one.name not in names)


def cut_over_of(text: str, now: datetime) -> datetime:
    """Return the instant of --cut-over, a full minute after `now`; raises Refused."""
    at = instant_of("--cut-over", text, "UTC", now)
    if at <= now or at.second:
        shown = format_instant(now)
        raise Refused(f"--cut-over {text!r}: write a full minute after now (it is {shown})")
    return at


def _moved(one: Outcome) -> Moved:
    following = one.upcoming
    return Moved.of(
        one,
        outcome=one.kind,
        next_in_original=following and following.there,
        next_in_action=following.here if following else (),
        next_differing=following and following.differing,
    )


def _tasks(document: dict[str, Any] | None) -> Iterable[str]:
    step = (document or {}).get("operations", {}).get("celery_task")
    return [step["task"]] if step else []


def _commands(document: dict[str, Any] | None) -> Iterable[str]:
    step = (document or {}).get("operations", {}).get(COMMAND)
    if not step:
        return []
    read = CommandParameters.model_validate(step)
    return [with_variables(read.program, read.variables)]
