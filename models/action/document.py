"""Scheduled actions: the document, its stored form, and its plan for the tick."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

from minutebook.steps import Steps
from models.action.allowed import problems_of_hooks, problems_of_steps, problems_of_task
from models.action.hooks import HooksModel
from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.policy import PolicyModel
from models.action.recipients import RecipientFilterModel
from models.action.steps import OperationModel, sending_steps
from models.action.when import WhenModel
from models.celery_task import DEFAULT_QUEUE
from models.document import Document, as_written, read_document
from models.errors import InvalidAction, Problem
from models.hints import ROOT
from models.parsing import ParseContext, Reading
from models.problems import line_error, problems_of
from models.values import ActionName, Flag, Name, Text
from models.values.durations import format_span
from runtime.plug_ins import named

__all__ = [
    "ParseContext",
    "ScheduledActionModel",
    "document_hash",
    "load_action",
    "parse_action",
    "plan_of",
    "stored_document",
]

QUEUES = {True: "heavy", False: "quick"}


class ScheduledActionModel(Document):
    """The document of an action, with every default resolved."""

    name: ActionName
    active: Flag = True
    description: Text | None = None
    owner: Name | None = None
    operations: OperationModel
    when: WhenModel
    recipients: RecipientFilterModel | None = None
    policy: PolicyModel = PolicyModel()
    hooks: HooksModel = HooksModel()

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of a sending step without recipients.

        An action on users' events needs none: it sends to its subject.
        """
        sending = sending_steps(raw.get("operations"), reading.steps)
        when, recipients = raw.get("when"), raw.get("recipients", {})
        is_event = isinstance(when, Mapping) and any(
            key in when and not isinstance(when[key], Mapping) for key in ("on", "after")
        )
        is_empty = isinstance(recipients, Mapping) and not any(
            recipients.get(key) for key in ("users", "groups")
        )
        if not sending or is_event or not is_empty:
            return []
        remedy = f'{sending[0]} needs recipients; write {{"users": […]}} or {{"groups": ["all"]}}'
        return [line_error(("recipients",), raw.get("recipients"), remedy)]


# Keys that only the document of a small app has.
APP_KEYS = {"zone", "calendars", "settings", *named("app_keys")}
FOR_AN_APP = "is the document of a small app; save it with `minutebook app add`"


def _is_app(document: object) -> bool:
    keys = set(document) if isinstance(document, Mapping) else set()
    return bool(keys & APP_KEYS) and not keys & {"operations", "when"}


def parse_action(document: object, context: ParseContext) -> ScheduledActionModel:
    """Return the action of `document`; raises InvalidAction with all problems at once."""
    if _is_app(document):
        raise InvalidAction([Problem(ROOT, None, FOR_AN_APP)])
    action, problems = read_document(ScheduledActionModel, document, context)
    if action is not None:
        queue = action.policy.queue
        problems += problems_of_steps(action.operations, queue, context.trust, context.commands)
        problems += problems_of_hooks(action.hooks, context.trust, context.channels)
        problems += _problem_of_tolerance(action)
        if context.celery is not None:
            rules = context.celery.within(context.trust)
            problems += problems_of_task(action.operations, queue, rules)
    if action is None or problems:
        raise InvalidAction(problems)
    return action


def _problem_of_tolerance(action: ScheduledActionModel) -> list[Problem]:
    """Return a fault if each occurrence is to run, and those that come too soon are not."""
    tolerances = [rule.tolerance for rule in action.when.rules if isinstance(rule, IntervalModel)]
    if action.policy.catch_up != "all" or tolerances in ([], [None]):
        return []
    remedy = 'drops occurrences that "catch_up": "all" runs; remove one of the two'
    return [Problem("when.tolerance", format_span(tolerances[0] or timedelta(0)), remedy)]


def load_action(
    document: object,
    *,
    steps: Steps | None = None,
    created_at: datetime | None = None,
) -> ScheduledActionModel:
    """Return the action of a stored `document`, read tolerantly.

    Unknown keys are ignored, unknown steps are kept by name, a due date may be past. `created_at`
    completes documents that were stored unresolved. Raises InvalidAction for a document that
    cannot be read at all.
    """
    reading = Reading(steps=steps or {}, created_at=created_at, tolerant=True)
    try:
        return ScheduledActionModel.model_validate(document, context=reading)
    except ValidationError as error:
        raise InvalidAction(problems_of(error)) from None


def stored_document(action: ScheduledActionModel) -> dict[str, Any]:
    """Return the document to store: the written JSON with defaults from outside added.

    Booleans, durations and zone names are normalised, false steps are omitted, instants of
    intervals and of the policy are UTC. Parsing it gives the same plan in any zone of the small
    app.
    """
    document: dict[str, Any] = as_written(action)
    return document


def plan_of(action: ScheduledActionModel) -> Plan:
    """Return what the tick and the claim need of `action`."""
    policy = action.policy
    is_heavy = action.operations.is_heavy
    hand_over, queue = action.operations.handed_over
    if hand_over is None:
        queue = policy.queue or QUEUES[is_heavy]
    return Plan(
        active=action.active,
        rules=action.when.resolved,
        is_heavy=is_heavy,
        subjects=action.recipients if action.when.is_event else None,
        queue=queue or policy.queue or DEFAULT_QUEUE,
        policy=policy,
        time_limit=policy.time_limit_of(action.when.every, is_handed_over=hand_over is not None),
        hooks=None if action.hooks == HooksModel() else action.hooks,
        hand_over=hand_over,
        job=action.operations.job,
    )


def document_hash(document: Mapping[str, Any], steps: Steps) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of a document but for its name.

    The order of keys does not count, except that of user-defined steps: all but the built-in ones
    of `steps`.
    """
    operations = document.get("operations")
    names = operations if isinstance(operations, Mapping) else ()
    user_steps = [name for name in names if name not in steps or not steps[name].is_built_in]
    compared = {key: value for key, value in document.items() if key != "name"}
    text = json.dumps(compared, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    text += json.dumps(user_steps) if len(user_steps) > 1 else ""
    return hashlib.sha256(text.encode()).hexdigest()
