"""Tasks of the user's Celery application: what is sent, what may be, and what they take."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from inspect import Parameter, Signature
from typing import Any

from pydantic import JsonValue

from models.trust import TRUSTED, Trust
from models.worker_kinds import BY_EXCHANGE, OWN_TASKS, QUEUE_PREFIX

# Celery's default queue.
DEFAULT_QUEUE = "celery"
# The prefixes of its own exchanges there, which carry control commands and answers.
EXCHANGE_PREFIXES = ("minutebook", "reply.minutebook")
# What kombu keeps for itself in a broker: bindings, messages that are taken and not acknowledged,
# mailboxes of remote control, events.
RESERVED = re.compile(r"_kombu\..*|unacked(_index|_mutex)?|.*\.pidbox|celeryev.*", re.DOTALL)
# What the text of a plan has that hands over a task.
HANDED_OVER = '"hand_over":{'
# The parameters of tasks; None where no worker says them.
Signatures = Mapping[str, tuple[str, ...] | None]
SETTING = "SCHED_CELERY_TASKS"


@dataclass(frozen=True, slots=True)
class HandOver:
    """A task of the user's Celery application as plans keep it: all that the daemon sends."""

    task: str
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = field(default_factory=dict)
    priority: int | None = None
    headers: dict[str, JsonValue] = field(default_factory=dict)
    # How long after its sending a message may wait for its task to start.
    expires: timedelta | None = None
    # An exchange of the application's broker: it leads the message to queues by the routing key.
    exchange: str | None = None
    routing_key: str = ""
    # Whether the result is stored; None leaves that to the task.
    ignore_result: bool | None = None

    @property
    def route(self) -> str | None:
        """The text in place of a queue if an exchange routes the message; None without one."""
        return self.exchange and f"{self.exchange}{BY_EXCHANGE}{self.routing_key}"


@dataclass(frozen=True, slots=True)
class CeleryRules:
    """What an installation lets actions send: names or patterns of tasks.

    Queues and exchanges of Minutebook's own workers are refused at every broker: no comparison of
    two URLs can tell for certain that their broker is another.
    """

    tasks: tuple[str, ...] = ()
    # Whether the application's broker is one of AMQP.
    has_exchanges: bool = True
    # How far the small app is trusted, which narrows the above.
    trust: Trust = TRUSTED

    def within(self, trust: Trust) -> "CeleryRules":
        """Return the rules for a small app that is trusted so far."""
        return self if trust is self.trust else replace(self, trust=trust)

    def allows(self, task: str) -> bool:
        """Return whether a task of that name may be sent; no pattern allows one of ours."""
        allowed = any(fnmatchcase(task, pattern) for pattern in self.tasks)
        return allowed and self.trust.allows_task(task) and task not in OWN_TASKS

    def why_not(self, task: str) -> str:
        """Return why the task is not allowed, and what to change."""
        if task in OWN_TASKS:
            return "is a task of Minutebook's own workers; name one of your application"
        if any(fnmatchcase(task, pattern) for pattern in self.tasks):
            return self.trust.why_not(option=f"--tasks {task}")
        what = f"allows {', '.join(self.tasks)} only" if self.tasks else "allows no task"
        return f"{SETTING} {what}; add the name, or a pattern such as shop.tasks.*, to that setting"

    def refused(self, handed: HandOver, queue: str) -> Iterator[tuple[str, str, str]]:
        """Yield each part of a task that may not be sent so: its key, its value, and why."""
        if not self.allows(handed.task):
            yield "task", handed.task, self.why_not(handed.task)
        if handed.exchange is None:
            if why := self.why_not_to(queue):
                yield "queue", queue, why
            return
        if why := self.why_not_by(handed.exchange):
            yield "exchange", handed.exchange, why
        if RESERVED.fullmatch(handed.routing_key):
            yield "routing_key", handed.routing_key, KOMBUS

    def why_not_by(self, exchange: str) -> str | None:
        """Return why no task may be sent by an exchange, None if it may."""
        if not self.has_exchanges:
            return NO_EXCHANGES
        if exchange.startswith(EXCHANGE_PREFIXES):
            return "is one of Minutebook's own; name one of your application"
        if RESERVED.fullmatch(exchange):
            return KOMBUS
        return None if self.trust.is_trusted else self.trust.why_not()

    def why_not_to(self, queue: str) -> str | None:
        """Return why no task may be sent to a queue, None if one may."""
        if queue.startswith(QUEUE_PREFIX):
            return OURS
        if RESERVED.fullmatch(queue):
            return KOMBUS
        is_allowed = self.trust.allows_queue(queue, frozenset({DEFAULT_QUEUE}))
        return None if is_allowed else self.trust.why_not(option=f"--queue {queue}")


NO_TASKS = CeleryRules()


NO_EXCHANGES = (
    "needs a broker of AMQP such as RabbitMQ, and that of the application is another; leave out "
    'exchange and routing_key, and write the queue as "queue"'
)
KOMBUS = (
    "is a name that kombu, the library of Celery, keeps for itself in the broker; name one that "
    "your application's workers listen to"
)
OURS = (
    f"names a queue of Minutebook's own workers, which do not know this task ({QUEUE_PREFIX}…); "
    "name one that your application's workers listen to"
)


def misfit(parameters: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return why a call does not fit parameters such as `city`, `limit=5`; empty if it fits."""
    try:
        _signature(parameters).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    except (ValueError, IndexError):
        # A worker may report what is no signature; Python 3.11 raises IndexError for an empty name.
        return ""
    return ""


def _signature(parameters: Sequence[str]) -> Signature:
    """Return the signature that texts write; raises ValueError for texts that write none."""
    made: list[Parameter] = []
    is_named_only = False
    for text in parameters:
        name, has_default, _ = text.partition("=")
        if name == "/":
            made = [one.replace(kind=Parameter.POSITIONAL_ONLY) for one in made]
        elif name.startswith("**"):
            made.append(Parameter(name[2:], Parameter.VAR_KEYWORD))
        elif name.startswith("*"):
            made += [Parameter(name[1:], Parameter.VAR_POSITIONAL)] if name != "*" else []
            is_named_only = True
        else:
            kind = Parameter.KEYWORD_ONLY if is_named_only else Parameter.POSITIONAL_OR_KEYWORD
            made.append(Parameter(name, kind, default=None if has_default else Parameter.empty))
    return Signature(made)
