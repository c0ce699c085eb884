"""The worked timelines of a queue that falls behind, as nuntium's wiki has them.

An interval of a minute with a tolerance of 5 s, ticks every 30 s. An operation stands for its own
grid point however late the tick, so the wiki's later times after a late tick are not kept; nor is
an interval of 0, which is no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.claims import Claim, claim
from models.store.operations.finish import Ending, end
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import STEPS, cursor_of, make_action, rows_of
from tests.virtual_clock import VirtualClock

START = datetime(2027, 1, 4, tzinfo=UTC)
LEASE = timedelta(seconds=45)
EVERY_MINUTE = {
    "every": "PT1M",
    "tolerance": "PT5S",
    "starting_at": (START + timedelta(seconds=30)).isoformat(),
}
TIME_BOX = Ending(OperationState.PARTIAL, reason="time box")
SUCCESS = Ending(OperationState.SUCCESS)


def at(clock: str) -> datetime:
    """Return the instant of a time such as `01:30` after the start."""
    minutes, seconds = clock.split(":")
    return START + timedelta(minutes=int(minutes), seconds=int(seconds))


@dataclass(frozen=True)
class Row:
    """A row of a timeline: when, what happens, and what is so after it."""

    clock: str
    event: str
    decision: str
    next_run: str
    last_run: str | None


def rows(text: str) -> list[Row]:
    """Return the rows of a table of five columns."""
    found = []
    for line in text.strip().splitlines():
        clock, event, decision, next_run, last_run = (cell.strip() for cell in line.split("|"))
        found.append(Row(clock, event, decision, next_run, last_run if last_run != "-" else None))
    return found


LITTLE_CONGESTION = rows("""
    00:30 | tick   | A1      | 01:30 | -
    00:35 | take 1 | begins  | 01:30 | 00:35
    00:45 | end 1  | success | 01:30 | 00:35
    01:00 | tick   |         | 01:30 | 00:35
    01:30 | tick   | A2      | 02:30 | 00:35
    01:32 | take 2 | begins  | 02:30 | 01:32
""")
FULL_QUEUE = rows("""
    00:30 | tick   | A1      | 01:30 | -
    01:00 | tick   |         | 01:30 | -
    01:30 | tick   | A2      | 02:30 | -
    01:35 | take 1 | begins  | 02:30 | 01:35
    01:38 | end 1  | success | 02:30 | 01:35
    02:00 | tick   |         | 02:30 | 01:35
    02:30 | tick   | A3      | 03:30 | 01:35
    02:37 | take 2 | begins  | 03:30 | 02:37
""")
LATE_THEN_PROMPT = rows("""
    00:30 | tick   | A1      | 01:30 | -
    01:00 | tick   |         | 01:30 | -
    01:30 | tick   | A2      | 02:30 | -
    01:35 | take 1 | begins  | 02:30 | 01:35
    01:38 | end 1  | success | 02:30 | 01:35
    02:00 | tick   |         | 02:30 | 01:35
    02:03 | take 2 | dropped | 02:30 | 01:35
    02:30 | tick   | A3      | 03:30 | 01:35
    02:56 | take 3 | begins  | 03:30 | 02:56
""")
WHOLE_QUOTA = rows("""
    00:30 | tick   | A1      | 01:30 | -
    00:35 | take 1 | begins  | 01:30 | 00:35
    01:00 | tick   |         | 01:30 | 00:35
    01:05 | end 1  | partial | 01:30 | 00:35
    01:30 | tick   | A2      | 02:30 | 00:35
    01:32 | take 2 | begins  | 02:30 | 01:32
""")


class Timeline:
    """One action's operations, by the number of their grid point."""

    def __init__(self, engine: sa.Engine, overlap: str) -> None:
        self.engine = engine
        self.clock = VirtualClock(engine, START)
        self.action = make_action(engine, when=EVERY_MINUTE, policy={"overlap": overlap})
        self.sweeper = Sweeper(LEASE, NO_ALERTS)

    def play(self, row: Row) -> None:
        """Let the row's event happen, and compare what is so after it."""
        self.clock.set(at(row.clock))
        verb, _, number = row.event.partition(" ")
        decision = self.tick() if verb == "tick" else self.work(verb, int(number), row.decision)

        starts = [one["first_started_at"] for one in rows_of(self.engine, self.action)]
        last_run = max((one for one in starts if one is not None), default=None)
        assert decision == row.decision
        assert cursor_of(self.engine, self.action)["next_occurrence_at"] == at(row.next_run)
        assert last_run == (None if row.last_run is None else at(row.last_run))

    def tick(self) -> str:
        """Return the names of what a tick records: A1, A2, …"""
        before = len(rows_of(self.engine, self.action))
        tick(self.engine, None, self.sweeper, steps=STEPS)
        recorded = len(rows_of(self.engine, self.action))
        return " ".join(f"A{number}" for number in range(before + 1, recorded + 1))

    def work(self, verb: str, number: int, ending: str) -> str:
        """Let a worker take an operation, or end it; return what became of it."""
        row = rows_of(self.engine, self.action)[number - 1]
        with self.engine.begin() as connection:
            if verb == "take":
                taken = claim(connection, row["id"], row["attempt"], "worker", alerts=NO_ALERTS)
                return "begins" if isinstance(taken, Claim) else taken.why
            ended = end(
                connection,
                row["id"],
                row["attempt"],
                SUCCESS if ending == "success" else TIME_BOX,
                alerts=NO_ALERTS,
            )
            return str(ended.state)


@pytest.mark.parametrize(
    ("timeline", "overlap"),
    [
        pytest.param(LITTLE_CONGESTION, "skip", id="V1_little_congestion"),
        # Under skip the later one would overtake the one that waits in the queue.
        pytest.param(FULL_QUEUE, "allow", id="V2_full_queue"),
        pytest.param(LATE_THEN_PROMPT, "allow", id="V3_one_late_the_next_prompt"),
        pytest.param(WHOLE_QUOTA, "skip", id="V4_the_whole_quota_is_used"),
    ],
)
def test_a_timeline_goes_as_it_is_written(
    engine: sa.Engine, timeline: Sequence[Row], overlap: str
) -> None:
    played = Timeline(engine, overlap)

    for row in timeline:
        played.play(row)
