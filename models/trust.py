"""What the installation lets one small app (a tenant) reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from runtime.plug_ins import named

# Queues that every small app may use.
FREE_QUEUES = frozenset({"quick", "heavy", "default"})
# Steps that every small app may use, beside those that plug-ins name; those of `celery_task` depend
# on the task.
FREE_STEPS = frozenset({"maintenance", "job", "celery_task"})


@dataclass(frozen=True, slots=True)
class Trust:
    """How far a small app is trusted.

    A trusted one may name whatever the settings allow. A restricted one has its own folder beneath
    the data root, its own users and events, the steps above, mail hooks, webhooks and pings to
    public addresses; beside the free queues those in `queues`, and tasks of the Celery application
    by the patterns in `tasks`.
    """

    is_trusted: bool = False
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    # The small app's name, for errors.
    app: str = field(default="APP", compare=False)

    def allows_step(self, name: str) -> bool:
        """Return whether actions of the app may have a step of that name."""
        return self.is_trusted or name in FREE_STEPS or name in named("free_steps")

    def allows_queue(self, name: str, free: frozenset[str] = FREE_QUEUES) -> bool:
        """Return whether operations of the app may be sent to a queue; `free` ones always."""
        return self.is_trusted or name in free or name in self.queues

    def allows_task(self, name: str) -> bool:
        """Return whether the app may send a task of the Celery application."""
        return self.is_trusted or any(fnmatchcase(name, pattern) for pattern in self.tasks)

    def why_not(self, option: str = "--trusted") -> str:
        """Return the error of the app for something beyond it, which an `option` allows."""
        return not_for_restricted(self.app, option)

    @property
    def stored(self) -> dict[str, list[str]] | None:
        """The value to store; None for a trusted app."""
        if self.is_trusted:
            return None
        return {"queues": list(self.queues), "tasks": list(self.tasks)}


TRUSTED = Trust(is_trusted=True)
RESTRICTED = Trust()


def stored_trust(value: object) -> Trust:
    """Return the trust of a stored value; what cannot be read allows nothing."""
    if value is None:
        return TRUSTED
    lists = value if isinstance(value, Mapping) else {}
    return Trust(queues=_texts(lists.get("queues")), tasks=_texts(lists.get("tasks")))


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(one for one in listed if isinstance(one, str))


def not_for_restricted(app: str, option: str = "--trusted") -> str:
    """Return the error of a restricted small app that names something beyond it."""
    return (
        "is not for this restricted small app; an admin of the installation can allow it by "
        f"`minutebook app add {app} {option}`"
    )
