"""Warnings at save: unknown names, settings without effect, likely mistakes.

A warning does not stop the save. A name that is still unknown when the action runs fails its
operation.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache

from pydantic import BaseModel

from models.action.document import ScheduledActionModel
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.action.when import WhenModel
from models.celery_task import Signatures, misfit
from models.problems import few_compared, meant
from models.values import NameOf

# Keys of the policy that have no effect on event actions.
FOR_CLOCKS = {"catch_up", "overlap", "max_waiting"}
UNSENT = "its mail is written to files, not sent: no mail server is set; set SCHED_SMTP_URL"
NOT_WRITTEN = RecipientFilterModel()


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names in a small app at the time of a save; None means not looked up.

    `kept_recipients` counts the users that the action's recipients select now. `zone` is the
    small app's. Without a mail server, mail is written to files.
    """

    users: Collection[str] | None = None
    groups: Collection[str] | None = None
    domains: Collection[str] | None = None
    templates: Collection[str] | None = None
    design: Collection[str] | None = None
    permissions: Collection[str] | None = None
    actions: Collection[str] | None = None
    kept_recipients: int | None = None
    # The parameters of Celery tasks, as their workers report them.
    signatures: Signatures = field(default_factory=dict)
    zone: str = "UTC"
    has_mail_server: bool = True


def warnings_of(action: ScheduledActionModel, known: KnownNames) -> list[str]:
    """Return the warnings about `action`, one text each."""
    with few_compared():
        unknown = [
            *_unknown_recipients(action, known),
            *_unknown_names(action, known),
            *_unknown_action(action, known),
        ]
    return [
        *unknown,
        *_no_recipients(action, known),
        *_unsent_mail(action, known),
        *_misfits(action, known),
        *_left_out(action),
        *(warning for rule in action.when.rules for warning in rule.warnings(known.zone)),
        *_without_effect(action),
    ]


def _unsent_mail(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    """Yield a warning about mail of an installation without a mail server."""
    targets = action.hooks.targets
    mails = bool(action.operations.sending) or any(one.kind == "mail" for one in targets)
    if mails and not known.has_mail_server:
        yield UNSENT


def _misfits(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    """Yield a warning about arguments that a task does not take in the release that runs now."""
    handed, _ = action.operations.handed_over
    if handed is None:
        return
    parameters = known.signatures.get(handed.task)
    if parameters is not None and (why := misfit(parameters, handed.args, handed.kwargs)):
        written = f"{handed.task}({', '.join(parameters)})"
        yield f"operations.celery_task: {why}; a worker that runs now has {written}"


def _unknown(path: str, what: str, names: Collection[str], known: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f'{path} "{name}": no {what} has this name now{meant(name, known)}'


def _unknown_recipients(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    if action.recipients is None:
        return
    if known.users is not None:
        yield from _unknown("recipients.users", "user", action.recipients.users, known.users)
    if known.groups is not None:
        groups = [group for group in action.recipients.groups if group != EVERYBODY]
        yield from _unknown("recipients.groups", "group", groups, known.groups)


def _unknown_action(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    watched = action.when.watched
    if watched is not None and known.actions is not None:
        yield from _unknown("when", "action", [watched], known.actions)


def _unknown_names(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    for path, kind, names in _named(action):
        there = getattr(known, kind.kind)
        if there is not None:
            yield from _unknown(path, kind.what, names, there)


def _named(action: ScheduledActionModel) -> Iterator[tuple[str, NameOf, list[str]]]:
    """Yield the names in the steps' parameters, with their path and kind."""
    for step in action.operations.steps:
        for key, kind in () if step.spec is None else _naming(step.spec.parameters):
            value = step.parameters.get(key)
            names = [value] if kind.is_one else value
            if isinstance(names, list):
                yield f"operations.{step.name}.{key}", kind, names


@cache
def _naming(parameters: type[BaseModel]) -> tuple[tuple[str, NameOf], ...]:
    """Return the parameters that hold names, each with the kind of these."""
    return tuple(
        (key, kind)
        for key, field in parameters.model_fields.items()
        for kind in field.metadata
        if isinstance(kind, NameOf)
    )


def _no_recipients(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    if action.operations.sending and action.recipients is not None and known.kept_recipients == 0:
        yield f"recipients: no user is selected now{_flags_hint(action.recipients)}"


def _flags_hint(recipients: RecipientFilterModel) -> str:
    flags = []
    if not recipients.keeps_inactive:
        flags.append("inactive users (include_inactive_users)")
    if not recipients.keeps_inactivated:
        flags.append("users who never activated their account (include_inactivated_users)")
    return f"; the flags leave out {' and '.join(flags)}" if flags else ""


def _left_out(action: ScheduledActionModel) -> Iterator[str]:
    """Yield a warning about flags that leave out each user who was just created."""
    recipients = action.recipients or NOT_WRITTEN
    if _is_about_created(action.when) and not recipients.keeps_inactivated:
        yield (
            "recipients: a new user has not activated the account yet, and is left out; write "
            '"include_inactivated_users": true'
        )


def _is_about_created(when: WhenModel) -> bool:
    return any(getattr(rule, "event", None) == "instance.user.created" for rule in when.rules)


def _without_effect(action: ScheduledActionModel) -> Iterator[str]:
    if action.when.is_event:
        for key in sorted(FOR_CLOCKS & action.policy.model_fields_set):
            yield f"policy.{key}: has no effect on event actions; each event is its own operation"
        return
    if action.policy.max_waiting > 1 and action.policy.overlap != "queue":
        yield 'policy.max_waiting: has an effect only with "overlap": "queue"'
