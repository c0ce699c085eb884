"""What a run and the last success of its action differ in, as the rows of a small table."""

import json
from dataclasses import dataclass

from models.operation import OperationState
from views.operations import Operation, comparison
from views.operations.comparison import Comparison
from views.words import brief
from web.dashboard.session import Visitor
from web.dashboard.texts import say, step_name

# A run that did not succeed is compared; a success only if it took much longer.
UNSUCCESSFUL = {OperationState.FAILED, OperationState.PARTIAL, OperationState.CANCELLED}
NAMED = {"revision", "queue", "worker", "task", "application", "args"}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing of both runs; `is_revision` if the page of the action shows what changed."""

    name: str
    this: str
    that: str
    is_revision: bool = False


def comparison_of(visitor: Visitor, shown: Operation) -> Comparison | None:
    """Return the comparison that a page shows; None for a run that is as usual, or never ran."""
    is_success = shown.state == OperationState.SUCCESS
    if shown.started_at is None or not (is_success or shown.state in UNSUCCESSFUL):
        return None
    found = comparison.compare(visitor.opened, str(shown.id))
    is_shown = found.last_success_id and (found.is_much_longer or not is_success)
    return found if is_shown else None


def lines_of(found: Comparison) -> list[Line]:
    """Return the duration of both runs, and what else differs."""
    took, usual = (
        "-" if span is None else brief(span)
        for span in (found.duration_s, found.last_success_duration_s)
    )
    return [
        Line(say("operation.duration"), took, usual),
        *(
            Line(
                _name(one.what), _value(one.this), _value(one.last_success), one.what == "revision"
            )
            for one in found.differences
        ),
    ]


def _name(what: str) -> str:
    if what in NAMED:
        return say(f"operation.{what}")
    kind, _, rest = what.partition(".")
    if kind == "kwargs":
        return rest
    step, _, figure = rest.partition(".")
    words = figure.replace(".", " ").replace("_", " ") or say("operation.done")
    return f"{step_name(step)}: {words}"


def _value(value: object) -> str:
    """Return a value as text: a number with its thousands apart, nothing as a dash."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
