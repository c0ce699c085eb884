"""The tasks that beat sends, as the step `celery_task`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interop.entries import Entry, Refused
from tasks.steps.celery_task import STEP

# As beat does: it sends whether or not the last run has ended.
POLICY: Mapping[str, Any] = {"overlap": "allow"}
DEFAULT_QUEUE = "celery"
# Options that the step has under the same name.
CARRIED = ("priority", "headers", "expires", "ignore_result")
# Together they route a message, whatever its queue; either alone has no effect.
ROUTE = ("exchange", "routing_key")
LONGEST_SHOWN = 40


def work_of(
    task: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the operations of a task with beat's options, and what they leave out.

    The options name a queue, unless it is Celery's default.
    """
    given = {name: value for name, value in options.items() if value not in (None, "", {}, [])}
    step: dict[str, Any] = {"task": task}
    if args:
        step["args"] = list(args)
    if kwargs:
        step["kwargs"] = dict(kwargs)
    if set(ROUTE) <= set(given):
        step |= {name: str(given[name]) for name in ROUTE}
    elif (queue := str(given.get("queue", DEFAULT_QUEUE))) != DEFAULT_QUEUE:
        step["queue"] = queue
    step |= {name: given[name] for name in CARRIED if name in given}
    return {STEP: step}, tuple(_left_out(given))


def check_exchange(entry: Entry | Refused, *, has_exchanges: bool) -> Entry | Refused:
    """Return the entry, refused if it needs an exchange and the broker has none."""
    step = {} if isinstance(entry, Refused) else entry.operations.get(STEP, {})
    if has_exchanges or "exchange" not in step:
        return entry
    shown = ", ".join(f"{name} {step[name]!r}" for name in ROUTE)
    why = (
        f"its message is routed by {shown}, and the broker to which Minutebook would send it has no"
        " exchanges: it is not one of AMQP"
    )
    instead = (
        "set SCHED_CELERY_BROKER_URL to the URL of the application's broker; if that is Redis, name"
        " the queue that the message arrives in as the option `queue`"
    )
    return Refused(entry.name, entry.where, why, instead)


def _left_out(options: Mapping[str, Any]) -> Iterator[str]:
    carried = {"queue", *CARRIED, *ROUTE}
    for name, value in options.items():
        if name == "serializer":
            yield f"its message is written by {value!r}, that of the action is JSON"
        elif name not in carried:
            shown = repr(value)
            shown = shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"
            yield f"the option {name} {shown} is left out"
