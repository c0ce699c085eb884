"""Documents as pages show them: laid out, compared, and in the fields of a form."""

import difflib
import json
from collections.abc import Mapping
from typing import Any, get_args

from cron.words import MONTH_NAMES
from models.action.policy import CatchUp, Overlap
from models.events import ENDS, EVENTS
from models.notices import TargetKind
from runtime.plug_ins import plug_ins
from web.dashboard.rendering import ZONES

# A field of the document: its place, what it holds (static/form-kinds.js), and what it offers: the
# name of a list, or choices; of a number, the least and the most.
Fields = tuple[tuple[str, str, str | tuple[Any, ...]], ...]
# The last part names a list there.
FIELDS_OF_PLUG_INS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    step: fields for one in plug_ins() for step, fields in one.form_fields.items()
}
STEP_FIELDS: Mapping[str, Fields] = {
    "celery_task": (
        ("task", "text", "tasks"),
        ("args", "values", ""),
        ("kwargs", "named", ""),
        ("queue", "text", "queues"),
    ),
    "command": (("run", "argv", ""), ("shell", "text", ""), ("cwd", "text", "")),
    "job": (("url", "text", ""), ("meta", "named", "")),
    **FIELDS_OF_PLUG_INS,
}
# The steps of plug-ins, which the form folds.
FOLDED = tuple(step for one in plug_ins() for step in one.free_steps)
# The steps that people look for first, with their places.
FIRST_STEPS = {"celery_task": 0, "command": 1, "job": 2}
FIRST_POLICIES: Fields = (
    ("policy.retry.max_attempts", "retries", (0, 99)),
    ("policy.retry.backoff", "durations", ()),
)
POLICIES: Fields = (
    ("policy.overlap", "text", get_args(Overlap)),
    ("policy.catch_up", "text", get_args(CatchUp)),
    ("policy.look_back", "duration", ()),
    ("policy.time_limit", "duration", ()),
    ("policy.expected", "duration", ()),
    ("policy.queue", "text", ()),
)
# When a notice is sent (the part after a colon is its `when`), and by what.
HOOK_MOMENTS = ("on_failure", "on_failure:first", "on_success", "on_missed")
HOOK_KINDS: tuple[TargetKind, ...] = ("mail", "notify", "webhook")
# All that the template gets, whatever the action.
CHOICES: Mapping[str, Any] = {
    "months": MONTH_NAMES,
    "events": EVENTS,
    "ends": ENDS,
    "zones": ZONES,
    "step_fields": STEP_FIELDS,
    "folded": FOLDED,
    "first_policies": FIRST_POLICIES,
    "policies": POLICIES,
    "hook_moments": HOOK_MOMENTS,
    "hook_kinds": HOOK_KINDS,
}


def pretty(document: Any) -> str:
    """Return a document as text with one key in each line; a broken one as it is stored."""
    if isinstance(document, str):
        return document
    return json.dumps(document, indent=2, ensure_ascii=False)


def difference(before: Any, after: Any) -> list[tuple[str, str]]:
    """Return the lines of what changed from one document to another, as (`old`, line) and so on."""
    lines = difflib.unified_diff(pretty(before).splitlines(), pretty(after).splitlines(), n=2)
    kinds = {"-": "old", "+": "new", " ": "same"}
    return [
        (kinds[line[0]], line)
        for line in lines
        if line[0] in kinds and not line.startswith(("---", "+++"))
    ]


def notification_targets(document: Any) -> list[tuple[str, str, str]]:
    """Return when, by what and whom the hooks of a valid document tell, in their order."""
    found = document.get("hooks") or {}
    return [
        (moment, kind, str(hook[kind]))
        for moment in dict.fromkeys(one.partition(":")[0] for one in HOOK_MOMENTS)
        for hook in found.get(moment) or ()
        for kind in HOOK_KINDS
        if kind in hook
    ]
