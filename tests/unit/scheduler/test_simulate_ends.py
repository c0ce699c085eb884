"""A simulation follows success: what is sent makes its dependants due."""

from datetime import UTC, datetime, timedelta
from typing import Any

from models.action.document import parse_action, plan_of
from models.parsing import ParseContext
from scheduler.simulate import Simulated, Timetable, simulate
from tests.factories import STEPS, make_document

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
CONTEXT = ParseContext("UTC", NOW, STEPS)


def simulated(name: str, when: Any, **changes: Any) -> Simulated:
    model = parse_action(make_document(name=name, when=when, **changes), CONTEXT)
    return Simulated.named(name, plan_of(model))


def fates(*actions: Simulated, outage: tuple[datetime, datetime] | None = None) -> list[Any]:
    timetable = Timetable(() if outage is None else (outage,))
    found = simulate(actions, NOW, NOW + 6 * HOUR, timetable)
    return [(one.action.name, one.first_at, one.fate, one.decided_at) for one in found]


HOURLY = {"cron_rule": "0 */2 * * *", "timezone": "UTC"}
TWO, FOUR, SIX = (NOW + hours * HOUR for hours in (2, 4, 6))


def test_a_chain_is_sent_in_order() -> None:
    one = simulated("one", HOURLY)
    two = simulated("two", {"after": {"action": "one"}, "delay": "PT10M"})
    three = simulated("three", {"after": {"action": "two"}})
    never = simulated("never", {"after": {"action": "one", "ends": "failed"}})

    found = fates(one, three, two, never)

    assert found[:4] == [
        ("one", TWO, "sent", TWO),
        ("two", TWO + 10 * MINUTE, "sent", TWO + 10 * MINUTE),
        ("three", TWO + 10 * MINUTE, "sent", TWO + 11 * MINUTE),
        ("one", FOUR, "sent", FOUR),
    ]
    assert [name for name, *_ in found[4:]] == ["two", "three", "one"]


def test_an_end_is_decided_after_an_outage_within_the_look_back() -> None:
    one = simulated("one", HOURLY)
    late = simulated("late", {"after": {"action": "one"}, "delay": "PT10M"})
    kept = simulated(
        "kept", {"after": {"action": "one"}, "delay": "PT10M"}, policy={"look_back": "PT2H"}
    )
    again = TWO + HOUR

    found = fates(one, late, kept, outage=(TWO + MINUTE, again))

    assert found[1:3] == [
        ("late", TWO + 10 * MINUTE, "missed", again),
        ("kept", TWO + 10 * MINUTE, "sent", again),
    ]


def test_actions_that_wait_for_each_other_in_files_end_the_simulation() -> None:
    one = simulated("one", {"after": {"action": "two"}})
    two = simulated("two", {"after": {"action": "one"}})

    assert fates(one, two) == []


def test_an_outage_of_one_tick_makes_no_end_late() -> None:
    """The tick judges by the last instant that was decided, and so does the simulation."""
    one = simulated("one", HOURLY)
    brief = simulated(
        "brief", {"after": {"action": "one"}, "delay": "PT10M"}, policy={"look_back": "PT1M"}
    )
    due = TWO + 10 * MINUTE

    of_one, of_two = (fates(one, brief, outage=(due, due + ticks * MINUTE))[1] for ticks in (1, 2))

    assert of_one == ("brief", due, "sent", due + MINUTE)
    assert of_two == ("brief", due, "missed", due + 2 * MINUTE)
