"""Operations in words."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cli.render import listing
from services.operations import Attempt, Log, Operation, Operations
from services.words import both_clocks, brief, instant

SHOWN = (
    "state", "reason", "waits", "error", "triggerer", "action_name", "action_uid", "revision",
    "occurrence_at", "queue", "attempt", "recorded_at", "sent_at", "started_at",
    "finished_at", "worker", "phase", "message", "progress",
)  # fmt: skip


def _operation(one: Operation) -> Iterator[str]:
    yield str(one.id)
    for key in SHOWN:
        value = getattr(one, key)
        if value is not None:
            shown = both_clocks(value, one.zone) if isinstance(value, datetime) else value
            yield f"  {key:<14} {shown}"
    if one.started_at is not None and one.finished_at is not None:
        yield f"  {'took':<14} {brief((one.finished_at - one.started_at).total_seconds())}"
    for step in one.steps or []:
        yield from step_lines(step)
    yield from map(_attempt, one.attempts)
    for notice in one.notices:
        error = f": {notice.error}" if notice.error else ""
        yield f"  {notice.kind} notice to {notice.to}: {notice.state}{error}"


def in_one_line(one: Operation) -> str:
    """Return how an operation stands: `running, attempt 2: 450 of 1,000, importing orders`."""
    head = f"{one.state}, attempt {one.attempt}" if (one.attempt or 1) > 1 else one.state
    counted = None if one.processed is None else f"{one.processed:,}"
    if counted and one.total is not None:
        counted += f" of {one.total:,}"
    eta = None if one.eta_at is None else f"usually until {instant(one.eta_at)}"
    parts = (one.waits or one.reason, one.phase, counted, one.message, eta, one.error)
    rest = ", ".join(part for part in parts if part)
    return f"{head}: {rest}" if rest else head


def _attempt(one: Attempt) -> str:
    ended = ""
    if one.finished_at is not None:
        took = brief((one.finished_at - one.started_at).total_seconds())
        ended = f", ended {instant(one.finished_at)} after {took}"
    error = f": {one.error}" if one.error else ""
    return f"  attempt {one.attempt}: {one.state}, began {instant(one.started_at)}{ended}{error}"


def step_lines(step: dict[str, Any]) -> Iterator[str]:
    """Yield how a step ended, and those of its details that are not empty."""
    yield f"  step {step['name']}: {step['state']}"
    for key in ("message", "error"):
        if step.get(key):
            yield f"    {step[key]}"
    for key, value in (step.get("details") or {}).items():
        if words := _in_words(value):
            yield f"    {key}: {words}"


def _in_words(value: object) -> str:
    """Return a detail of a step: `orders 2, stock 14`; nothing of an empty one."""
    match value:
        case None:
            return ""
        case dict():
            found = ((key, _in_words(one)) for key, one in value.items())
            return ", ".join(f"{key} {words}" for key, words in found if words)
        case list():
            return ", ".join(map(_in_words, value))
        case _:
            return str(value)


def _log(log: Log) -> Iterator[str]:
    for line in log.root:
        yield f"{line.at} {line.level:<7} {line.message}"


FORMS = {
    Operations: listing("id action_name=ACTION occurrence_at state why=REASON attempt"),
    Operation: _operation,
    Log: _log,
}
