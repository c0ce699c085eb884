"""Count what ended, for `/metrics`: once, after each tick, by any daemon."""

import sqlalchemy as sa

from models.store import totals
from models.store.totals.amounts import Totals
from runtime.database import DATABASE_AWAY, glancing, unhurried
from runtime.logs.events import EventLog
from scheduler.tick import TickReport

logger = EventLog("minutebook.counting")

# After a long downtime the next ticks count the rest.
MOST_PAGES = 8


def tick_totals(report: TickReport, lag_s: float | None) -> Totals:
    """Return what a tick adds to the totals; `lag_s` is how late it began, None at a start."""
    found = Totals()
    found.observe("tick", report.duration_ms / 1000)
    found.observe("tick_lag", lag_s)
    if report.publish_s:
        found.observe("publish", report.publish_s)
    for name in ("decided", "recorded", "sent", "lost", "lost_messages"):
        found.add("tick_work", name, by=getattr(report, name))
    if report.broker_error is not None:
        found.add("broker_errors")
    return found


def count_ended(engine: sa.Engine) -> None:
    """Count what ended since the last count; an unexpected error leaves it to the next tick.

    Only settled rows are read, so they may be read before the transaction that counts them. Raises
    SQLAlchemy's errors if the database is unavailable.
    """
    try:
        for _ in range(MOST_PAGES):
            with glancing(engine) as connection:
                page = totals.next_page(connection)
            if page.is_empty:
                return
            with unhurried(engine) as connection:
                is_stored = totals.store_page(connection, page)
            if page.is_last or not is_stored:
                return
    except DATABASE_AWAY:
        raise
    except Exception:  # figures must not stop the loop
        logger.exception(
            "counting_failed", "ended operations were not counted; the next tick tries again"
        )
