from datetime import UTC, datetime, timedelta

import pytest

from models.worker_kinds import HTTP, OURS
from services.verdict import Finding, Kind, Severity, State, verdict_of

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
QUICK, JOBS, ORDERS = OURS.listed("quick"), HTTP.listed("scrape"), "orders"
BROKEN, ATTENTION = Severity.BROKEN, Severity.ATTENTION


def finding(
    kind: Kind, severity: Severity = ATTENTION, queue: str | None = None, minute: int | None = None
) -> Finding:
    since = None if minute is None else NOON + timedelta(minutes=minute)
    return Finding(
        kind=kind, severity=severity, text=f"{kind} is so", remedy="do it", queue=queue,
        since=since, app="shop",
    )  # fmt: skip


DISK = finding(Kind.DISK, BROKEN)
READ_ONLY = finding(Kind.READ_ONLY, BROKEN, minute=0)
CLOCK = finding(Kind.CLOCK, BROKEN)
NO_DAEMON = finding(Kind.NO_DAEMON, BROKEN)
BROKER = finding(Kind.BROKER_DOWN, BROKEN)
APPLICATION_BROKER = finding(Kind.APPLICATION_BROKER_DOWN, BROKEN)
NO_WORKER = finding(Kind.NO_WORKER, BROKEN, QUICK)
NO_ORDERS = finding(Kind.NO_WORKER, BROKEN, ORDERS)
BEHIND = finding(Kind.QUEUE_BEHIND, queue=QUICK)
LOST = finding(Kind.WORKERS_LOST)
OVERDUE = finding(Kind.ACTION_OVERDUE, queue=QUICK)
OVERDUE_JOB = finding(Kind.ACTION_OVERDUE, queue=JOBS)
OVERDUE_ORDERS = finding(Kind.ACTION_OVERDUE, queue=ORDERS)
FAILED = finding(Kind.ACTION_FAILED)
ALL_PAUSED = finding(Kind.PAUSED)
QUEUE_PAUSED = finding(Kind.PAUSED, queue=QUICK)
APP_PAUSED = finding(Kind.PAUSED).model_copy(update={"app": "other"})


@pytest.mark.parametrize(
    ("findings", "top"),
    [
        pytest.param(
            [OVERDUE, BEHIND, NO_WORKER, NO_DAEMON, DISK], ["disk"], id="a full disk explains all"
        ),
        pytest.param([NO_DAEMON, READ_ONLY, DISK], ["disk"], id="a cause has a cause"),
        pytest.param([NO_DAEMON, READ_ONLY], ["database_read_only"], id="a database to read"),
        pytest.param([NO_DAEMON, CLOCK], ["clock"], id="a clock that is ahead"),
        pytest.param(
            [NO_DAEMON, finding(Kind.CLOCK)], ["no_daemon", "clock"], id="a clock a bit off"
        ),
        pytest.param(
            [NO_DAEMON, finding(Kind.DISK)], ["no_daemon", "disk"], id="a disk with some room"
        ),
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
    before, after = (finding(Kind.ACTION_MISSED, minute=one) for one in (-1, 1))

    verdict = verdict_of([before, after, READ_ONLY])

    assert [one.kind for one in verdict.findings] == ["database_read_only", "action_missed"]
    assert [one.kind for one in verdict.findings[0].consequences] == ["action_missed"]


def test_a_cause_is_as_bad_as_what_follows_from_it() -> None:
    noted = finding(Kind.PAUSED, Severity.NOTE)

    verdict = verdict_of([noted, finding(Kind.QUEUE_BEHIND, BROKEN, QUICK), FAILED])

    assert verdict.state is State.BROKEN
    assert verdict.sentence == "Paused is so."
