"""`explain` against an oracle that shares no code with it, over a simulated year."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

import pytest

from broker.app import configure
from runtime.config import Settings
from runtime.database import make_engine, reading
from scheduler.explain import explain
from tests.integration.scheduler.lived_year import Year
from tests.integration.scheduler.oracle import YEAR, Action
from tests.virtual_clock import VirtualClock

NEAR = (timedelta(seconds=-1), timedelta(seconds=1), timedelta(minutes=1))


def instants_of(action: Action, random: Random, until: datetime) -> set[datetime]:
    """Return all occurrences, instants beside some of them, and random instants."""
    named = {at for one in action.history for at in one.revision.occurrences}
    named |= set(action.outcomes)
    beside = {at + random.choice(NEAR) for at in sorted(named)[::5]}
    anywhere = {YEAR + timedelta(minutes=random.randrange(-1_000, 570_000)) for _ in range(100)}
    return {at for at in named | beside | anywhere if at < until}


@pytest.mark.parametrize(
    ("store", "count", "days"),
    [
        # A few weeks have as many changes, outages and wrong clocks as a year.
        pytest.param("sqlite", 5, 40, marks=pytest.mark.timeout(600)),
        pytest.param("postgresql", 2, 25, marks=pytest.mark.timeout(600)),
        pytest.param("sqlite", 12, 365, marks=[pytest.mark.storm, pytest.mark.timeout(3_600)]),
        pytest.param("postgresql", 6, 365, marks=[pytest.mark.storm, pytest.mark.timeout(3_600)]),
    ],
)
def test_every_instant_is_explained_as_the_oracle_has_it(
    home_of: Callable[[str], Settings], store: str, count: int, days: int
) -> None:
    settings = home_of(store)
    configure(settings)
    engine, random = make_engine(settings), Random(count)
    end = YEAR + timedelta(days=days)
    year = Year(engine, VirtualClock(engine, YEAR), random, {}, {}, end)
    year.begin(count)
    year.live()
    year.tick(year.end)

    verdicts: Counter[str] = Counter()
    with reading(engine) as connection:
        for name, action in year.lived.items():
            for at in sorted(instants_of(action, random, year.known_until)):
                found = explain(action.uid, at, connection, settings)
                expected = action.verdict(at)
                assert (name, at, expected) == (name, at, found.verdict), found.text
                verdicts[expected] += 1

    engine.dispose()
    assert {"success", "missed", "paused", "not_an_occurrence"} <= set(verdicts)
