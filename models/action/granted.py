"""What an action names that the installation did not grant to its small app."""

from collections.abc import Collection, Iterator, Sequence

from minutebook.grants import (
    SHELL,
    Grants,
    Kind,
    not_among,
    not_granted,
    program_and_variables,
)
from models.action.hooks import HooksModel
from models.action.steps import OperationModel, StepModel
from models.errors import Problem
from models.references import is_reference

SETTING = "SCHED_COMMANDS"
# Queues of every installation; others are granted.
FREE_QUEUES = frozenset({"quick", "heavy", "default"})


def problems_of_steps(
    operations: OperationModel,
    queue: str | None,
    grants: Grants,
    commands: Sequence[str] | None,
) -> Iterator[Problem]:
    """Yield the problems of steps and of a queue of our workers: what is not granted or allowed.

    `commands` are the programs that the setting allows; None leaves that check to the worker.
    """
    for step in operations.steps:
        for name, why in refused_to(step, grants, commands):
            yield Problem(f"operations.{step.name}", name, why)
    hands_over = any(step.spec is not None and step.spec.hand_over for step in operations.steps)
    is_free = queue is None or queue in FREE_QUEUES or hands_over
    if not is_free and not grants.allows("queues", str(queue)):
        yield _problem("policy.queue", "queues", str(queue))


def refused_to(
    step: StepModel, grants: Grants, commands: Sequence[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield what a step may not reach, and why; asked at save and at run."""
    if step.is_of_users and not grants.allows("steps", step.name):
        yield step.name, not_granted("steps", step.name)
    reaches = step.spec.reaches if step.spec is not None else None
    for kind, name in reaches(step.parameters) if reaches is not None else ():
        is_checked = kind == "commands" and commands is not None
        why = why_not_allowed(name, commands or ()) if is_checked else None
        if why is None and not grants.allows(kind, name):
            why = not_granted(kind, name)
        if why is not None:
            yield name, why


def problems_of_hooks(
    hooks: HooksModel, grants: Grants, channels: Collection[str] | None
) -> Iterator[Problem]:
    """Yield the problem of each hook to an address, channel or secret URL that is not granted.

    `channels` are those that the settings name; None leaves that check to the worker.
    """
    for name in ("on_success", "on_failure", "on_missed"):
        group = getattr(hooks, name)
        for number, hook in enumerate(group or ()):
            if hook.mail is not None and not grants.allows("mail", hook.mail):
                yield _problem(f"hooks.{name}[{number}].mail", "mail", hook.mail)
            if hook.notify is not None and (why := why_no_channel(hook.notify, grants, channels)):
                yield Problem(f"hooks.{name}[{number}].notify", hook.notify, why)
            secret = (hook.webhook or "").removeprefix("env:")
            if is_reference(hook.webhook) and not grants.allows("env", secret):
                yield _problem(f"hooks.{name}[{number}].webhook", "env", secret)


def why_no_channel(name: str, grants: Grants, channels: Collection[str] | None) -> str | None:
    """Return why a hook may not notify a channel, None if it may."""
    if channels is not None and name not in channels:
        known = ", ".join(sorted(channels)) or "none"
        setting = f"SCHED_NOTIFY_{name.upper()}"
        add = f"; set {setting} to its URL" if name.isidentifier() else "; write one of them"
        return f"is not among the channels of this installation ({known}){add}"
    return None if grants.allows("notify", name) else not_granted("notify", name)


def _problem(path: str, kind: Kind, name: str) -> Problem:
    return Problem(path, name, not_granted(kind, name))


def why_not_allowed(text: str, allowed: Sequence[str]) -> str | None:
    """Return why the setting does not allow a program, or its variable; None if it does."""
    missing = not_among(text, allowed)
    if missing == ():
        return None
    if missing:
        program, _ = program_and_variables(text)
        return f"{SETTING} lets {program} have no variable {', '.join(missing)}; add {text!r} to it"
    what = f"allows {', '.join(allowed)} only" if allowed else "allows no program"
    add = "the word shell, for any command" if text == SHELL else f"{text!r}, or a pattern"
    return f"{SETTING} {what}; add {add}, to that setting"
