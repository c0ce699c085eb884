"""nuntium: tasks in a queue that is full, by the worked timelines of its wiki and its tests.

Eleven channels of an interval of a minute and a tolerance of 5 s share a scheduler that ticks every
30 s. Their workers come when they have the capacity: at the instants of the timelines. The clock
stands still between the rows.
"""

import json
import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.tables import action_cursor
from runtime.database import reading
from tests.acceptance.five_systems.table import Table
from tests.acceptance.installation import Installation
from tests.factories import yearly
from tests.integration.scheduler.test_congestion import (
    EVERY_MINUTE,
    FULL_QUEUE,
    LATE_THEN_PROMPT,
    LITTLE_CONGESTION,
    START,
    WHOLE_QUOTA,
    Row,
    at,
    rows,
)
from tests.virtual_clock import VirtualClock

# The clock stands still for longer than a lease, and then moves by half a minute.
PATIENT = {"SCHED_WORKER_LEASE_S": "600", "SCHED_WORKER_CANCEL_GRACE_S": "60"}


def second(clock: str, decision: str) -> list[Row]:
    """Return a timeline whose first run starts at 00:50, and whose second one is taken then."""
    last_run = clock if decision == "begins" else "00:50"
    return rows(f"""
        00:30 | tick   | A1         | 01:30 | -
        00:50 | take 1 | begins     | 01:30 | 00:50
        01:30 | tick   | A2         | 02:30 | 00:50
        {clock} | take 2 | {decision} | 02:30 | {last_run}
    """)


WHILE_ONE_RUNS = rows("""
    00:30 | tick   | A1      | 01:30 | -
    00:35 | take 1 | begins  | 01:30 | 00:35
    01:30 | tick   | A2      | 02:30 | 00:35
    01:32 | take 2 | skipped | 02:30 | 00:35
""")
# By the channel: what the vector is about, its rows, and its policy. V5 is the first run of V6.
TIMELINES: dict[str, tuple[str, list[Row], dict[str, Any]]] = {
    "v1": ("little congestion", LITTLE_CONGESTION, {}),
    # Under skip the later one would overtake the one that waits in the queue.
    "v2": ("a full queue: all run, late", FULL_QUEUE, {"overlap": "allow"}),
    "v3": ("one late, the next prompt: it is dropped", LATE_THEN_PROMPT, {"overlap": "allow"}),
    "v4": ("the whole quota is used: forced to end", WHOLE_QUOTA, {"time_limit": "PT3S"}),
    "v6": ("never ran: begins (V5); 45 s later: dropped", second("01:35", "dropped"), {}),
    "v7": ("55 s after the last start: begins", second("01:45", "begins"), {}),
    "v8": ("60 s after it: begins", second("01:50", "begins"), {}),
    "v9": ("95 s after it: begins", second("02:25", "begins"), {}),
    "v11": ("while one runs: not started, the lock is kept", WHILE_ONE_RUNS, {}),
}
# Their runs take as long as the timeline says.
HELD = {"v1", "v2", "v3", "v4", "v11"}
# V10: the intervals of five tasks, and in how many seconds each is due.
FIVE = {30: 10, 35: 20, 40: 30, 45: 40, 60: 50}


@dataclass
class Channel:
    """A channel's timeline, and the action that does its work; others use its worker too."""

    name: str
    uid: UUID
    seen: list[str] = field(default_factory=list)

    @property
    def timeline(self) -> list[Row]:
        """Its rows."""
        return TIMELINES[self.name][1]


class Gateway:
    """An installation with channels, on a clock that stands still between the rows.

    A worker that has ended a run takes what others have queued since, which keeps it busy until
    the timeline lets it take the next one.
    """

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.clock = VirtualClock(installation.engine, START)
        uids = self._added([*map(_channel, TIMELINES), *map(_one_of_five, FIVE), *self._others()])
        self.channels = [Channel(name, uids[name]) for name in TIMELINES]
        self.five = {every: uids[f"every {every} s"] for every in FIVE}

    def play(self, clock: str) -> None:
        """Let happen what the timelines have at an instant; compare each with its row."""
        self.clock.set(at(clock))
        now = [(one, row) for one in self.channels for row in one.timeline if row.clock == clock]
        before = {one.name: len(self.operations(one)) for one in self.channels}
        if any(row.event == "tick" for _, row in now):
            self.installation.tick()
        for channel, row in now:
            self._begin(channel, row)
        for channel, row in now:
            decision = self._decided(channel, row, before[channel.name])
            last_run = None if row.last_run is None else at(row.last_run)
            seen = (decision, *self.next_and_last(channel))
            assert seen == (row.decision, at(row.next_run), last_run), (channel.name, row)
            channel.seen.append(f"{clock} {row.event} {decision}".strip())

    def operations(self, channel: Channel) -> list[sa.RowMapping]:
        """Return what was recorded for a channel, the oldest first."""
        return self.installation.rows(channel.uid)

    def next_and_last(self, channel: Channel) -> tuple[datetime, datetime | None]:
        """Return when a channel runs next, and when it ran last."""
        starts = [one["first_started_at"] for one in self.operations(channel)]
        last_run = max((one for one in starts if one is not None), default=None)
        next_run = sa.select(action_cursor.c.next_occurrence_at)
        with reading(self.installation.engine) as connection:
            its = next_run.where(action_cursor.c.action_uid == channel.uid)
            return connection.execute(its).scalar_one(), last_run

    def _begin(self, channel: Channel, row: Row) -> None:
        """Start what a row needs: the channel's worker, or its way to the next message."""
        verb, _, number = row.event.partition(" ")
        if row.event == "take 1":
            slots = 2 if channel.name == "v11" else 1
            self.installation.worker(channel.name, slots, settings=PATIENT)
        elif verb == "take":
            self._gate(channel.name, f"others {int(number) - 1}").touch()
        elif row.decision == "success":
            self._gate(channel.name).touch()

    def _decided(self, channel: Channel, row: Row, before: int) -> str:
        """Return what a row's event led to: what was recorded, or what became of a run."""
        verb, _, number = row.event.partition(" ")
        if verb == "tick":
            found = [f"A{n + 1}" for n in range(before, len(self.operations(channel)))]
            if found:
                self.installation.cli("action", "run", f"{channel.name} others {found[0][1:]}")
            return " ".join(found)
        id = self.operations(channel)[int(number) - 1]["id"]
        if row.decision != "begins":
            return str(self.installation.becomes(id, row.decision)["state"])
        self.installation.step_starts(id)
        return row.decision

    def _gate(self, *names: str) -> Path:
        return self.installation.file(" ".join([*names, "may end"]))

    def _others(self) -> list[dict[str, Any]]:
        """Return the actions of others in the queue of each channel."""
        found = []
        for name, (_, timeline, _) in TIMELINES.items():
            for number in range(1, 1 + sum(row.event == "tick" for row in timeline)):
                step = {"trace_two": {"until": str(self._gate(name, f"others {number}"))}}
                when = yearly(START, 40)
                found.append(_document(f"{name} others {number}", step, when, name))
        return found

    def _added(self, documents: list[dict[str, Any]]) -> dict[str, UUID]:
        for one in documents:
            if one["name"] in TIMELINES:
                until = str(self._gate(one["name"]))
                one["operations"] = {"trace_one": {"until": until, "heeds_stop": True}}
                if one["name"] not in HELD:
                    Path(until).touch()
        file = self.installation.file("channels.json")
        file.write_text(json.dumps(documents))
        added = self.installation.cli("action", "add", str(file))
        return {one["name"]: UUID(one["uid"]) for one in added}


def _document(
    name: str, steps: dict[str, Any], when: dict[str, Any], queue: str, **policy: Any
) -> dict[str, Any]:
    policy = {"queue": queue, **policy}
    return {"name": name, "operations": steps, "when": when, "policy": policy}


def _channel(name: str) -> dict[str, Any]:
    return _document(name, {"trace_one": True}, EVERY_MINUTE, name, **TIMELINES[name][2])


def _one_of_five(every: int) -> dict[str, Any]:
    begins = START + timedelta(seconds=FIVE[every])
    when = {"every": f"PT{every}S", "starting_at": begins.isoformat()}
    return _document(f"every {every} s", {"trace_one": True}, when, "v10")


@pytest.mark.parametrize("store", ["postgresql"])
def test_the_timelines_go_as_they_are_written(installation: Installation, table: Table) -> None:
    gateway = Gateway(installation)

    for clock in sorted({row.clock for one in gateway.channels for row in one.timeline}):
        gateway.play(clock)
        if clock == "00:30":
            table.tell(
                "V10: a tick enqueues what is due, the edge included",
                "a tick at 30 s; tasks of 30, 35, 40, 45, 60 s due at 10, 20, 30, 40, 50 s",
                [every for every, uid in gateway.five.items() if installation.rows(uid)],
                [30, 35, 40],
            )

    for one in gateway.channels:
        about, timeline, _ = TIMELINES[one.name]
        wanted = [f"{row.clock} {row.event} {row.decision}".strip() for row in timeline]
        table.tell(f"{one.name.upper()}: {about}", "the rows of the timeline", one.seen, wanted)


@pytest.mark.parametrize("store", ["sqlite"])
def test_the_message_of_a_deleted_channel_does_nothing(
    installation: Installation, table: Table
) -> None:
    file = installation.file("pop3.json")

    def stored(every: str) -> subprocess.CompletedProcess[str]:
        document = _document("pop3", {"trace_one": True}, {"every": every}, "pop3")
        file.write_text(json.dumps(document))
        return installation.processes.run(installation.command("action", "add", str(file)))

    refused = {every: stored(every).returncode for every in ("-PT20S", "PT0S")}
    table.tell("V12: interval -20 is refused, 0 is valid", "`action add`; here 0 is refused too",
               refused, {"-PT20S": 2, "PT0S": 2})  # fmt: skip
    assert stored("PT1M").returncode == 0
    ran = installation.cli("action", "run", "pop3")
    id = UUID(ran["id"])
    installation.cli("action", "delete", "pop3", "--yes")
    installation.worker("pop3")
    installation.awaits(id, lambda row: row["finished_at"] is not None)
    row, starts = installation.row(id), installation.trace.starts(id)
    table.tell("N7, N-b7: with its channel a task goes; its message does nothing",
               "`action delete` while a message waits, then a worker",
               (row["state"], row["reason"], starts),
               ("cancelled", "the action was deleted", []))  # fmt: skip
