"""Compare the cron kernel with Debian's main loop at every change of every zone, 1970 to 2100.

    python benchmarks/check_cron_exhaustive.py [--until 2100] [--rules 12] [--changes N]

Each change of each zone is checked with `--rules` rules: some from a fixed list, some random. Equal
changes (same UTC second, same offsets) are checked once. It takes a few minutes of CPU; `--changes`
ends it earlier. The exit code is 1 if an answer differs.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cron import CronSchedule, InvalidRule, tz_release
from tests.unit.cron.comparison import compare
from tests.unit.cron.debian import LIMITS, RULES, Change, changes, wheel_names

STRIDE = 2 * 86400


def second_of(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def all_changes(prefix: str, until: int) -> list[Change]:
    """Return the changes of offset from 1970 up to the year `until`, each once.

    Monrovia's change of 1972, from half a minute, is left out: Debian's loop counts whole minutes.
    """
    alike: dict[tuple[int, int, int], Change] = {}
    for name in wheel_names():
        if name.startswith(prefix):
            for change in changes(name, second_of(1970) + STRIDE, second_of(until), STRIDE):
                alike.setdefault(change[1:], change)
    return [
        change
        for change in alike.values()
        if change.before % 60 == change.after % 60 == change.second % 60 == 0
    ]


def random_rules(chance: random.Random) -> Iterator[str]:
    """Yield rules that mostly match at night, where clocks change."""
    while True:
        rule = " ".join(_field(chance, index) for index in range(5))
        try:
            CronSchedule(rule, "UTC")
        except InvalidRule:
            continue
        yield rule


def _field(chance: random.Random, index: int) -> str:
    low, high = LIMITS[index]
    if index >= 2 and chance.random() < 0.75:
        return "*"
    first, last = sorted((chance.randint(low, high), chance.randint(low, high)))
    if index == 1 and chance.random() < 0.6:
        first, last = sorted((chance.randint(0, 4), chance.randint(0, 4)))
    step = chance.randint(2, 30)
    kinds = ("*", f"*/{step}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}")
    return chance.choice([*kinds, f"{first},{last}", f"{last},{first}-{last}"])


def main() -> int:
    parser = argparse.ArgumentParser(description="cron against Debian's main loop")
    parser.add_argument("--until", type=int, default=2100)
    parser.add_argument("--rules", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--zones", default="", help="only zones with this prefix")
    parser.add_argument("--changes", type=int, default=10**9, help="the number of changes at most")
    options = parser.parse_args()

    chance = random.Random(options.seed)
    found = all_changes(options.zones, options.until)
    chance.shuffle(found)
    rules = random_rules(chance)
    compared, asked, differences = 0, set[str](), []
    for change in found[: options.changes]:
        some = chance.sample(RULES[1:], options.rules // 3)
        some += [next(rules) for _ in range(options.rules - len(some))]
        tally = compare([change], some)
        compared += tally.compared
        asked.update(some)
        differences += tally.differences
    for difference in differences[:20]:
        print(difference)
    print(
        f"tz {tz_release()}, 1970 to {options.until}: {len(found[: options.changes]):,} changes, "
        f"{len(asked):,} rules, {compared:,} comparisons, {len(differences):,} differences"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
