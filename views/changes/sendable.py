"""The Celery tasks that actions of a small app may send, as far as they are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.celery_task import NO_TASKS, CeleryRules, reported_by
from models.store import presence
from models.store.operations.handing import FOLLOWED_WITHIN
from models.store.tenants import app_overview
from runtime.database import reading
from scheduler.changes.validation import ChangeContext
from views.installation import Installation

MOST_ACTIONS = 500


@dataclass(frozen=True, slots=True)
class Sendable:
    """What fields may offer, by name."""

    # Each by its application, with its parameters; None if no worker reports them.
    tasks: Mapping[tuple[str, str | None], Sequence[str] | None]
    queues: tuple[str, ...]
    applications: tuple[str, ...]


def sendable(installation: Installation, author: ChangeContext) -> Sendable:
    """Return the tasks that workers follow, or actions of the small app send, if it may send them.

    The queues are those to which its actions send. `author` is the context of its changes.
    """
    rules = (author.celery or NO_TASKS).within(author.trust)
    with reading(installation.engine) as connection:
        signatures = presence.task_signatures(connection, FOLLOWED_WITHIN)
        sent = app_overview.handed_over(connection, author.small_app.id, MOST_ACTIONS)
    known = signatures.keys() | {(one.task, one.application) for one, _ in sent}
    return Sendable(
        tasks={
            (task, its): reported_by(signatures, task, its)
            for task, its in sorted(known, key=lambda one: (one[0], one[1] or ""))
            if _may_send(rules, task, its)
        },
        queues=tuple(sorted({queue for one, queue in sent if one.exchange is None})),
        applications=tuple(
            sorted(name for name in rules.applications if not rules.why_no_application(name))
        ),
    )


def _may_send(rules: CeleryRules, task: str, application: str | None) -> bool:
    """Return whether a task may be sent to its application, or to any if that is unknown."""
    if application is not None and rules.why_no_application(application):
        return False
    its = [application] if application else [None, *rules.applications]
    return any(rules.at(one).allows(task) for one in its)
