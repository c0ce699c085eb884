"""Measure the simulation of a year of many actions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from benchmarks.harness import Figure, Sizes, Stack, main, middle, timed
from models.action.document import ParseContext, parse_action, plan_of
from scheduler.simulate import Simulated, Timetable, simulate
from tasks.built_in import built_in_steps

YEAR = datetime(2027, 1, 1, tzinfo=UTC)
RULES = ("30 2 * * *", "0 7 * * 1", "15 9 * * 1-5", "0 */6 * * *", "5 0 1 * *")


def measure(_stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the seconds of a year, and the number of its occurrences."""
    actions = [_action(number) for number in range(sizes.simulated)]
    watches = [timed(lambda: _live(actions)) for _ in range(sizes.repeats)]
    what = f"a year of {sizes.simulated:,} actions simulated, {_live(actions):,} occurrences"
    return [Figure(what, round(middle([one.wall_s for one in watches]), 3), "s")]


def _action(number: int) -> Simulated:
    when = {"cron_rule": RULES[number % len(RULES)], "timezone": "Europe/Paris"}
    document = {"name": f"action {number}", "operations": {"maintenance": True}, "when": when}
    model = parse_action(document, ParseContext("UTC", YEAR, steps=built_in_steps()))
    return Simulated.named(model.name, plan_of(model))


def _live(actions: Sequence[Simulated]) -> int:
    return sum(1 for _ in simulate(actions, YEAR, YEAR + timedelta(days=365), Timetable()))


if __name__ == "__main__":
    main(measure)
