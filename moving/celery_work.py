"""What beat sends, as the step `celery_task`."""

from collections.abc import Mapping, Sequence
from typing import Any

from celery_steps.celery_task import STEP
from moving.entries import CannotMove

# As beat does: it sends whether or not the last run has ended.
POLICY: Mapping[str, Any] = {"overlap": "allow"}
DEFAULT_QUEUE = "celery"
# Options that the step has under the same name.
CARRIED = ("priority", "headers", "expires")
# What names a queue in another way, and is not needed beside one.
ROUTE = ("exchange", "routing_key")
# Options that change nothing in a message of the step: it is JSON, persistent, and is not resent.
WITHOUT_EFFECT = {
    "add_to_parent": (None, False, True),
    "compression": (None,),
    "countdown": (None, 0),
    "delivery_mode": (None, 2, "persistent"),
    "ignore_result": (None, True, False),
    "immediate": (None, False),
    "mandatory": (None, False),
    "retry": (None, True, False),
    "serializer": (None, "json"),
}


def work_of(
    task: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the operations of a task with beat's options, and what they leave out.

    Raises CannotMove for a message whose queue is not known.
    """
    given = {name: value for name, value in options.items() if value not in (None, "", {}, [])}
    step: dict[str, Any] = {"task": task}
    if args:
        step["args"] = list(args)
    if kwargs:
        step["kwargs"] = dict(kwargs)
    queue = _queue(given)
    if queue != DEFAULT_QUEUE:
        step["queue"] = queue
    step |= {name: given[name] for name in CARRIED if name in given}
    return {STEP: step}, tuple(_left_out(given))


def _queue(options: Mapping[str, Any]) -> str:
    queue = options.get("queue")
    # Either of the two alone has no effect.
    if queue is None and set(ROUTE) <= set(options):
        shown = ", ".join(f"{name} {options[name]!r}" for name in ROUTE)
        why = f"its message is routed by {shown}, which the step celery_task cannot do"
        raise CannotMove(why, "name the queue that the message arrives in as its option `queue`")
    return DEFAULT_QUEUE if queue is None else str(queue)


def _left_out(options: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in options.items():
        if name in {"queue", *CARRIED} or value in WITHOUT_EFFECT.get(name, ()):
            continue
        if name in ROUTE and not set(ROUTE) <= set(options):
            continue
        if name in ROUTE:
            shown = f"{name} {value!r} is left out: the message goes to its queue directly"
        else:
            shown = f"the option {name} {value!r} is not carried over"
        found.append(shown)
    return found
