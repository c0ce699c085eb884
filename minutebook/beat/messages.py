"""The message that Celery itself makes for a task, caught before it is sent.

Nothing is sent or run. No signal of the application is called, and no `apply_async` that a task's
class overrides.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from minutebook.error_text import text_of

# An option of django-celery-beat until 2.7, which is a header since then: a task finds both alike.
OF_DJANGO = "periodic_task_name"
# What kombu is told beside the message, and what differs from one message to the next.
ASIDE = frozenset(
    {"correlation_id", "reply_to", "expiration", "exchange", "routing_key", "headers"}
    | {"body", "declare", "retry", "retry_policy", "timeout", "confirm_timeout"}
    | {OF_DJANGO}
)
# Headers of Celery that the options of an action say, and the one that beat writes.
SAID = frozenset({"expires", "ignore_result", "celery_beat_task"})
# As in the messages of an action; each may be None, too.
PLAIN = {
    "serializer": ("json",),
    "delivery_mode": (2, "persistent"),
    "mandatory": (False,),
    "immediate": (False,),
}
LIMITS = ("time_limit", "soft_time_limit")
# The options by which a message gets these parts.
LINKS = {"callbacks": "link", "errbacks": "link_error"}
AN_INSTANT = "its messages expire at {}, an instant, and those of an action after a span"
LAZY = "beat calls {} each time that it sends, and the arguments of an action do not change"


class Unsendable(ValueError):
    """A message that Celery does not make, or that no action can send: why, and what to do."""

    def __init__(self, why: str, instead: str) -> None:
        super().__init__(why)
        self.instead = instead


def message_of_entry(app: Any, entry: Any) -> dict[str, Any]:
    """Return the task, args, kwargs and options of the message that beat makes for an entry."""
    from celery.beat import BeatLazyFunc, Scheduler

    args, kwargs, options = list(entry.args or ()), dict(entry.kwargs or {}), entry.options or {}
    lazy = [one for one in (*args, *kwargs.values()) if isinstance(one, BeatLazyFunc)]
    if lazy:
        called = getattr(lazy[0], "_func", lazy[0])
        why = LAZY.format(getattr(called, "__qualname__", type(called).__name__))
        raise Unsendable(why, "let the task find that value itself when it runs")
    # Beat adds its header to what it is given.
    copied = {**options, "headers": dict(options["headers"])} if options.get("headers") else options
    its: Any = SimpleNamespace(
        name=entry.name, task=entry.task, args=args, kwargs=kwargs, options=dict(copied)
    )
    send = partial(Scheduler(app, lazy=True).apply_async, its, advance=False)
    return message_of(app, entry.task, options, send)


def message_of(
    app: Any, task: str, given: Mapping[str, Any], send: Callable[..., Any]
) -> dict[str, Any]:
    """Return the task, args, kwargs and options of the message that a call of Celery makes.

    `send` is the call, which takes a producer; `given` are its own options. Options that no action
    has are among the others. Raises Unsendable.
    """
    known = app.tasks.get(task)
    try:
        with _catching(app, known) as (producer, found):
            send(producer=producer)
    except Exception as error:  # of Celery, or of a user's router
        # Beat wraps what the call raises.
        cause = error.__context__ if type(error).__name__ == "SchedulingError" else error
        why = f"beat cannot send it: {text_of(cause or error)}"
        raise Unsendable(why, "correct it in the application, and write it again") from None
    args, kwargs, embedded = found["body"]
    plain = app.amqp.as_task_v2(found["headers"]["id"], task, args, kwargs).headers
    options = {
        **_expires(found, given, known),
        **_ignore_result(found["headers"], given, known),
        **_left_out(found, given, plain, known),
        **{LINKS.get(name, name): one for name, one in embedded.items() if one},
        **{name: given[name] for name in ("task_id", "reply_to") if given.get(name)},
        **_arrives(app, found),
    }
    headers = {name: one for name, one in found["headers"].items() if name not in plain}
    headers.pop("celery_beat_task", None)
    if OF_DJANGO in found:
        headers[OF_DJANGO] = found[OF_DJANGO]
    options.update({"headers": headers} if headers else {})
    return {"task": task, "args": args, "kwargs": kwargs, "options": options}


@contextmanager
def _catching(app: Any, task: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a producer that sends nothing, and what it keeps instead: one message."""
    from celery import Task, signals

    found: dict[str, Any] = {}

    def publish(body: Any, **given: Any) -> None:
        # An event follows, if the application wants it.
        found.update({} if found else {**given, "body": body})

    # It is not opened.
    producer = app.amqp.Producer(app.connection_for_write(), auto_declare=False)
    producer.publish = publish
    changes: list[tuple[Any, str, Any]] = [
        (signals.before_task_publish, "receivers", []),
        (signals.after_task_publish, "receivers", []),
        (signals.task_sent, "receivers", []),
        (app.backend, "on_task_call", lambda *_args: None),
        (app.conf, "task_always_eager", False),
        (app.conf, "task_protocol", 2),
        *([(task, "apply_async", partial(Task.apply_async, task))] if task else []),
    ]
    before = [(one, name, getattr(one, name)) for one, name, _ in changes]
    try:
        for one, name, value in changes:
            setattr(one, name, value)
        yield producer, found
    finally:
        for one, name, value in before:
            setattr(one, name, value)


def _expires(found: Mapping[str, Any], given: Mapping[str, Any], task: Any) -> dict[str, Any]:
    if found.get("expiration") is None:
        return {}
    at = given.get("expires", getattr(task, "expires", None))
    if isinstance(at, (str, dt.datetime)):
        shown = at if isinstance(at, str) else at.isoformat()
        raise Unsendable(AN_INSTANT.format(shown), "write a number of seconds")
    return {"expires": found["expiration"]}


def _ignore_result(
    headers: Mapping[str, Any], given: Mapping[str, Any], task: Any
) -> dict[str, bool]:
    """Return whether the result is stored, if the message says another thing than its task."""
    said = given.get("ignore_result") if task is None else headers.get("ignore_result")
    is_own = task is not None and bool(said) == bool(task.ignore_result)
    return {} if said is None or is_own else {"ignore_result": bool(said)}


def _left_out(
    found: Mapping[str, Any], given: Mapping[str, Any], plain: Mapping[str, Any], task: Any
) -> dict[str, Any]:
    """Return the parts of a message beside its task, headers and place."""
    parts = {
        name: one
        for name, one in found.items()
        if name not in ASIDE and one is not None and one not in PLAIN.get(name, ())
    }
    changed = {
        name: one
        for name, one in found["headers"].items()
        if name in plain and name not in SAID and one != plain[name]
    }
    changed.pop("origin", None)
    # Its task's own limits hold in the worker anyway.
    limits = zip(LIMITS, changed.pop("timelimit", ()))
    parts.update((name, one) for name, one in limits if one != getattr(task, name, None))
    if "eta" in changed and "countdown" in given:
        changed["countdown"] = given["countdown"]
        del changed["eta"]
    return {**parts, **changed}


def _arrives(app: Any, found: Mapping[str, Any]) -> dict[str, str]:
    """Return the exchange and key of a message, or the only queue that gets it by kombu."""
    exchange = str(getattr(found["exchange"], "name", found["exchange"]) or "")
    key = found["routing_key"]
    if not key:
        why = f"its message to the exchange {exchange!r} has no routing key"
        raise Unsendable(why, "give it a routing_key, or name a queue alone")
    is_routed = exchange and is_of_kombu(app)
    takers = _takers(app, exchange, key, found["declare"] or ()) if is_routed else []
    if not exchange or len(takers) == 1:
        return {"queue": takers[0] if takers else key}
    return {"exchange": exchange, "routing_key": key}


def _takers(app: Any, exchange: str, key: str, declared: Sequence[Any]) -> list[str]:
    """Return the queues of the application that get a message, by kombu's own exchanges.

    A fanout has none: workers add queues to it. An exchange that the message does not declare is
    a direct one to kombu.
    """
    from kombu import Connection
    from kombu.transport.virtual import BrokerState

    with Connection("memory://") as connection:
        transport: Any = connection.transport
        transport.state = BrokerState()
        channel: Any = connection.default_channel
        for queue in app.amqp.queues.values():
            queue(channel).declare()
        its = channel.state.exchanges.get(exchange)
        if its is None or its["type"] == "fanout":
            return []
        if exchange not in {queue.exchange.name for queue in declared}:
            its["type"] = "direct"
        return sorted(set(channel._lookup(exchange, key)))


def is_of_kombu(app: Any) -> bool:
    """Whether kombu itself routes messages to lists, such as those in Redis."""
    from kombu.transport.virtual import Transport

    # It is not opened.
    with app.connection_for_write() as connection:
        return issubclass(connection.get_transport_cls(), Transport)
