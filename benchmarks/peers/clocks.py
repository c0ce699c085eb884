"""Let each scheduler live through clock changes and downtime by a virtual clock.

The peers' own loops run with `time-machine`; Minutebook's ticks by the clock of its database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from benchmarks.peers.contestants import ALL, THEIRS, Contestant, Entries, Minutebook, Peer
from benchmarks.peers.judge import judge
from benchmarks.peers.speed import MINUTE, Cell, Sizes
from scheduler.loop import Daemon
from tests.servers import PostgreSQL
from tests.virtual_clock import VirtualClock

ZONE = "Europe/Paris"
HOUR = timedelta(hours=1)
Span = tuple[datetime, datetime]
Due = Mapping[str, Sequence[datetime]]


@dataclass(frozen=True)
class Story:
    """What is scheduled, the spans in which the scheduler runs, and what is due.

    At the end of each span the scheduler is killed.
    """

    entries: Sequence[Entries]
    spans: Sequence[Span]
    due: Due
    wants_every_missed_run: bool = False


def night(midnight: datetime) -> Story:
    """Return the hours from one to four of a night in which the clocks change.

    A daily entry is due once. One of each hour, or quarter of an hour, is due whenever so much
    time has passed.
    """
    begins = (midnight + HOUR).astimezone(UTC)
    ends = (midnight + 4 * HOUR).astimezone(UTC)
    hours = [begins + number * HOUR for number in range(1, (ends - begins) // HOUR + 1)]
    quarters = [begins + n * HOUR / 4 for n in range(1, 4 * len(hours) + 1)]
    gap_or_first = (midnight + timedelta(hours=2, minutes=30)).astimezone(UTC)
    # A time that the clocks skip is due when they have skipped it, at the latest.
    changes = datetime(gap_or_first.year, gap_or_first.month, gap_or_first.day, 1, tzinfo=UTC)
    entries = [
        Entries("daily", "30 2 * * *", 1),
        Entries("hourly", "0 * * * *", 1),
        Entries("quarterly", "*/15 * * * *", 1),
    ]
    due = {
        "daily 0": [min(gap_or_first, changes)],
        "hourly 0": hours,
        "quarterly 0": quarters,
    }
    return Story(entries, [(begins, ends + timedelta(seconds=30))], due)


SPRING = night(datetime(2027, 3, 28, tzinfo=ZoneInfo(ZONE)))
AUTUMN = night(datetime(2027, 10, 31, tzinfo=ZoneInfo(ZONE)))


def downtime(copies: int, *, is_each_wanted: bool) -> Story:
    """Return five minutes, 20 minutes of downtime and five minutes, in UTC."""
    zero = datetime(2027, 6, 1, 12, 0, 1, tzinfo=UTC)
    spans = [(zero, zero + 5 * MINUTE), (zero + 25 * MINUTE, zero + 30 * MINUTE)]
    if not is_each_wanted:
        entries = [Entries("once", "10 14 * * *", copies)]
        at = zero.replace(minute=10, second=0)
        return Story(entries, spans, {name: [at] for name in entries[0].names()})
    entries = [Entries("each minute", "* * * * *", 1)]
    minutes = [zero.replace(second=0) + number * MINUTE for number in range(1, 31)]
    return Story(entries, spans, {"each minute 0": minutes}, wants_every_missed_run=True)


def measure_clocks(folder: Path, server: PostgreSQL, sizes: Sizes) -> dict[str, dict[str, Cell]]:
    """Return what each lost and doubled over both clock changes, and over downtime."""
    stories = {
        "spring": SPRING,
        "autumn": AUTUMN,
        "down": downtime(sizes.copies, is_each_wanted=False),
        "down_each": downtime(sizes.copies, is_each_wanted=True),
    }
    return {
        kind.title: {
            name: _live(kind, folder / f"{kind.__name__}-{name}", server, story)
            for name, story in stories.items()
            if kind.catches_up_all or not story.wants_every_missed_run
        }
        for kind in ALL
    }


def _live(kind: type[Contestant], folder: Path, server: PostgreSQL, story: Story) -> Cell:
    one = kind(folder, server, story.entries, ZONE, story.wants_every_missed_run)
    try:
        if isinstance(one, Minutebook):
            _live_ours(one, story)
        elif isinstance(one, Peer):
            _live_theirs(one, story)
        arrived = one.arrived()
        names = sorted({*story.due, *(name for name, _ in arrived)})
        each = {
            name: judge({name: story.due.get(name, ())}, [it for it in arrived if it[0] == name])
            for name in names
        }
        verdict = judge(story.due, arrived)
        wrong = {name: str(one) for name, one in each.items() if one.lost or one.doubled}
        cell: Cell = {"due": verdict.due, "lost": verdict.lost, "doubled": verdict.doubled}
        return {**cell, "wrong": wrong} if len(story.due) < 10 else cell
    finally:
        one.close()


def _live_theirs(one: Peer, story: Story) -> None:
    for number, (since, until) in enumerate(story.spans):
        command = ["-m", f"{THEIRS}.virtual", since.isoformat(), until.isoformat()]
        one.run(command, PEER_FILL="" if number else "1")


def _live_ours(one: Minutebook, story: Story) -> None:
    engine = one.database.engine
    clock = VirtualClock(engine, story.spans[0][0])
    one.create()
    counted: set[str] = set()
    for since, until in story.spans:
        # Another span is another process.
        daemon = Daemon(engine, one.database.settings, steps=one.steps())
        daemon.prepare()
        for at in _ticks(since, until):
            clock.set(at)
            daemon.tick_once()
            _note(one, at, counted)


def _ticks(since: datetime, until: datetime) -> list[datetime]:
    """Return the instants at which a daemon that starts at `since` ticks."""
    first = since.replace(second=0, microsecond=0) + MINUTE
    return [since, *(first + number * MINUTE for number in range((until - first) // MINUTE + 1))]


def _note(one: Minutebook, at: datetime, counted: set[str]) -> None:
    """Note each operation at its first message: a worker claims it once, however often it comes."""
    fresh = [id for id, _ in one.broker.messages("quick") if id not in counted]
    names = one.names_of(fresh)
    counted.update(fresh)
    with one.journal.open("a") as file:
        file.writelines(f"{at.timestamp()} {names[id]}\n" for id in fresh)
