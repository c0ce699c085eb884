"""What an action names beyond what its small app, or the settings, allow."""

from collections.abc import Collection, Iterator, Sequence

from models.action.hooks import HooksModel
from models.action.steps import OperationModel, StepModel
from models.celery_task import DEFAULT_QUEUE, CeleryRules
from models.errors import Problem
from models.trust import Trust
from models.values.references import is_reference
from runtime.sections.commands import SHELL, not_among, program_and_variables

SETTING = "SCHED_COMMANDS"
BESIDE_EXCHANGE = "has no effect with celery_task.exchange, which routes the message; remove one"


def problems_of_steps(
    operations: OperationModel,
    queue: str | None,
    trust: Trust,
    commands: Sequence[str] | None,
) -> Iterator[Problem]:
    """Yield the problems of steps and of a queue of our workers: what is not allowed.

    `commands` are the programs that the setting allows; None leaves that check to the worker.
    """
    for step in operations.steps:
        for name, why in refused_to(step, trust, commands):
            yield Problem(f"operations.{step.name}", name, why)
    hands_over = any(step.spec is not None and step.spec.hand_over for step in operations.steps)
    if queue is not None and not hands_over and not trust.allows_queue(queue):
        yield Problem("policy.queue", queue, trust.why_not(option=f"--queue {queue}"))


def problems_of_task(
    operations: OperationModel, queue: str | None, rules: CeleryRules
) -> Iterator[Problem]:
    """Yield the problems of a task of the user's Celery application; `queue` is the policy's."""
    handed, own_queue = operations.handed_over
    if handed is None:
        return
    if handed.exchange is not None and queue is not None:
        yield Problem("policy.queue", queue, BESIDE_EXCHANGE)
    path = f"operations.{operations.steps[0].name}"
    for key, value, why in rules.refused(handed, own_queue or queue or DEFAULT_QUEUE):
        is_policys = key == "queue" and own_queue is None
        yield Problem("policy.queue" if is_policys else f"{path}.{key}", value, why)


def refused_to(
    step: StepModel, trust: Trust, commands: Sequence[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield what a step may not do, and why; asked at save and at run."""
    if step.spec is not None and not trust.allows_step(step.name):
        yield step.name, trust.why_not()
    elif step.spec is not None and step.spec.program is not None and commands is not None:
        program = step.spec.program(step.parameters)
        if (why := why_not_allowed(program, commands)) is not None:
            yield program, why


def problems_of_hooks(
    hooks: HooksModel, trust: Trust, channels: Collection[str] | None
) -> Iterator[Problem]:
    """Yield the problem of each hook to a channel or secret URL that is not allowed.

    `channels` are those that the settings name; None leaves that check to the worker.
    """
    for name in ("on_success", "on_failure", "on_missed"):
        group = getattr(hooks, name)
        for number, hook in enumerate(group or ()):
            path = f"hooks.{name}[{number}]"
            if hook.notify is not None and (why := why_no_channel(hook.notify, trust, channels)):
                yield Problem(f"{path}.notify", hook.notify, why)
            if is_reference(hook.webhook) and not trust.is_trusted:
                yield Problem(f"{path}.webhook", hook.webhook, trust.why_not())
    for number, ping in enumerate(hooks.ping):
        if is_reference(ping.url) and not trust.is_trusted:
            yield Problem(f"hooks.ping[{number}].url", ping.url, trust.why_not())


def why_no_channel(name: str, trust: Trust, channels: Collection[str] | None) -> str | None:
    """Return why a hook may not notify a channel, None if it may."""
    if not trust.is_trusted:
        return trust.why_not()
    if channels is None or name in channels:
        return None
    known = ", ".join(sorted(channels)) or "none"
    setting = f"SCHED_NOTIFY_{name.upper()}"
    add = f"; set {setting} to its URL" if name.isidentifier() else "; write one of them"
    return f"is not among the channels of this installation ({known}){add}"


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
