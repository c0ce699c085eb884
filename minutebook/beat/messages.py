"""The message that beat sends for an entry: its options and its place, by Celery's own router.

Nothing is sent, and no signal of the application is called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

# Options of a task that Celery adds to an entry's. Its time limits hold in the worker anyway.
OF_THE_TASK = (
    *("queue", "exchange", "routing_key", "priority", "expires"),
    *("serializer", "delivery_mode", "compression"),
)
PLACE = ("queue", "exchange", "routing_key", "exchange_type")


def message_options(
    app: Any,
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    by_name: bool = False,
) -> dict[str, Any]:
    """Return the options of a message, and the queue that it arrives in.

    If that is not one queue alone, its exchange and routing key stand there instead. `send_task`
    sends it `by_name`, without the options of the task. Raises ValueError for a message that
    arrives nowhere.
    """
    known = None if by_name else app.tasks.get(task)
    of_task = {name: getattr(known, name, None) for name in OF_THE_TASK} if known else {}
    options = {**of_task, **given}
    # Celery takes it out before it asks the router.
    expires = options.pop("expires", None)
    routed = {**app.amqp.router.route(options, task, args, kwargs, known), "expires": expires}
    place = {name: routed.pop(name, None) for name in PLACE}
    found = {name: value for name, value in routed.items() if value is not None}
    return {**found, **_arrives(app, *_address(app, **place))}


def _address(
    app: Any, queue: Any, exchange: Any, routing_key: str | None, exchange_type: str | None
) -> tuple[str, str]:
    """Return the exchange and routing key of a message, as Celery's `send_task_message` does."""
    if queue is None and exchange is None:
        queue = app.amqp.default_queue
    if isinstance(queue, str):
        queue = app.amqp.queues[queue]
    of_queue = getattr(queue, "exchange", None)
    kind = exchange_type or getattr(of_queue, "type", "direct")
    if (not exchange or not routing_key) and kind == "direct":
        return "", queue.name if queue else ""
    if exchange is None:
        exchange = (of_queue and of_queue.name) or app.amqp.default_exchange
        routing_key = routing_key or queue.routing_key or app.conf.task_default_routing_key
    return str(getattr(exchange, "name", exchange)), routing_key or ""


def _arrives(app: Any, exchange: str, key: str) -> dict[str, str]:
    """Return the only declared queue that gets a message, or the exchange and key."""
    if not key:
        raise ValueError(f"its message to the exchange {exchange!r} has no routing key")
    if not exchange:
        return {"queue": key}
    bound = [
        (queue.name, kind, pattern or "")
        for queue in app.amqp.queues.values()
        for name, kind, pattern in _bindings(queue)
        if name == exchange
    ]
    is_topic = _topics_of(app) if any(kind == "topic" for _, kind, _ in bound) else operator.eq
    takers = {
        queue
        for queue, kind, pattern in bound
        if (is_topic(pattern, key) if kind == "topic" else pattern == key)
    }
    # What other exchanges do, such as fanout, no queue's name can say: workers add queues to them.
    is_known = all(kind in ("direct", "topic") for _, kind, _ in bound)
    if is_known and len(takers) == 1:
        return {"queue": takers.pop()}
    return {"exchange": exchange, "routing_key": key}


def _bindings(queue: Any) -> Iterator[tuple[str, str, str | None]]:
    """Yield the exchanges that a queue is bound to: name, type and routing key."""
    for one in (queue, *(queue.bindings or ())):
        if one.exchange:
            yield one.exchange.name, one.exchange.type, one.routing_key


def is_of_kombu(app: Any) -> bool:
    """Whether kombu itself routes messages to lists, such as those in Redis."""
    from kombu.transport.virtual import Transport

    # It is not opened.
    with app.connection_for_write() as connection:
        return issubclass(connection.get_transport_cls(), Transport)


def _topics_of(app: Any) -> Callable[[str, str], bool]:
    """Return whether a key matches a pattern: kombu decides for Redis, otherwise the broker."""
    from kombu.transport.virtual.exchange import TopicExchange

    if not is_of_kombu(app):
        return lambda pattern, key: _are_words(pattern.split("."), key.split("."))
    kombu: Any = TopicExchange(None)
    return lambda pattern, key: bool(kombu._match(kombu.key_to_pattern(pattern), key))


def _are_words(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether words match a topic's pattern: `*` is one word, `#` any number."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_are_words(pattern[1:], words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _are_words(pattern[1:], words[1:])
