"""The Celery tasks that actions of a small app may send, as far as they are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.celery_task import NO_TASKS
from models.store import workers
from models.store.operations.external_send import FOLLOWED_WITHIN
from models.store.tenants import app_overview
from runtime.database import reading
from scheduler.changes.validation import ChangeContext
from views.installation import Installation

MOST_ACTIONS = 500


@dataclass(frozen=True, slots=True)
class Sendable:
    """What fields may offer, by name."""

    # Each with its parameters; None if no worker reports them.
    tasks: Mapping[str, Sequence[str] | None]
    queues: tuple[str, ...]


def sendable(installation: Installation, author: ChangeContext) -> Sendable:
    """Return the tasks that workers follow, or actions of the small app send, if it may send them.

    The queues are those to which its actions send. `author` is the context of its changes.
    """
    rules = (author.celery or NO_TASKS).within(author.trust)
    with reading(installation.engine) as connection:
        signatures = workers.task_signatures(connection, FOLLOWED_WITHIN)
        sent = app_overview.handed_over(connection, author.small_app.id, MOST_ACTIONS)
    known = signatures.keys() | {one.task for one, _ in sent}
    return Sendable(
        tasks={one: signatures.get(one) for one in sorted(known) if rules.allows(one)},
        queues=tuple(sorted({queue for one, queue in sent if one.exchange is None})),
    )
