from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest

from services.verdict import verdict_of
from services.verdict.alarms import broken, is_due, is_over
from services.verdict.finding import Finding, Kind, Severity
from tests.ticks import MINUTE

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
AFTER = 3 * MINUTE


def finding(
    kind: Kind = Kind.NO_DAEMON,
    severity: Severity = Severity.BROKEN,
    since: datetime | None = None,
    text: str = "it is broken",
    uid: UUID | None = None,
) -> Finding:
    return Finding(
        kind=kind, severity=severity, since=since, text=text, remedy=f"mend {kind}", uid=uid
    )


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
    due = [row for row in rows.values() if is_due(row, causes, now, AFTER)]
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
    looks = [(minute, [finding()]) for minute in range(8)]

    assert story(*looks, (8, []), (9, [])) == [(4, "begun", "no_daemon"), (8, "over", "no_daemon")]


def test_what_is_over_before_it_has_lasted_is_not_told() -> None:
    assert story((0, [finding()]), (2, [finding()]), (3, []), (4, [finding()]), (5, [])) == []


def test_it_lasts_since_the_finding_says() -> None:
    assert story((0, [finding(since=NOON - 4 * MINUTE)])) == [(0, "begun", "no_daemon")]


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
    seen, daemon = finding(kind), finding(Kind.NO_DAEMON)

    told = story((0, [seen]), (4, [seen]), (5, [daemon]), (6, [seen]), (7, []))

    assert told == [(4, "begun", kind), *([(7, "over", kind)] if is_over else [])]


def test_a_disk_is_told_of_and_ended_by_its_own_machine() -> None:
    rows: dict[UUID, Row] = {}
    long_ago = [finding(Kind.DISK, since=NOON - 4 * MINUTE)]

    told = look(rows, long_ago, NOON)
    elsewhere = look(rows, [], NOON, "b")
    at_home = look(rows, [], NOON)

    assert (told, elsewhere, at_home) == ((["disk"], []), ([], []), ([], ["disk"]))


def test_what_follows_from_something_else_is_told_by_its_cause_alone() -> None:
    disk, daemon = finding(Kind.DISK), finding(Kind.NO_DAEMON)

    both = [disk, daemon]
    told = story((0, both), (4, both), (8, [daemon]), (9, []))

    assert told == [
        (4, "begun", "disk"),
        (8, "begun", "no_daemon"),
        (8, "over", "disk"),
        (9, "over", "no_daemon"),
    ]


def test_what_was_told_is_not_over_once_its_cause_is_found() -> None:
    disk, daemon = finding(Kind.DISK), finding(Kind.NO_DAEMON)

    told = story((0, [daemon]), (4, [daemon]), (5, [daemon, disk]), (6, [daemon]), (7, []))

    assert told == [(4, "begun", "no_daemon"), (7, "over", "no_daemon")]
