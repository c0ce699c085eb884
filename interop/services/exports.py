"""Actions for another scheduler, with what cannot be carried over."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field

from interop import to_apscheduler, to_beat
from interop.entries import CannotMove
from interop.exported import KEEP, Exported, Format
from interop.outcomes import Kind
from models.action.document import ScheduledActionModel, load_action, plan_of
from models.action.rules import CronModel
from models.errors import InvalidAction
from models.hints import listed
from models.store.actions.search import ActionFilter
from models.store.tenants import GIVEN_OWNER
from runtime.visible import visible_json
from services.actions import search
from services.backend import Backend, every
from services.installation import Installation
from services.view import View

Write = tuple[Callable[[ScheduledActionModel], Exported], Callable[[Sequence[Exported]], str]]


class ExportedAction(View):
    """What becomes of one action."""

    name: str
    outcome: Kind
    remarks: tuple[str, ...] = Field((), description="What differs.")
    why: str = Field("", description="Why it cannot be carried over.")
    instead: str = Field("", description="What to do instead.")


class Export(View):
    """Actions as another scheduler has them."""

    format: Format
    zone: str | None = Field(description="The schedule's zone; null where each has its own.")
    actions: tuple[ExportedAction, ...]
    text: str = Field(description="The schedule, as a file of that format.")

    @property
    def exit_code(self) -> int:
        """1 if some actions cannot be carried over."""
        return int(any(one.outcome == "cannot" for one in self.actions))


def documents_of(backend: Backend, owner: str | None) -> dict[str, Any]:
    """Return the documents of a small app's actions, or of one owner's, by name."""
    found = every(backend, search.list_documents, wanted=ActionFilter(owner=owner))
    return {one.name: one.document for one in found}


def export(
    installation: Installation,
    documents: Mapping[str, Any],
    format: Format,
    zone: str | None,
) -> Export:
    """Return stored documents, by their actions' names, in a format; no database is read."""
    if format == "json":
        text = visible_json(json.dumps([*documents.values()], indent=2, ensure_ascii=False))
        same = tuple(ExportedAction(name=name, outcome="same") for name in documents)
        return Export(format=format, zone=None, actions=same, text=text)
    found: list[Exported] = []
    parsed = []
    for name, document in documents.items():
        if document.get("owner") == GIVEN_OWNER:
            # The installation's own, which no other scheduler needs.
            continue
        try:
            parsed.append(load_action(document, steps=installation.steps))
        except InvalidAction as error:
            why = f"its document cannot be read: {error}"
            found.append(Exported(name, "cannot", why=why, instead="correct it first"))
    if format == "beat":
        zone = zone or _most_common_zone(parsed)
    exported, text_of = _writers(zone or "UTC")[format]
    found += [_not_elsewhere(one, format) or exported(one) for one in parsed]
    actions = tuple(ExportedAction.of(one, outcome=one.kind) for one in found)
    return Export(format=format, zone=zone, actions=actions, text=text_of(found))


def _not_elsewhere(action: ScheduledActionModel, format: str) -> Exported | None:
    """Refuse an action whose rule has what the other scheduler does not know; else None."""
    plan = plan_of(action)
    rules = [one.cron_rule for one in plan.rules if isinstance(one, CronModel)]
    # A plan has them in capitals.
    items = (item for rule in rules for item in re.split("[ ,]", rule))
    signs = {item for item in items if re.search("[LW#]", item)}
    if plan.closed:
        error = CannotMove("its rule has an `except`", f"{KEEP}, or remove the exceptions")
    elif signs:
        shown = listed(sorted(signs))
        error = CannotMove(f"its rule has {shown}, which {format} does not know", KEEP)
    else:
        return None
    return Exported.refused(action.name, error)


def _writers(zone: str) -> Mapping[Format, Write]:
    """Return what writes an action, and then the file, by format."""
    return {
        "beat": (
            lambda action: to_beat.exported(action, zone),
            lambda found: to_beat.text_of(found, zone),
        ),
        "apscheduler": (to_apscheduler.exported, to_apscheduler.text_of),
    }


def _most_common_zone(actions: Sequence[Any]) -> str:
    rules = [one for action in actions for one in action.when.rules]
    zones = Counter(one.timezone for one in rules if isinstance(one, CronModel))
    return zones.most_common(1)[0][0] if zones else "UTC"
