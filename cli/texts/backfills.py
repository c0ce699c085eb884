"""Backfills in words."""

from collections.abc import Iterator

from models.values import counted
from services.backfills import Backfill, BackfillPlan, CancelledBackfills, StartedBackfill
from services.words import instant


def in_words(one: Backfill) -> str:
    """Return a backfill's status: `done: 10 recorded, 0 repeated, 2 passed over, from … to …`."""
    error = f" ({one.error})" if one.error else ""
    ends = f"from {instant(one.first_at)} to {instant(one.last_at)}"
    return f"{one.state}: {_counts(one)}, {ends}{error}"


def _counts(one: Backfill | BackfillPlan) -> str:
    return f"{one.recorded} recorded, {one.repeated} repeated, {one.passed_over} passed over"


def _started(one: StartedBackfill) -> Iterator[str]:
    yield f"backfill {one.id} of {one.name}"
    yield f"  {in_words(one)}"
    if one.is_awaited:
        counts = ", ".join(f"{count} {state}" for state, count in one.operations.items())
        yield f"  runs: {counts or 'none'}"


def _plan(one: BackfillPlan) -> Iterator[str]:
    yield f"{one.name} would have {_counts(one)}; nothing was stored"
    yield f"  first {instant(one.first)}, last {instant(one.last)}"


def _cancelled(one: CancelledBackfills) -> Iterator[str]:
    for id in one.backfills:
        yield f"cancelled backfill {id} of {one.name}"
    yield f"  cancelled {counted(one.cancelled, 'run')} that had not started"


FORMS = {StartedBackfill: _started, BackfillPlan: _plan, CancelledBackfills: _cancelled}
