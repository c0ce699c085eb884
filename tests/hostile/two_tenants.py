"""`make attack`: carry out each attack on one installation with two small apps, a line each.

`python -m tests.hostile.two_tenants --table` prints that of docs/dev/attacks.md.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime.visible import visible_line
from tests.hostile import stage
from tests.hostile.attacks import ATTACKS, BROKEN, Attack

LONGEST_LINE = 200
HEADING = ("| number | attack | what holds | test |", "|---|---|---|---|")


def table() -> list[str]:
    """Return the lines of the table of all attacks."""
    return [*HEADING, *(f"| {' | '.join(_cells(one))} |" for one in ATTACKS)]


def _cells(attack: Attack) -> tuple[str, ...]:
    tests = ", ".join(f"`{name}`" for name in attack.tests)
    return attack.number, attack.tried, attack.holds, tests


def carry_out(attacks: Sequence[Attack]) -> Iterator[tuple[bool, str]]:
    """Yield of each attack whether it was held, and its line."""
    with stage.opened() as place:
        for one in attacks:
            try:
                is_held, how = True, f"held: {one.carried_out(place)}"
            except BROKEN as error:
                is_held, how = False, f"BROKEN: {type(error).__name__}: {error}"
            line = visible_line(f"{one.number}  {one.tried}: {how}")
            yield is_held, line.replace(str(Path(place.folder)), "…")[:LONGEST_LINE]


def main(attacks: Sequence[Attack] = ATTACKS) -> int:
    """Print a line for each attack; return 1 if one was not held."""
    broken, before = 0, logging.root.manager.disable
    logging.disable()
    try:
        for is_held, line in carry_out(attacks):
            print(line, flush=True)
            broken += not is_held
    finally:
        logging.disable(before)
    print(f"{len(attacks)} attacks, {broken} not held")
    return 1 if broken else 0


if __name__ == "__main__":
    if "--table" in sys.argv:
        print("\n".join(table()))
        sys.exit(0)
    sys.exit(main())
