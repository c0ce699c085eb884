"""Tasks of the user's Celery application: what is sent, what may be, and what they take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from inspect import Parameter, Signature
from typing import Any, Literal

from pydantic import JsonValue

from models.carriers import AT_APPLICATION, BY_EXCHANGE, OWN_TASKS, QUEUE_PREFIX, at_application
from models.errors import Problem
from models.trust import TRUSTED, Trust

InDoubt = Literal["leave", "send_again"]
# How people read the name of the application that needs none.
DEFAULT_APPLICATION = "default"
# Celery's default queue.
DEFAULT_QUEUE = "celery"
# The prefixes of its own exchanges there, which carry control commands and answers.
EXCHANGE_PREFIXES = ("minutebook", "reply.minutebook")
# What the text of a plan has that hands over a task.
HANDED_OVER = '"hand_over":{'
# The parameters of tasks with their applications; None where no worker says them.
Signatures = Mapping[tuple[str, str | None], tuple[str, ...] | None]
SETTING = "SCHED_CELERY_TASKS"
BROKERS = "SCHED_CELERY_BROKERS"


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
    # The application that knows the task; None is the installation's default one.
    application: str | None = None

    @property
    def route(self) -> str | None:
        """The text in place of a queue if an exchange routes the message; None without one."""
        return self.exchange and f"{self.exchange}{BY_EXCHANGE}{self.routing_key}"

    def listed(self, queue: str) -> str:
        """Return the name of the queue that operations have, which tells applications apart."""
        return at_application(queue, self.application)

    def in_broker(self, listed: str) -> str:
        """Return the name that such a queue has in the application's broker."""
        return listed.removesuffix(f"{AT_APPLICATION}{self.application or ''}")


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
    # The rules of the applications that actions name; those above are the default one's.
    applications: Mapping[str, "CeleryRules"] = field(default_factory=dict, hash=False)
    # The name of the default one, if it has any.
    default: str | None = None

    def within(self, trust: Trust) -> "CeleryRules":
        """Return the rules for a small app that is trusted so far."""
        return self if trust is self.trust else replace(self, trust=trust)

    def at(self, application: str | None) -> "CeleryRules":
        """Return the rules of an application; raises KeyError if the installation has none such."""
        if application is None:
            return self
        return self.applications[application].within(self.trust)

    def canonical(self, application: str | None) -> str | None:
        """Return None for the default application, whether it is named or not."""
        return None if application == self.default else application

    def why_no_application(self, application: str) -> str | None:
        """Return why no task may be sent to an application, None if one may."""
        if application not in self.applications:
            known = ", ".join(sorted(self.applications)) or "none"
            setting = f"{BROKERS}_{application.upper()}"
            # Other names stand in no setting.
            add = f", or set {setting} to its broker" if application.isidentifier() else ""
            return (
                f"is not among the applications of this installation ({known}); write one of them"
                f"{add}"
            )
        return None if self.trust.is_trusted else self.trust.why_not()

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

    def why_not_sent(self, handed: HandOver, queue: str) -> str | None:
        """Return why a task may not be sent as its plan says, None if it may.

        `queue` is the name that its queue has in the broker.
        """
        if handed.exchange is None and not self.allows_queue(queue):
            return f"its queue {queue!r} {self.trust.why_not(option=f'--queue {queue}')}"
        if handed.application is not None and (why := self.why_no_application(handed.application)):
            return f"its application {handed.application!r} {why}"
        return self.at(handed.application)._why_not_sent(handed)

    def _why_not_sent(self, handed: HandOver) -> str | None:
        if not self.allows(handed.task):
            return self.why_not(handed.task)
        why = None if handed.exchange is None else self.why_not_by(handed.exchange)
        return None if why is None else f"its exchange {handed.exchange!r} {why}"

    def why_not_by(self, exchange: str) -> str | None:
        """Return why no task may be sent by an exchange, None if it may."""
        if not self.has_exchanges:
            return NO_EXCHANGES
        if exchange.startswith(EXCHANGE_PREFIXES):
            return "is one of Minutebook's own; name one of your application"
        return None if self.trust.is_trusted else self.trust.why_not()

    def allows_queue(self, queue: str) -> bool:
        """Return whether the small app may name a queue of the application's broker."""
        return self.trust.allows_queue(queue, frozenset({DEFAULT_QUEUE}))

    def reserves(self, queue: object) -> bool:
        """Return whether `queue` is the name of a queue of Minutebook's own workers."""
        return isinstance(queue, str) and queue.startswith(QUEUE_PREFIX)


NO_TASKS = CeleryRules()


def refusals(document: object, rules: CeleryRules, step: str) -> list[Problem]:
    """Return one problem for each part of an action's document that `rules` forbid.

    `step` is the name of the step that hands over a task.
    """
    parameters = _parameters(document, step)
    if parameters is None:
        return []
    path = f"operations.{step}"
    application = parameters.get("application")
    if isinstance(application, str):
        if why := rules.why_no_application(application):
            return [Problem(f"{path}.application", application, why)]
        rules = rules.at(application)
    return _refusals(document, parameters, rules, path)


def _refusals(
    document: object, parameters: Mapping[str, Any], rules: CeleryRules, path: str
) -> list[Problem]:
    """Return the problems of a task by the rules of its application."""
    task, queue = parameters.get("task"), parameters.get("queue")
    found = []
    if isinstance(task, str) and not rules.allows(task):
        found.append(Problem(f"{path}.task", task, rules.why_not(task)))
    exchange = parameters.get("exchange")
    if isinstance(exchange, str):
        why, other = rules.why_not_by(exchange), _policy_queue(document)
        found += [Problem(f"{path}.exchange", exchange, why)] if why else []
        found += [Problem("policy.queue", other, BESIDE_EXCHANGE)] if other is not None else []
    else:
        named = "policy.queue" if queue is None else f"{path}.queue"
        found += _refused_queue(named, _policy_queue(document) if queue is None else queue, rules)
    return found


def _refused_queue(path: str, queue: object, rules: CeleryRules) -> Iterator[Problem]:
    if rules.reserves(queue):
        yield Problem(path, queue, OURS)
    elif isinstance(queue, str) and not rules.allows_queue(queue):
        yield Problem(path, queue, rules.trust.why_not(option=f"--queue {queue}"))


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


def reported_by(
    signatures: Signatures, task: str, application: str | None
) -> tuple[str, ...] | None:
    """Return the parameters of a task; None if no worker reports them.

    A worker that names no application speaks for one of which no worker has the task.
    """
    return signatures.get((task, application), signatures.get((task, None)))


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
