"""Simulate a year of random actions, outages, changes and wrong clocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from models.store.people import events, users
from models.tables import operations
from models.users import parse_users
from runtime.database import reading
from scheduler.changes import change, deletion, editing
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.attempts import claim, end
from tests.factories import author, make_document
from tests.integration.scheduler import oracle
from tests.integration.scheduler.oracle import (
    AFTER,
    END,
    YEAR,
    Action,
    OnEvents,
    Revision,
    Rule,
)
from tests.virtual_clock import VirtualClock

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe")
RULES = (
    *("0 7 * * 1", "30 2 * * *", "15 1 * * *", "0 */6 * * *", "30 2 * * sun", "0 0 1,15 * 0"),
    *("45 23 * * 5", "59 1,2 * * *", "0 3 29 2,3 *", "*/20 2 * mar,oct *", "0 12 * * 1-5"),
)
LOOK_BACKS = {"PT5M": 300, "PT40M": 2_400, "P2D": 172_800}
MINUTE = timedelta(minutes=1)
EDGE = (-1, 0, 0, 0, 1)
LEASE = timedelta(seconds=45)
# How far beyond the end instants are asked for; clocks run ahead by less.
BEYOND = timedelta(days=30)

EVENT = "order.paid"
# An action's rule, and when an event is due by it.
DELAYS: dict[str, tuple[dict[str, str], Callable[[datetime], datetime]]] = {
    "on": ({"on": EVENT}, lambda at: at),
    "after days": (
        {"after": EVENT, "delay": "P3DT5M"},
        lambda at: at + timedelta(days=3, minutes=5),
    ),
}
USERS = ("ann", "bob")

Made = tuple[dict[str, Any], Callable[[UUID], Revision]]


@dataclass
class Year:
    """The year in progress: the product's database, and the oracle's actions by name."""

    engine: sa.Engine
    clock: VirtualClock
    random: Random
    lived: dict[str, Action]
    documents: dict[str, Made]
    end: datetime = END
    steps: set[timedelta] = field(default_factory=set)
    # Whether a tick came since the clock was set back.
    is_right: bool = True

    @property
    def known_until(self) -> datetime:
        """Up to when the oracle knows the occurrences."""
        return min(AFTER, self.end + BEYOND)

    def begin(self, count: int) -> None:
        """Create the actions, some minutes into the year."""
        self.clock.set(YEAR)
        self.sweeper = Sweeper(LEASE, NO_ALERTS)
        self.last = YEAR
        for number in range(count):
            name = f"action {number}"
            made = self.make(name)
            created = change.create_all(self.engine, [made[0]], author())[0]
            self.lived[name] = Action(made[1](created.uid), YEAR, created.uid)
            self.documents[name] = made
        self.begin_events()

    def begin_events(self) -> None:
        """Create two users, and an action on what they do for each kind of delay."""
        with self.engine.begin() as connection:
            for id in USERS:
                activated = {"id": id, "email": f"{id}@x.org", "activated_at": YEAR.isoformat()}
                users.add(connection, 1, parse_users([activated])[0])
        for name, (when, _) in DELAYS.items():
            due: set[datetime] = set()
            policy = {"look_back": "PT40M"}
            document = make_document(name=name, when=when, policy=policy)
            created = change.create_all(self.engine, [document], author())[0]
            rule = Rule(due, timedelta(minutes=40))  # type: ignore[arg-type]
            revision = OnEvents((rule,), "all", "allow", due=due)
            self.lived[name] = Action(revision, YEAR, created.uid)
            self.documents[name] = (document, _always(revision))

    def happen(self, now: datetime) -> None:
        """Raise an event of a user now."""
        self.clock.set(now)
        with self.engine.begin() as connection:
            events.add(connection, 1, EVENT, now.isoformat(), self.random.choice(USERS), now)
        for name, (_, due_at) in DELAYS.items():
            for one in self.lived[name].history:
                if isinstance(one.revision, OnEvents):
                    one.revision.due.add(due_at(now))  # type: ignore[union-attr]

    def live(self) -> None:
        """Live through the year: minute by minute where something is due, and all changes."""
        outages = self.outages()
        changes = self.moments(60)
        starts = {until for _, until in outages}
        happenings = self.moments(40)
        wrong = self.moments(10)
        now = YEAR
        while now < self.end:
            following = {at for at in starts.union(changes, happenings, wrong) if at > now}
            due = oracle.next_minute(self.lived.values(), now, self.end)
            now = min([due, *following])
            if now in happenings:
                self.happen(now)
            if now in changes:
                self.change_something(now)
                now = self.clock.now
            elif not any(since <= now < until for since, until in outages):
                self.tick(now + timedelta(milliseconds=self.random.choice((0, 700))))
            if now in wrong:
                self.run_ahead(now)

    def run_ahead(self, now: datetime) -> None:
        """Let the clock jump ahead, tick, perhaps change an action, and set the clock back."""
        now += timedelta(milliseconds=800)
        self.tick(now)
        ahead = now + self.step()
        self.tick(ahead)
        if self.random.random() < 0.7:
            self.change_something(ahead + timedelta(seconds=1))
            self.tick(self.clock.now + timedelta(seconds=1))
        for action in self.lived.values():
            action.set_back(now)
        if self.random.random() < 0.3:
            # It sets its own action right; the tick, with what others are due next, all.
            self.is_right = False
            self.change_something(now)
            self.is_right = True
        self.tick(now)

    def step(self) -> timedelta:
        """Return how far the clock jumps: never twice the same, or it would make up for itself."""
        length = timedelta(minutes=self.random.choice((7, 90, 1_500, 20_000)))
        while length in self.steps:
            length += 5 * MINUTE
        self.steps.add(length)
        return length

    def tick(self, now: datetime) -> None:
        """Tick, and let a worker work now and then."""
        self.clock.set(now)
        report = tick(self.engine, None, self.sweeper)
        for action in self.lived.values():
            action.decide(now)
        if report.downtime is not None:
            self.check_downtime(report.downtime, now)
        self.last = now
        if self.random.random() < 0.6:
            self.work()

    def check_downtime(self, told: dict[str, Any], now: datetime) -> None:
        """Assert that a report has what lies between the last tick and `now`, and how it ended."""
        found = {
            name: [one for at, one in action.outcomes.items() if self.last < at <= now]
            for name, action in self.lived.items()
        }
        missed = {name: outcomes.count("missed") for name, outcomes in found.items()}
        count = sum(map(len, found.values()))
        most = sorted((-times, name) for name, times in missed.items() if times)[:5]

        assert (told["occurrences"], told["missed"]) == (count, sum(missed.values()))
        assert told["sent"] == count - sum(missed.values())
        assert (told["since"], told["until"]) == (written(self.last), written(now))
        named = [(-one["missed"], one["name"]) for one in told["most_missed"]]
        # The order of equals is that of their uids.
        assert [times for times, _ in named] == [times for times, _ in most]
        assert all(missed[name] == -times for times, name in named)

    def work(self) -> None:
        """Run what has not started, as a worker would: in order, and to the end."""
        for action in self.lived.values():
            for row in self.unstarted(action.uid):
                with self.engine.begin() as connection:
                    claimed = claim(connection, row.id, row.attempt, "worker", alerts=NO_ALERTS)
                    if isinstance(claimed, Claim):
                        end(
                            connection,
                            row.id,
                            row.attempt,
                            Outcome(OperationState.SUCCESS),
                            alerts=NO_ALERTS,
                        )
            action.work()

    def unstarted(self, uid: UUID) -> Sequence[Any]:
        """Return an action's operations that have not started, in order."""
        query = sa.select(operations.c.id, operations.c.attempt).where(
            operations.c.action_uid == uid, operations.c.state.in_(["pending", "queued"])
        )
        with reading(self.engine) as connection:
            return connection.execute(query.order_by(operations.c.occurrence_at)).all()

    def change_something(self, now: datetime) -> None:
        """Edit, pause, resume or delete one of the actions, now or some time later."""
        if self.is_right and self.random.random() < 0.4:
            now = self.later(now)
        self.clock.set(now)
        name = self.random.choice(sorted(self.lived))
        action = self.lived[name]
        if action.deleted_at is not None:
            return
        if name in DELAYS:
            self.pause_or_resume(name, action, now)
            return
        kinds = [self.edit, self.pause_or_resume, self.delete]
        (act,) = self.random.choices(kinds, weights=[7, 6, 0.5])
        act(name, action, now)

    def edit(self, name: str, action: Action, now: datetime) -> None:
        """Apply another document, in some cases of a paused action."""
        made = self.other(name)
        is_on = action.revision.active
        if not is_on and self.random.random() < 0.5:
            made = _switched(made, active=True)
        elif not is_on:
            # A document that does not say `active` leaves it paused.
            made = (made[0], _switched(made, active=False)[1])
        self.documents[name] = made
        change.apply_all(self.engine, [made[0]], author())
        action.change(made[1](action.uid), now)

    def pause_or_resume(self, name: str, action: Action, now: datetime) -> None:
        """Toggle the action's active flag."""
        made = _switched(self.documents[name], active=not action.revision.active)
        self.documents[name] = made
        editing.set_active(self.engine, action.uid, active=made[0]["active"], author=author())
        action.change(made[1](action.uid), now)

    def later(self, now: datetime) -> datetime:
        """Return a later instant before the end: no daemon ticks until then."""
        then = now + self.random.choice((2, 400, 3_000, 10_000)) * MINUTE
        return then if then < self.end else now

    def delete(self, name: str, action: Action, now: datetime) -> None:
        """Delete the action."""
        deleted = deletion.delete(self.engine, action.uid, author())
        action.delete(now)
        ended = list(action.outcomes.values())
        assert deleted.cancelled == ended.count("cancelled")

    def outages(self) -> list[tuple[datetime, datetime]]:
        """Return spans in which no daemon ticks, many with an end at the edge of a look-back."""
        longer = [timedelta(minutes=m) for m in (2, 90, 600, 9_000)]
        spans = []
        for action in self.lived.values():
            rule = action.revision.rules[0]
            lengths = [*(rule.look_back + n * MINUTE for n in EDGE), *longer]
            due = sorted(at for at in rule.occurrences if at < self.end)
            count = 4 + (self.end - YEAR).days // 45
            starts = self.random.sample(due, k=min(count, len(due)))
            spans += [(at - MINUTE, at + self.random.choice(lengths)) for at in starts]
        return spans

    def moments(self, count: int) -> list[datetime]:
        """Return so many instants before the end, about half of them full minutes."""
        found = set()
        minutes = (self.end - YEAR) // MINUTE - 1_440
        for _ in range(count):
            at = YEAR + timedelta(minutes=self.random.randrange(1, minutes))
            found.add(at + timedelta(seconds=self.random.choice((0, 0, 17, 59))))
        return sorted(found)

    def other(self, name: str) -> Made:
        """Return a random document that is not the action's present one."""
        made = self.make(name)
        while {**made[0], "active": True} == {**self.documents[name][0], "active": True}:
            made = self.make(name)
        return made

    def make(self, name: str) -> Made:
        """Return a random document, and what the oracle makes of it."""
        choose = self.random.choice
        policy: dict[str, Any] = {
            "catch_up": choose(("latest", "latest", "all")),
            "overlap": choose(("skip", "queue", "allow")),
            "look_back": choose(sorted(LOOK_BACKS)),
        }
        look_back = timedelta(seconds=LOOK_BACKS[policy["look_back"]])
        when, occurrences = choose((self.crons, self.crons, self.interval, self.due_dates))()
        if self.random.random() < 0.2:
            starts_at, ends_at = self.bounds()
            policy |= {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat()}
            whole = occurrences

            def occurrences(uid: UUID) -> list[frozenset[datetime]]:
                return [oracle.bounded(one, starts_at, ends_at) for one in whole(uid)]

        def build(uid: UUID) -> Revision:
            rules = tuple(Rule(one, look_back) for one in occurrences(uid))
            return Revision(rules, policy["catch_up"], policy["overlap"])

        document = make_document(name=name, when=when, policy=policy)
        return document, build

    def crons(self) -> tuple[Any, Callable[[UUID], list[frozenset[datetime]]]]:
        """Return one cron rule, or a list of two."""
        pairs = [
            (self.random.choice(RULES), self.random.choice(ZONES))
            for _ in range(self.random.choice((1, 1, 2)))
        ]
        when = [{"cron_rule": rule, "timezone": zone} for rule, zone in pairs]
        found = [oracle.cron(*pair, self.known_until) for pair in pairs]
        return when if len(when) > 1 else when[0], lambda _: found

    def interval(self) -> tuple[Any, Callable[[UUID], list[frozenset[datetime]]]]:
        """Return an interval on a separate grid, with or without jitter."""
        every = timedelta(minutes=self.random.choice((360, 1_441, 2_000, 10_080)))
        jitter = self.random.choice((timedelta(0), timedelta(minutes=50)))
        starting_at = YEAR + timedelta(hours=self.random.randrange(-500, 2_000))
        when = {
            "every": int(every.total_seconds()),
            "starting_at": starting_at.isoformat(),
            "jitter": f"PT{int(jitter.total_seconds())}S",
        }
        return when, lambda uid: [oracle.interval(uid, starting_at, every, jitter)]

    def due_dates(self) -> tuple[Any, Callable[[UUID], list[frozenset[datetime]]]]:
        """Return some due dates to come."""
        dates = [at for at in self.moments(12) if at > self.clock.now] or [AFTER - MINUTE]
        when = [{"due_date": at.isoformat()} for at in dates]
        return when, lambda _: [frozenset({at}) for at in dates]

    def bounds(self) -> tuple[datetime, datetime]:
        """Return the two ends of a span of the year."""
        first, second = self.moments(2)
        return first, second


def written(at: datetime) -> str:
    """Return an instant as reports and explanations write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _switched(made: Made, *, active: bool) -> Made:
    """Return a document, on or off."""
    document, revision = made
    return {**document, "active": active}, lambda uid: replace(revision(uid), active=active)


def _always(revision: Revision) -> Callable[[UUID], Revision]:
    return lambda _: revision
