from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from models.store.celery_queues import Watched
from models.store.installation_facts import Known, Waiting
from models.store.pauses import Pause, PauseKind
from models.store.workers import Readers
from models.worker_kinds import HTTP, OURS
from runtime.config import load_settings
from services.daemon import Daemon
from services.doctor.disk import Disk
from services.verdict import Finding, Kind, Severity, State, verdict_of
from services.verdict.alarms import broken
from services.verdict.facts import Facts
from services.verdict.installation import findings_of
from tests.ticks import MINUTE

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
DAEMON = Daemon(
    name="scheduler:1", last_tick_at=NOW, is_ticking=True, tick_s=0.1, stopped_at=None,
    clock_skew_s=0.0, report={},
)  # fmt: skip
WORKER = {
    "name": "quick@here:1", "queues": "quick", "follows": None, "skew_s": 0.0, "seen_at": NOW,
    "stopped_at": None, "step_failures": None,
}  # fmt: skip
FOLLOWER = {**WORKER, "name": "celery@here", "queues": "celery", "follows": ["shop.close_day"]}
WELL = Facts(
    known=Known(NOW, NOW, (), 0, wants_mail=False, set_back=None, went_back=None),
    daemon=DAEMON,
    ticks=(),
    readers=Readers((WORKER, FOLLOWER), ()),
    waiting=(),
)
FREE = Disk(taken={}, free=2**40, size=2**41, is_nearly_full=False)
PAUSE = Pause(PauseKind.ALL, "", None, "ann", None, NOW, NOW + MINUTE, None, None)
WAITS = Waiting("minutebook.quick", is_known=True, count=3, since=NOW - MINUTE)


def known(**changes: Any) -> Facts:
    return replace(WELL, known=replace(WELL.known, **changes))


def ticking(report: dict[str, Any], **changes: Any) -> Daemon:
    return DAEMON.model_copy(update={"report": report, **changes})


def found(facts: Facts, disk: Disk | None = FREE, database_url: str = "") -> list[Finding]:
    environ = {"SCHED_DATABASE_URL": database_url} if database_url else {}
    return [*findings_of(facts, load_settings(Path("/nowhere"), environ), disk)]


TICKED = {"finished_at": NOW, "report": {}}
BROKEN, ATTENTION = Severity.BROKEN, Severity.ATTENTION
# What is known, and the finding that it makes.
FACTS: dict[str, tuple[Facts, Kind, Severity, str]] = {
    "never_ticked": (
        replace(WELL, daemon=None), Kind.NO_DAEMON, BROKEN, "no daemon has ticked yet",
    ),
    "silent": (
        replace(WELL, daemon=ticking({}, is_ticking=False)), Kind.NO_DAEMON, BROKEN,
        "no daemon ticks: the last tick was by scheduler:1",
    ),
    "stopped": (
        replace(WELL, daemon=ticking({}, is_ticking=False, stopped_at=NOW)), Kind.NO_DAEMON, BROKEN,
        "no daemon ticks: scheduler:1 was stopped",
    ),
    "broker_down": (
        replace(WELL, daemon=ticking({"broker_error": "refused"})), Kind.BROKER_DOWN, BROKEN,
        "refused",
    ),
    "older_release": (
        replace(WELL, daemon=ticking({"older_release": "tz 2026a"})), Kind.OLDER_RELEASE, BROKEN,
        "daemon scheduler:1 decides nothing: tz 2026a",
    ),
    "older_release_beside_a_newer_one": (
        replace(WELL, daemon=ticking({"older_release": "tz 2026a"}), ticks=(TICKED,)),
        Kind.OLDER_RELEASE, ATTENTION, "daemon scheduler:1 decides nothing: tz 2026a",
    ),
    "no_worker": (
        replace(WELL, waiting=(replace(WAITS, queue="minutebook.heavy"),)), Kind.NO_WORKER, BROKEN,
        "no live worker reads queue heavy; 3 runs wait",
    ),
    "no_worker_of_an_application": (
        replace(WELL, waiting=(replace(WAITS, queue="orders", count=1),)), Kind.NO_WORKER, BROKEN,
        "no live worker reads queue orders; 1 run waits",
    ),
    "followers_lost": (
        replace(WELL, readers=Readers((WORKER,), (FOLLOWER,))), Kind.WORKERS_LOST, ATTENTION,
        'no live worker follows "shop.close_day" any more',
    ),
    "queue_behind": (
        replace(WELL, waiting=(replace(WAITS, since=NOW - 20 * MINUTE),)),
        Kind.QUEUE_BEHIND, ATTENTION,
        "queue quick is behind: 3 runs to start, the first for over 15 min",
    ),
    "queue_unread": (
        known(celery_queues={"reports": Watched(2156, 0, 0, NOW - MINUTE)}),
        Kind.QUEUE_UNREAD, BROKEN,
        "no worker reads queue reports of your application; 2,156 tasks wait",
    ),
    "queue_that_only_grows": (
        known(celery_queues={"reports": Watched(1, None, 0, NOW - 16 * MINUTE)}),
        Kind.QUEUE_UNREAD, ATTENTION,
        "no worker seems to read queue reports of your application; 1 task waits",
    ),
    "went back": (
        known(went_back=(NOW - MINUTE, "run 7 is not recorded any more")),
        Kind.DATABASE_WENT_BACK, ATTENTION,
        "the database went back, and lost what was committed: run 7 is not recorded any more",
    ),
    "clock_ahead": (
        known(last_now=NOW + 60 * MINUTE), Kind.CLOCK, BROKEN,
        "the last tick's now lies 1 h ahead of the database's clock",
    ),
    "clock_was_ahead": (
        known(set_back=(NOW - MINUTE, 60 * MINUTE)), Kind.CLOCK, ATTENTION,
        "the database's clock was 1 h ahead until 2027-01-04T11:59:00Z",
    ),
    "skewed_worker": (
        replace(WELL, readers=Readers(({**WORKER, "skew_s": -3600.0},), ())), Kind.CLOCK, ATTENTION,
        "the machine of worker quick@here:1 is -3600.0 s off the database",
    ),
    "locked": (
        replace(WELL, daemon=ticking({"locked": "pid 7"})), Kind.LOCKED, ATTENTION,
        "the last tick waited for rows that another session keeps locked: pid 7",
    ),
    "step_failed": (
        replace(WELL, readers=Readers(({**WORKER, "step_failures": {"shop": "no"}},), ())),
        Kind.STEP_FAILED, BROKEN, "worker quick@here:1 could not import shop: no",
    ),
    "notice_refused": (
        known(notices_failed=2), Kind.NOTICE_REFUSED, ATTENTION,
        "2 notices of the last 24 hours could not be delivered",
    ),
    "paused": (
        replace(WELL, paused=[(PAUSE, 4)]), Kind.PAUSED, ATTENTION,
        "everything is paused until 2027-01-04T12:01:00Z; 4 runs wait",
    ),
    "actions_due": (
        replace(WELL, daemon=None, due=1), Kind.NO_DAEMON, BROKEN,
        "no daemon has ticked yet; 1 action is due",
    ),
    "read_only": (
        known(read_only="setting"), Kind.READ_ONLY, BROKEN,
        "the database takes no changes: default_transaction_read_only is on",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "kind", "severity", "text"), FACTS.values(), ids=FACTS)
def test_each_fact_makes_its_finding(
    facts: Facts, kind: Kind, severity: Severity, text: str
) -> None:
    (made,) = found(facts)

    assert (made.kind, made.severity, made.text) == (kind, severity, text)
    assert made.remedy


def test_a_broker_is_down_since_the_first_tick_that_could_not_reach_it() -> None:
    down = {"broker_error": "refused"}
    reports: tuple[dict[str, str], ...] = (down, {}, down, down)
    ticks = [
        {"finished_at": NOW - (3 - n) * MINUTE, "report": report}
        for n, report in enumerate(reports)
    ]

    (made,) = found(replace(WELL, daemon=ticking(down), ticks=ticks))

    assert made.since == NOW - MINUTE


@pytest.mark.parametrize(
    ("queue", "its", "is_ticking"),
    [
        pytest.param("celery", Watched(9, 0, 0, NOW - MINUTE), True, id="a_follower_reads_it"),
        pytest.param("reports", Watched(9, 1), True, id="a_worker_reads_it"),
        pytest.param("reports", Watched(9, None, 9), True, id="it_does_not_grow"),
        pytest.param("reports", Watched(9, None, 0, NOW - 14 * MINUTE), True, id="it_just_grows"),
        pytest.param("reports", Watched(9, 0, 0, NOW - MINUTE), False, id="no_tick_looks"),
    ],
)
def test_a_queue_of_the_application_that_may_be_read_is_well(
    queue: str, its: Watched, is_ticking: bool
) -> None:
    facts = known(celery_queues={queue: its})
    facts = replace(facts, daemon=ticking({}, is_ticking=is_ticking))

    assert Kind.QUEUE_UNREAD not in [one.kind for one in found(facts)]
    # Nor are consumers missed of one that does not follow.
    assert found(replace(WELL, waiting=(replace(WAITS, queue="orders", is_known=False),))) == []


@pytest.mark.parametrize(
    ("database_url", "severity"),
    [("", Severity.NOTE), ("postgresql://u:p@h/d", Severity.ATTENTION)],
)
def test_mail_that_goes_to_a_folder_is_a_note_on_a_laptop(
    database_url: str, severity: Severity
) -> None:
    (made,) = found(known(wants_mail=True), database_url=database_url)

    assert (made.kind, made.severity) == (Kind.MAIL_UNSET, severity)


@pytest.mark.parametrize(
    ("free", "severity"), [(2**32, Severity.ATTENTION), (2**20, Severity.BROKEN)]
)
def test_a_disk_that_is_nearly_full_is_found(free: int, severity: Severity) -> None:
    (made,) = found(WELL, FREE.model_copy(update={"free": free, "is_nearly_full": True}))

    assert (made.kind, made.severity) == (Kind.DISK, severity)


def test_a_small_app_hears_nothing_of_the_machine_and_of_others() -> None:
    full = FREE.model_copy(update={"free": 0, "is_nearly_full": True})
    facts = known(notices_failed=2, went_back=(NOW, "run 7 of another app is absent"))
    fast = {**WORKER, "skew_s": 9.0}
    facts = replace(facts, readers=Readers((fast,), (FOLLOWER,)))

    assert (len(found(facts, full)), found(facts, None)) == (5, [])


@pytest.mark.parametrize("key", ["broker_error", "application_broker_error"])
def test_a_small_app_hears_that_a_broker_is_down_and_not_where_it_is(key: str) -> None:
    facts = replace(WELL, daemon=ticking({key: "Redis at 10.0.0.5:6379 refuses connections"}))

    (made,) = found(facts, None)

    assert "10.0.0.5" not in made.text
    assert made.severity is Severity.BROKEN


@pytest.mark.parametrize(
    ("queue", "key", "text"),
    [
        (OURS.listed("quick"), "broker_error", "refused; 3 runs wait"),
        (HTTP.listed("scrape"), "broker_error", "refused"),
        ("orders", "application_broker_error", "refused; 3 runs wait"),
        (HTTP.listed("scrape"), "application_broker_error", "refused"),
    ],
)
def test_only_what_a_broker_carries_waits_for_it(queue: str, key: str, text: str) -> None:
    waits = replace(WAITS, queue=queue, is_known=False)

    (made,) = found(replace(WELL, daemon=ticking({key: "refused"}), waiting=(waits,)))

    assert made.text == text


def test_each_module_that_is_not_imported_is_another_finding() -> None:
    its = {**WORKER, "step_failures": {"shop.one": "no", "shop.two": "no"}}

    made = found(replace(WELL, readers=Readers((its,), ())))

    assert len(broken(made, "here")) == len(made) == 2


def finding(kind: Kind, severity: Severity, action: str | None = None) -> Finding:
    return Finding(kind=kind, severity=severity, text="it is so", remedy="do it", action=action)


FAILED = finding(Kind.ACTION_FAILED, Severity.ATTENTION, "nightly")
NOTED = finding(Kind.MAIL_UNSET, Severity.NOTE)
DOWN = finding(Kind.BROKER_DOWN, Severity.BROKEN)
QUIET = finding(Kind.PAUSED, Severity.ATTENTION)


@pytest.mark.parametrize(
    ("findings", "state", "sentence", "advice"),
    [
        ([], State.OK, "All is well.", ""),
        ([NOTED], State.OK, "All is well.", ""),
        ([FAILED, NOTED, DOWN], State.BROKEN, "It is so.", "Do it."),
        ([FAILED, QUIET], State.ATTENTION, "It is so.", "Do it."),
        ([FAILED], State.ATTENTION, "1 action needs attention.", 'Failed: "nightly".'),
        (
            [finding(Kind.ACTION_MISSED, Severity.ATTENTION, f"a{n}") for n in range(7)],
            State.ATTENTION,
            "7 actions need attention.",
            'Missed: "a0", "a1", "a2", "a3", "a4" and 2 more.',
        ),
    ],
)
def test_the_verdict_is_that_of_the_worst(
    findings: list[Finding], state: State, sentence: str, advice: str
) -> None:
    verdict = verdict_of(findings)

    assert (verdict.state, verdict.sentence, verdict.advice) == (state, sentence, advice)


def test_all_unhealthy_actions_are_counted_and_a_hundred_listed() -> None:
    verdict = verdict_of([FAILED] * 250 + [DOWN])

    assert verdict.counts == {"action_failed": 250, "broker_down": 1}
    assert verdict.unhealthy == 250
    assert len(verdict.findings) == 101
    assert verdict.findings[0] == DOWN
