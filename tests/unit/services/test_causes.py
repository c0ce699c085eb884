"""What follows from what, and what of it is told: once when it lasts, once when it is over."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from models.worker_kinds import HTTP, OURS
from services.verdict import Finding, Kind, Severity, State, verdict_of
from services.verdict.alarms import broken, is_due, is_over
from tests.ticks import MINUTE

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
QUICK, JOBS, ORDERS = OURS.listed("quick"), HTTP.listed("scrape"), "orders"
BROKEN, ATTENTION = Severity.BROKEN, Severity.ATTENTION


def finding(
    kind: Kind = Kind.NO_DAEMON,
    severity: Severity = BROKEN,
    queue: str | None = None,
    minute: int | None = None,
    **more: Any,
) -> Finding:
    known = {"text": f"{kind} is so", "remedy": f"mend {kind}", "app": "shop", **more}
    since = None if minute is None else NOON + minute * MINUTE
    return Finding(kind=kind, severity=severity, queue=queue, since=since, **known)


DISK = finding(Kind.DISK)
READ_ONLY = finding(Kind.READ_ONLY, minute=0)
CLOCK = finding(Kind.CLOCK)
CLOCK_OFF = finding(Kind.CLOCK, ATTENTION)
DISK_LOW = finding(Kind.DISK, ATTENTION)
NO_DAEMON = finding()
BROKER = finding(Kind.BROKER_DOWN)
APPLICATION_BROKER = finding(Kind.APPLICATION_BROKER_DOWN)
NO_WORKER = finding(Kind.NO_WORKER, queue=QUICK)
NO_ORDERS = finding(Kind.NO_WORKER, queue=ORDERS)
BEHIND = finding(Kind.QUEUE_BEHIND, ATTENTION, QUICK)
LOST = finding(Kind.WORKERS_LOST, ATTENTION)
OVERDUE = finding(Kind.ACTION_OVERDUE, ATTENTION, QUICK)
OVERDUE_JOB = finding(Kind.ACTION_OVERDUE, ATTENTION, JOBS)
OVERDUE_ORDERS = finding(Kind.ACTION_OVERDUE, ATTENTION, ORDERS)
FAILED = finding(Kind.ACTION_FAILED, ATTENTION)
ALL_PAUSED = finding(Kind.PAUSED, ATTENTION)
QUEUE_PAUSED = finding(Kind.PAUSED, ATTENTION, QUICK)
APP_PAUSED = finding(Kind.PAUSED, ATTENTION, app="other")


@pytest.mark.parametrize(
    ("findings", "top"),
    [
        pytest.param(
            [OVERDUE, BEHIND, NO_WORKER, NO_DAEMON, DISK], ["disk"], id="a full disk explains all"
        ),
        pytest.param([NO_DAEMON, READ_ONLY, DISK], ["disk"], id="a cause has a cause"),
        pytest.param([NO_DAEMON, READ_ONLY], ["database_read_only"], id="a database to read"),
        pytest.param([NO_DAEMON, CLOCK], ["clock"], id="a clock that is ahead"),
        pytest.param([NO_DAEMON, CLOCK_OFF], ["no_daemon", "clock"], id="a clock a bit off"),
        pytest.param([NO_DAEMON, DISK_LOW], ["no_daemon", "disk"], id="a disk with some room"),
        pytest.param([OVERDUE, BEHIND, BROKER], ["broker_down"], id="a broker and its queues"),
        pytest.param([OVERDUE_JOB, BROKER], ["broker_down", "action_overdue"], id="work by HTTP"),
        pytest.param([NO_WORKER, BROKER], ["no_worker", "broker_down"], id="both must be mended"),
        pytest.param(
            [OVERDUE_ORDERS, OVERDUE, APPLICATION_BROKER],
            ["application_broker_down", "action_overdue"],
            id="the application's broker",
        ),
        pytest.param([OVERDUE, ALL_PAUSED], ["paused"], id="everything is paused"),
        pytest.param([OVERDUE, QUEUE_PAUSED], ["paused"], id="its queue is paused"),
        pytest.param(
            [OVERDUE_JOB, QUEUE_PAUSED], ["paused", "action_overdue"], id="another queue is"
        ),
        pytest.param([OVERDUE, APP_PAUSED], ["paused", "action_overdue"], id="another app is"),
        pytest.param(
            [OVERDUE, OVERDUE_JOB, NO_WORKER],
            ["no_worker", "action_overdue"],
            id="no worker of its queue",
        ),
        pytest.param([LOST, NO_ORDERS], ["no_worker"], id="followers that are gone"),
        pytest.param([LOST, NO_WORKER], ["no_worker", "workers_lost"], id="a queue of ours"),
        pytest.param([OVERDUE, BEHIND], ["queue_behind"], id="its queue is behind"),
        pytest.param([OVERDUE, NO_DAEMON], ["no_daemon"], id="what no tick sends"),
        pytest.param([FAILED, DISK], ["disk", "action_failed"], id="a failure has its own"),
    ],
)
def test_a_cause_folds_what_follows_from_it(findings: list[Finding], top: list[str]) -> None:
    verdict = verdict_of(findings, has_one_broker=False)

    shown = [one.kind for one in verdict.findings]
    shown += [one.kind for found in verdict.findings for one in found.consequences]
    assert [one.kind for one in verdict.findings] == top
    assert sum(verdict.counts.values()) == len(findings)
    assert set(shown) == {one.kind for one in findings}


def test_a_shared_broker_explains_what_waits_for_the_application_too() -> None:
    apart = verdict_of([BROKER, OVERDUE_ORDERS], has_one_broker=False)
    shared = verdict_of([BROKER, OVERDUE_ORDERS], has_one_broker=True)

    assert [len(one.findings) for one in (apart, shared)] == [2, 1]


def test_many_actions_are_one_consequence() -> None:
    verdict = verdict_of([OVERDUE] * 39 + [BEHIND, BROKER])

    (found,) = verdict.findings
    assert [(one.count, one.text) for one in found.consequences] == [
        (39, "39 actions are overdue"),
        (1, "queue_behind is so"),
    ]


def test_what_was_missed_before_a_cause_began_has_another() -> None:
    before, after = (finding(Kind.ACTION_MISSED, ATTENTION, minute=one) for one in (-1, 1))

    verdict = verdict_of([before, after, READ_ONLY])

    assert [one.kind for one in verdict.findings] == ["database_read_only", "action_missed"]
    assert [one.kind for one in verdict.findings[0].consequences] == ["action_missed"]


def test_a_cause_is_as_bad_as_what_follows_from_it() -> None:
    noted = finding(Kind.PAUSED, Severity.NOTE)

    verdict = verdict_of([noted, finding(Kind.QUEUE_BEHIND, queue=QUICK), FAILED])

    assert verdict.state is State.BROKEN
    assert verdict.sentence == "Paused is so."


@dataclass
class Row:
    id: UUID
    kind: str
    remedy: str
    began_at: datetime
    told_at: datetime | None = None


def look(
    rows: dict[UUID, Row], findings: list[Finding], now: datetime, machine: str = "a"
) -> tuple[list[str], list[str]]:
    """Change the rows as a look does; return the kinds that begin and end to be told."""
    found, causes = (broken(its, machine) for its in (findings, verdict_of(findings).findings))
    for id, (one, since) in found.items():
        rows.setdefault(id, Row(id, one.kind, one.remedy, min(since or now, now)))
    due = [row for row in rows.values() if is_due(row, causes, now, 3 * MINUTE)]
    over = [row for row in rows.values() if is_over(row, found, machine)]
    for row in due:
        row.told_at = now
    for row in over:
        del rows[row.id]
    return [row.kind for row in due], [row.kind for row in over if row.told_at]


def story(*looks: tuple[int, list[Finding]]) -> list[tuple[int, str, str]]:
    """Return at which minute which kinds begin and end to be told, by looks at minutes."""
    rows: dict[UUID, Row] = {}
    told = []
    for minute, findings in looks:
        begun, over = look(rows, findings, NOON + minute * MINUTE)
        told += [(minute, "begun", kind) for kind in begun]
        told += [(minute, "over", kind) for kind in over]
    return told


def test_it_is_told_once_when_it_has_lasted_and_once_when_it_ends() -> None:
    looks = [(minute, [NO_DAEMON]) for minute in range(8)]

    assert story(*looks, (8, []), (9, [])) == [(4, "begun", "no_daemon"), (8, "over", "no_daemon")]


def test_what_is_over_before_it_has_lasted_is_not_told() -> None:
    assert story((0, [NO_DAEMON]), (2, [NO_DAEMON]), (3, []), (4, [NO_DAEMON]), (5, [])) == []


def test_it_lasts_since_the_finding_says() -> None:
    assert story((0, [finding(minute=-4)])) == [(0, "begun", "no_daemon")]


def test_only_what_is_broken_is_told() -> None:
    its = [finding(severity=one) for one in (Severity.ATTENTION, Severity.NOTE)]

    assert story((0, its), (9, its)) == []


def test_a_text_that_counts_further_is_the_same_finding() -> None:
    first, second = (finding(Kind.NO_WORKER, text=f"{count} wait") for count in (3, 4))

    assert story((0, [first]), (4, [second]), (8, [first])) == [(4, "begun", "no_worker")]


def test_each_quarantined_action_is_told() -> None:
    one, other = (finding(Kind.QUARANTINED, uid=UUID(int=number)) for number in (1, 2))

    told = story((0, [one, other]), (4, [one, other]), (5, [other]))

    assert told == [
        (4, "begun", "quarantined"),
        (4, "begun", "quarantined"),
        (5, "over", "quarantined"),
    ]


@pytest.mark.parametrize(
    ("kind", "is_over"),
    [(Kind.BROKER_DOWN, False), (Kind.OLDER_RELEASE, True), (Kind.QUEUE_UNREAD, True)],
)
def test_what_only_daemons_see_is_not_over_because_none_looks(kind: Kind, is_over: bool) -> None:
    """A broker is well again once a tick says so."""
    seen = [finding(kind)]

    told = story((0, seen), (4, seen), (5, [NO_DAEMON]), (6, seen), (7, []))

    assert told == [(4, "begun", kind), *([(7, "over", kind)] if is_over else [])]


def test_a_disk_is_told_of_and_ended_by_its_own_machine() -> None:
    rows: dict[UUID, Row] = {}
    long_ago = [finding(Kind.DISK, minute=-4)]

    told = look(rows, long_ago, NOON)
    elsewhere = look(rows, [], NOON, "b")
    at_home = look(rows, [], NOON)

    assert (told, elsewhere, at_home) == ((["disk"], []), ([], []), ([], ["disk"]))


def test_what_follows_from_something_else_is_told_by_its_cause_alone() -> None:
    both = [DISK, NO_DAEMON]

    told = story((0, both), (4, both), (8, [NO_DAEMON]), (9, []))

    assert told == [
        (4, "begun", "disk"),
        (8, "begun", "no_daemon"),
        (8, "over", "disk"),
        (9, "over", "no_daemon"),
    ]


def test_what_was_told_is_not_over_once_its_cause_is_found() -> None:
    only = [NO_DAEMON]

    told = story((0, only), (4, only), (5, [NO_DAEMON, DISK]), (6, only), (7, []))

    assert told == [(4, "begun", "no_daemon"), (7, "over", "no_daemon")]
