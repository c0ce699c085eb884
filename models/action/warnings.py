"""Warnings at save: what an action names that nobody knows yet, or what it asks for in vain.

None of them stops the save. A name that is still unknown when the action runs fails its operation.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta

from models.action import ScheduledActionModel
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.action.when import WhenModel
from models.durations import format_span
from models.problems import nearest

# A name is compared with so many at most: an action of many unknown names must not take minutes.
MOST_COMPARED = 1_000
# Fields of a cron rule that begin at 0, with their largest value.
STEPPED = (("minutes", 59, "minute"), ("hours", 23, "hour"))
# What an action on events may write in its policy in vain.
FOR_CLOCKS = {"catch_up", "overlap", "max_waiting"}


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names of a small app at the time of a save; None where they were not looked up.

    `kept_recipients` is how many users the action's recipients select now.
    """

    users: Collection[str] | None = None
    groups: Collection[str] | None = None
    domains: Collection[str] | None = None
    templates: Collection[str] | None = None
    design: Collection[str] | None = None
    permissions: Collection[str] | None = None
    kept_recipients: int | None = None


def warnings_of(action: ScheduledActionModel, known: KnownNames) -> list[str]:
    """Return what an admin should know before relying on `action`, one text for each doubt."""
    return [
        *_unknown_recipients(action, known),
        *_unknown_domains(action, known),
        *_unknown_template(action, known),
        *_nobody(action, known),
        *_left_out(action),
        *_in_vain(action),
        *_long_steps(action),
    ]


def _unknown(path: str, what: str, names: Collection[str], known: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            near = nearest(name, known) if len(known) <= MOST_COMPARED else None
            hint = f'; did you mean "{near}"?' if near else ""
            yield f'{path} "{name}": no {what} has this name now{hint}'


def _unknown_recipients(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    if action.recipients is None:
        return
    if known.users is not None:
        yield from _unknown("recipients.users", "user", action.recipients.users, known.users)
    if known.groups is not None:
        groups = [group for group in action.recipients.groups if group != EVERYBODY]
        yield from _unknown("recipients.groups", "group", groups, known.groups)


def _unknown_domains(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    for step, parameter, what, there in (
        ("refresh", "domains", "domain", known.domains),
        ("publish", "data", "domain", known.domains),
        ("publish", "design", "design", known.design),
        ("publish", "permissions", "permissions", known.permissions),
    ):
        found = action.operations.step(step)
        names = found.parameters.get(parameter) if found is not None else None
        if isinstance(names, list) and there is not None:
            yield from _unknown(f"operations.{step}.{parameter}", what, names, there)


def _unknown_template(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    step = action.operations.step("send_email")
    if step is not None and known.templates is not None:
        names = [step.parameters["template"]]
        yield from _unknown("operations.send_email.template", "template", names, known.templates)


def _nobody(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    if action.operations.sending and action.recipients is not None and known.kept_recipients == 0:
        yield f"recipients: nobody is selected now{_flags_hint(action.recipients)}"


def _flags_hint(recipients: RecipientFilterModel) -> str:
    flags = []
    if not recipients.keeps_inactive:
        flags.append("inactive users (include_inactive_users)")
    if not recipients.keeps_inactivated:
        flags.append("users who never activated their account (include_inactivated_users)")
    return f"; left out are {' and '.join(flags)}" if flags else ""


def _left_out(action: ScheduledActionModel) -> Iterator[str]:
    """Yield doubts about flags that leave out the very users an action seems to be for."""
    recipients = action.recipients or RecipientFilterModel()
    step = action.operations.step("send_email")
    template = str(step.parameters["template"]).casefold() if step is not None else ""
    if "inactivated" in template and not recipients.keeps_inactivated:
        yield _seems("include_inactivated_users", "users who never activated their account")
    elif "inactive" in template and not recipients.keeps_inactive:
        yield _seems("include_inactive_users", "inactive users")
    if _is_about_created(action.when) and not recipients.keeps_inactivated:
        yield (
            "recipients: a user who was just created has not activated the account, and is left "
            'out; write "include_inactivated_users": true'
        )


def _seems(flag: str, who: str) -> str:
    return f'recipients: {who} are left out, and the template seems to be for them; see "{flag}"'


def _is_about_created(when: WhenModel) -> bool:
    return any(getattr(rule, "event", None) == "instance.user.created" for rule in when.rules)


def _in_vain(action: ScheduledActionModel) -> Iterator[str]:
    if action.when.is_event:
        for key in sorted(FOR_CLOCKS & action.policy.model_fields_set):
            yield f"policy.{key}: is for what the clock makes due; each event is its own operation"
        return
    if action.policy.max_waiting > 1 and action.policy.overlap != "queue":
        yield 'policy.max_waiting: counts with "overlap": "queue" only'
    if action.policy.ends_at is not None and _is_over(action):
        yield "policy.ends_at: every due date lies outside starts_at and ends_at"


def _long_steps(action: ScheduledActionModel) -> Iterator[str]:
    """Yield steps of a cron rule that reach over the end of their field."""
    for rule in action.when.rules:
        fields = str(getattr(rule, "cron_rule", "")).split()
        for (name, most, unit), field in zip(STEPPED, fields, strict=False):
            for step in re.findall(r"\*/(\d+)", field):
                if int(step) > most:
                    every = format_span(timedelta(**{f"{unit}s": int(step)}))
                    yield (
                        f'when.cron_rule: "*/{step}" in the {name} means {unit} 0 alone;'
                        f' to run every {step} {unit}s write {{"every": "{every}"}}'
                    )


def _is_over(action: ScheduledActionModel) -> bool:
    due_dates = action.when.due_dates
    starts_at, ends_at = action.policy.starts_at, action.policy.ends_at
    return len(due_dates) == len(action.when.rules) and not any(
        (starts_at is None or starts_at <= due_at) and (ends_at is None or due_at < ends_at)
        for due_at in due_dates
    )
