"""The Celery tasks that actions of a small app may send, as far as they are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from models.celery_task import NO_TASKS
from models.store import workers
from models.store.operations.external_send import FOLLOWED_WITHIN
from models.store.tenants import app_overview
from runtime.database import reading
from scheduler.changes.validation import ChangeContext
from services.installation import Installation
from services.verbs import EDIT, Verb
from services.view import Listing, View

MOST_ACTIONS = 500


@dataclass(frozen=True, slots=True)
class KnownTasks:
    """What fields may offer, by name."""

    # Each with its parameters; None if no worker reports them.
    tasks: Mapping[str, Sequence[str] | None]
    queues: tuple[str, ...]


class SendableTask(View):
    """A Celery task that actions of the small app may send."""

    name: str = Field(description="Its name.")
    parameters: tuple[str, ...] | None = Field(
        description="As Python writes them, such as `limit=5`; null if no worker reports them."
    )


class SendableTasks(Listing[SendableTask]):
    """The tasks by name."""


@Verb("list_tasks", "GET /api/tasks", EDIT)
def list_tasks(installation: Installation) -> SendableTasks:
    """List the Celery tasks that workers follow or actions send, if the small app may send them."""
    found = known_tasks(installation, installation.author).tasks.items()
    return SendableTasks(tuple(SendableTask(name=one, parameters=takes) for one, takes in found))


def known_tasks(installation: Installation, author: ChangeContext) -> KnownTasks:
    """Return the tasks that workers follow, or actions of the small app send, if it may send them.

    The queues are those to which its actions send. `author` is the context of its changes.
    """
    rules = (author.celery or NO_TASKS).within(author.trust)
    with reading(installation.engine) as connection:
        signatures = workers.task_signatures(connection, FOLLOWED_WITHIN)
        sent = app_overview.handed_over(connection, author.small_app.id, MOST_ACTIONS)
    known = signatures.keys() | {one.task for one, _ in sent}
    return KnownTasks(
        tasks={one: signatures.get(one) for one in sorted(known) if rules.allows(one)},
        queues=tuple(sorted({queue for one, queue in sent if one.exchange is None})),
    )
