"""Two daemons and changes of the same actions, at once on PostgreSQL: none fails."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from random import Random
from threading import Event

import pytest
import sqlalchemy as sa

from scheduler.changes import change
from tests.factories import author, make_action, make_document, rows_of
from tests.ticks import MINUTE, run_tick
from tests.virtual_clock import VirtualClock

SEVEN = datetime(2027, 1, 4, 7, 0, tzinfo=UTC)
NAMES = [f"no {number}" for number in range(24)]
WHENS = [{"cron_rule": rule, "timezone": "UTC"} for rule in ("* * * * *", "0 * * * *")]
CHANGES = 20


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_ticks_and_changes_that_need_the_same_rows_all_end(engine: sa.Engine) -> None:
    """A tick overtakes what another one marks as sent, while a change decides it."""
    clock = VirtualClock(engine, SEVEN)
    made = [make_action(engine, name=name, when=WHENS[0]) for name in NAMES]
    random, is_over = Random(7), Event()

    def changes() -> None:
        for number in range(1, CHANGES + 1):
            when, some = random.choice(WHENS), random.sample(NAMES, 12)
            change.apply_all(engine, [make_document(name=one, when=when) for one in some], author())
            clock.set(SEVEN + number * MINUTE)

    def ticks() -> None:
        while not is_over.is_set():
            run_tick(engine)

    def ends(act: Callable[[], None]) -> None:
        try:
            act()
        finally:
            is_over.set()

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(ends, act) for act in (changes, ticks, ticks)]
    for one in running:
        one.result()

    assert sum(len(rows_of(engine, action)) for action in made) > len(made)
