"""What is broken is told once, when it has lasted, and once more when it is over."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from views.verdict.alarms import Alarm, Alarms, alarms_in, changed
from views.verdict.finding import Finding, Kind, Severity

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
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


def story(*looks: tuple[int, list[Finding]], machine: str = "a") -> list[tuple[int, str, str]]:
    """Return at which minute which kinds begin and end to be told, by looks at minutes."""
    alarms: Alarms = {}
    told = []
    for minute, findings in looks:
        change = changed(alarms, findings, machine, NOON + minute * MINUTE, AFTER)
        told += [(minute, "begun", one.kind) for one in change.begun]
        told += [(minute, "over", one.kind) for one in change.over]
        alarms = alarms_in({key: one.as_json() for key, one in change.alarms.items()})
        assert alarms == change.alarms
    return told


def test_it_is_told_once_when_it_has_lasted_and_once_when_it_ends() -> None:
    looks = [(minute, [finding()]) for minute in range(8)]

    assert story(*looks, (8, []), (9, [])) == [(4, "begun", "no_daemon"), (8, "over", "no_daemon")]


def test_what_is_over_before_it_has_lasted_is_not_told() -> None:
    assert story((0, [finding()]), (2, [finding()]), (3, []), (4, [finding()]), (5, [])) == []


def test_it_lasts_since_the_finding_says() -> None:
    assert story((0, [finding(since=NOON - 4 * MINUTE)])) == [(0, "begun", "no_daemon")]


def test_an_instant_ahead_of_the_clock_counts_from_now() -> None:
    ahead = finding(since=NOON + timedelta(days=365))

    assert story((0, [ahead]), (4, [ahead])) == [(4, "begun", "no_daemon")]


def test_only_what_is_broken_is_told() -> None:
    its = [finding(severity=one) for one in (Severity.ATTENTION, Severity.NOTE)]

    assert story((0, its), (9, its)) == []


def test_a_text_that_counts_further_is_the_same_finding() -> None:
    first, second = (finding(Kind.NO_WORKER, text=f"{count} wait") for count in (3, 4))

    assert story((0, [first]), (4, [second]), (8, [first])) == [(4, "begun", "no_worker")]


def test_each_quarantined_action_is_told() -> None:
    one, other = (finding(Kind.SET_ASIDE, uid=UUID(int=number)) for number in (1, 2))

    told = story((0, [one, other]), (4, [one, other]), (5, [other]))

    assert told == [(4, "begun", "set_aside"), (4, "begun", "set_aside"), (5, "over", "set_aside")]


@pytest.mark.parametrize("kind", [Kind.BROKER_DOWN, Kind.OLDER_RELEASE])
def test_what_only_daemons_see_is_not_over_because_none_looks(kind: Kind) -> None:
    seen, daemon = finding(kind), finding(Kind.NO_DAEMON)

    told = story((0, [seen]), (4, [seen]), (5, [daemon]), (6, [seen]), (7, []))

    assert told == [(4, "begun", kind), (7, "over", kind)]


def test_a_disk_is_told_of_and_ended_by_its_own_machine() -> None:
    disk = [finding(Kind.DISK)]
    full = changed({}, disk, "a", NOON, -MINUTE).alarms

    elsewhere = changed(full, [], "b", NOON, AFTER)
    at_home = changed(elsewhere.alarms, [], "a", NOON, AFTER)

    assert (elsewhere.alarms, elsewhere.over) == (full, ())
    assert [one.kind for one in at_home.over] == ["disk"]


def test_what_cannot_be_read_is_left_out() -> None:
    alarm = Alarm("disk", NOON, "full", "free some")
    stored = {"a": alarm.as_json(), "b": 3, "c": {"since": "x"}, "d": {"since": NOON.isoformat()}}

    assert alarms_in(stored) == {"a": alarm}
