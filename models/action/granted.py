"""What an action names that the installation did not grant to its small app."""

from collections.abc import Iterator

from minutehand.grants import Grants, Kind, not_granted
from models.action.hooks import HooksModel
from models.action.steps import OperationModel
from models.errors import Problem
from models.references import is_reference

# Queues of every installation; others are granted.
FREE_QUEUES = frozenset({"quick", "heavy", "default"})


def problems_of_steps(
    operations: OperationModel, queue: str | None, grants: Grants
) -> Iterator[Problem]:
    """Yield the problems of steps that are not granted, and of a queue of our workers."""
    for step in operations.steps:
        if step.is_of_users and not grants.allows("steps", step.name):
            yield _problem(f"operations.{step.name}", "steps", step.name)
    hands_over = any(step.spec is not None and step.spec.hand_over for step in operations.steps)
    is_free = queue is None or queue in FREE_QUEUES or hands_over
    if not is_free and not grants.allows("queues", str(queue)):
        yield _problem("policy.queue", "queues", str(queue))


def problems_of_hooks(hooks: HooksModel, grants: Grants) -> Iterator[Problem]:
    """Yield the problem of each hook to an address or a secret URL that is not granted."""
    for name, group in (("on_success", hooks.on_success), ("on_failure", hooks.on_failure)):
        for number, hook in enumerate(group):
            if hook.mail is not None and not grants.allows("mail", hook.mail):
                yield _problem(f"hooks.{name}[{number}].mail", "mail", hook.mail)
            secret = (hook.webhook or "").removeprefix("env:")
            if is_reference(hook.webhook) and not grants.allows("env", secret):
                yield _problem(f"hooks.{name}[{number}].webhook", "env", secret)


def _problem(path: str, kind: Kind, name: str) -> Problem:
    return Problem(path, name, not_granted(kind, name))
