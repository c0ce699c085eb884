"""The step `celery_task`: sends a task of the user's own Celery application."""

import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_core import InitErrorDetails

from minutebook.followed import HEADER
from minutebook.steps import StepContext, step
from models.celery_task import HandOver
from models.document import Document
from models.errors import UnknownStep
from models.parsing import Reading
from models.problems import line_error
from models.values import CeleryQueue, Flag, FreeJson, Name, parse_list, parse_whole
from models.values.durations import format_span, parse_span

STEP = "celery_task"
LONGEST_WAIT = timedelta(days=366)
# In bytes, of a name in AMQP.
AMQP_MOST = 255
AS_ISO_OR_NULL = PlainSerializer(format_span, return_type=str, when_used="unless-none")
# In bytes of JSON, of all headers together: as a table of AMQP they may be five times as large, and
# RabbitMQ takes 128 KiB with Celery's own.
HEADERS_MOST = 16_384
# Headers that Celery and Minutebook write themselves.
OWN_HEADERS = frozenset(
    {
        HEADER, "argsrepr", "eta", "expires", "group", "group_index", "id", "ignore_result",
        "kwargsrepr", "lang", "meth", "origin", "parent_id", "replaced_task_nesting", "retries",
        "root_id", "shadow", "stamped_headers", "stamps", "task", "timelimit",
    }
)  # fmt: skip
# Headers that brokers and their clients obey: RabbitMQ sends a copy to each queue that CC and BCC
# name, whatever is granted, and `compression` makes the receiver unpack the body.
OF_BROKERS = frozenset({"BCC", "CC", "compression"})


def _arguments(value: object) -> object:
    if isinstance(value, Mapping):
        raise ValueError('write a list in [ ], or write the object as "kwargs"')
    return parse_list(value)


def _headers(headers: dict[str, FreeJson]) -> dict[str, FreeJson]:
    taken = sorted(OWN_HEADERS & set(headers))
    if taken:
        raise ValueError(f"{taken[0]!r} is a header of Celery's or Minutebook's own; rename it")
    obeyed = sorted(OF_BROKERS & set(headers))
    if obeyed:
        raise ValueError(f"{obeyed[0]!r} is a header that brokers obey; rename it")
    size = len(json.dumps(headers).encode())
    if size > HEADERS_MOST:
        raise ValueError(
            f"its headers are too large ({size:,} bytes as JSON); write at most {HEADERS_MOST:,}, "
            "and put the rest into args or kwargs"
        )
    return headers


def _amqp_name(value: object) -> str:
    is_text = isinstance(value, str) and value.isprintable()
    if is_text and 0 < len(str(value).encode(errors="replace")) <= AMQP_MOST:
        return str(value)
    raise ValueError(f"write a text of 1 to {AMQP_MOST} bytes")


AmqpName = Annotated[str, BeforeValidator(_amqp_name)]


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class CeleryTaskParameters(Document):  # type: ignore[no-redef]
    """A task of the user's Celery application.

    A message that has waited for longer than `expires` starts nothing. With `exchange` and
    `routing_key`, the broker finds its queues.
    """

    task: Name
    args: Annotated[tuple[FreeJson, ...], BeforeValidator(_arguments)] = ()
    kwargs: dict[str, FreeJson] = Field(default_factory=dict)
    queue: CeleryQueue | None = None
    priority: Annotated[int | None, BeforeValidator(partial(parse_whole, least=0, most=255))] = None
    headers: Annotated[dict[str, FreeJson], AfterValidator(_headers)] = Field(default_factory=dict)
    expires: Annotated[
        timedelta | None,
        BeforeValidator(partial(parse_span, most=LONGEST_WAIT, seconds_allowed=True)),
        AS_ISO_OR_NULL,
    ] = None
    exchange: AmqpName | None = None
    routing_key: AmqpName | None = None
    ignore_result: Flag | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the faults of a route: an exchange and a routing key, and no queue."""
        given = raw.get("exchange") is not None, raw.get("routing_key") is not None
        found = []
        if given == (True, False):
            remedy = "needs routing_key too; a fanout exchange ignores its value"
            found.append(line_error(("exchange",), raw["exchange"], remedy))
        if given == (False, True):
            remedy = 'needs exchange too; to name a queue, write "queue"'
            found.append(line_error(("routing_key",), raw["routing_key"], remedy))
        if any(given) and raw.get("queue") is not None:
            remedy = "has no effect with exchange and routing_key; remove one or the other"
            found.append(line_error(("queue",), raw["queue"], remedy))
        return found


def _hand_over(parameters: Mapping[str, Any]) -> tuple[HandOver, str | None]:
    read = CeleryTaskParameters.model_validate(parameters)
    its = {**dict(read), "routing_key": read.routing_key or ""}
    del its["queue"]
    handed = HandOver(**its)
    return handed, handed.route or read.queue


@step(
    STEP,
    parameters=CeleryTaskParameters,
    alone=True,
    order=60,
    hand_over=_hand_over,
    example={"task": ""},
)
def run(_context: StepContext) -> None:
    """Refuse: the daemon sends the task to the application's workers, never to ours."""
    raise UnknownStep(f"this worker does not know the step {STEP!r}")
