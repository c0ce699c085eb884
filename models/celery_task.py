"""Tasks of the user's Celery application: what is sent, and what may be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import JsonValue

from minutebook.grants import EVERYTHING, Grants, not_granted
from models.carriers import BY_EXCHANGE, OWN_TASKS, QUEUE_PREFIX
from models.errors import Problem

InDoubt = Literal["leave", "send_again"]
# Celery's default queue.
DEFAULT_QUEUE = "celery"
# The prefixes of its own exchanges there, which carry control commands and answers.
EXCHANGE_PREFIXES = ("minutebook", "reply.minutebook")
SETTING = "SCHED_CELERY_TASKS"


@dataclass(frozen=True, slots=True)
class HandOver:
    """A task of the user's Celery application as plans keep it: all that the daemon sends."""

    task: str
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = field(default_factory=dict)
    in_doubt: InDoubt = "leave"
    priority: int | None = None
    headers: dict[str, JsonValue] = field(default_factory=dict)
    # How long after its sending a message may wait for its task to start.
    expires: timedelta | None = None
    # An exchange of the application's broker: it leads the message to queues by the routing key.
    exchange: str | None = None
    routing_key: str = ""

    @property
    def route(self) -> str | None:
        """The text in place of a queue if an exchange routes the message; None without one."""
        return self.exchange and f"{self.exchange}{BY_EXCHANGE}{self.routing_key}"


@dataclass(frozen=True, slots=True)
class CeleryRules:
    """What an installation lets actions send: names or patterns of tasks.

    On a shared broker, queues of Minutebook's own workers are refused, and its exchanges.
    """

    tasks: tuple[str, ...] = ()
    shares_broker: bool = True
    # Whether the application's broker is one of AMQP.
    has_exchanges: bool = True
    # The grants of the small app, which narrow the above.
    grants: Grants = EVERYTHING

    def granted(self, grants: Grants) -> "CeleryRules":
        """Return the rules for a small app with these grants."""
        return self if grants is self.grants else replace(self, grants=grants)

    def allows(self, task: str) -> bool:
        """Return whether a task of that name may be sent; no pattern allows one of ours."""
        is_granted = self.grants.allows("tasks", task)
        allowed = any(fnmatchcase(task, pattern) for pattern in self.tasks)
        return allowed and is_granted and task not in OWN_TASKS

    def why_not(self, task: str) -> str:
        """Return why the task is not allowed, and what to change."""
        if task in OWN_TASKS:
            return "is a task of Minutebook's own workers; name one of your application"
        if any(fnmatchcase(task, pattern) for pattern in self.tasks):
            return not_granted("tasks", task)
        what = f"allows {', '.join(self.tasks)} only" if self.tasks else "allows no task"
        return f"{SETTING} {what}; add the name, or a pattern such as shop.tasks.*, to that setting"

    def why_not_sent(self, handed: HandOver) -> str | None:
        """Return why a task may not be sent as its plan says, None if it may."""
        if not self.allows(handed.task):
            return self.why_not(handed.task)
        why = None if handed.exchange is None else self.why_not_by(handed.exchange)
        return None if why is None else f"its exchange {handed.exchange!r} {why}"

    def why_not_by(self, exchange: str) -> str | None:
        """Return why no task may be sent by an exchange, None if it may."""
        if not self.has_exchanges:
            return NO_EXCHANGES
        if self.shares_broker and exchange.startswith(EXCHANGE_PREFIXES):
            return "is one of Minutebook's own; name one of your application"
        is_granted = self.grants.allows("exchanges", exchange)
        return None if is_granted else not_granted("exchanges", exchange)

    def reserves(self, queue: object) -> bool:
        """Return whether `queue` is the name of a queue of Minutebook's own workers."""
        return self.shares_broker and isinstance(queue, str) and queue.startswith(QUEUE_PREFIX)


NO_TASKS = CeleryRules()


def refusals(document: object, rules: CeleryRules, step: str) -> list[Problem]:
    """Return one problem for each part of an action's document that `rules` forbid.

    `step` is the name of the step that hands over a task.
    """
    parameters = _parameters(document, step)
    if parameters is None:
        return []
    task, queue = parameters.get("task"), parameters.get("queue")
    path = f"operations.{step}"
    found = []
    if isinstance(task, str) and not rules.allows(task):
        found.append(Problem(f"{path}.task", task, rules.why_not(task)))
    exchange = parameters.get("exchange")
    if isinstance(exchange, str):
        why, other = rules.why_not_by(exchange), _policy_queue(document)
        found += [Problem(f"{path}.exchange", exchange, why)] if why else []
        found += [Problem("policy.queue", other, BESIDE_EXCHANGE)] if other is not None else []
    elif rules.reserves(queue):
        found.append(Problem(f"{path}.queue", queue, OURS))
    elif queue is None and rules.reserves(other := _policy_queue(document)):
        found.append(Problem("policy.queue", other, OURS))
    return found


NO_EXCHANGES = (
    "needs a broker of AMQP such as RabbitMQ, and that of the application is another; leave out "
    'exchange and routing_key, and write the queue as "queue"'
)
BESIDE_EXCHANGE = "has no effect with celery_task.exchange, which routes the message; remove one"
OURS = (
    f"names a queue of Minutebook's own workers, which do not know this task ({QUEUE_PREFIX}…); "
    "name one that your application's workers listen to"
)


def _parameters(document: object, name: str) -> Mapping[str, Any] | None:
    operations = document.get("operations") if isinstance(document, Mapping) else None
    step = operations.get(name) if isinstance(operations, Mapping) else None
    return step if isinstance(step, Mapping) else None


def _policy_queue(document: object) -> object:
    policy = document.get("policy") if isinstance(document, Mapping) else None
    queue = policy.get("queue") if isinstance(policy, Mapping) else None
    return queue if isinstance(queue, str) else None
