"""Draw the last runs of an action as bars: states by shape, durations by height."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.values.zones import in_zone
from services.operations.last_runs import SHOWN, LastRun
from services.overview.figures import Hour
from services.words import brief
from web.dashboard.texts import say

# Units of the drawing, which is as wide as its place: from one bar to the next, and its height.
STEP = 10
HIGH = 24
# A run that took no time, one of unknown duration, and one that did nothing.
LEAST = 7
USUAL = 15
STUB = 4
WHOLE = frozenset({"failed", "missed", "running", "pending", "queued"})
STUBS = frozenset({"skipped", "dropped"})


@dataclass(frozen=True, slots=True)
class Bar:
    """A run: `tip` is shown as a hint; `href` is its page."""

    x: int
    height: int
    state: str
    tip: str
    href: str


@dataclass(frozen=True, slots=True)
class Bars:
    """The last runs of an action, the newest at the right, and how many are in each state."""

    bars: tuple[Bar, ...]
    summary: str
    width: int = SHOWN * STEP
    height: int = HIGH


def bars(runs: Sequence[LastRun], zone: str) -> Bars:
    """Return the drawing of runs in their order, with instants on the clock of a zone."""
    longest = max((one.took_s or 0 for one in runs), default=0)
    first = SHOWN - len(runs)
    return Bars(
        bars=tuple(
            Bar(
                x=STEP * (first + place),
                height=_height(one, longest),
                state=one.state,
                tip=_tip(one, zone),
                href=f"/operations/{one.id}",
            )
            for place, one in enumerate(runs)
        ),
        summary=counted(Counter(one.state for one in runs)),
    )


def counted(counts: Mapping[str, int]) -> str:
    """Return how many runs are in each state: `3 failed, 27 success`."""
    return ", ".join(f"{count} {say(f'state.{state}')}" for state, count in sorted(counts.items()))


def _height(one: LastRun, longest: float) -> int:
    if one.state in WHOLE:
        return HIGH
    if one.state in STUBS:
        return STUB
    if one.took_s is None:
        return USUAL
    return round(LEAST + (HIGH - LEAST) * (one.took_s / longest if longest else 0))


def _tip(one: LastRun, zone: str) -> str:
    took = "" if one.took_s is None else f", {brief(one.took_s)}"
    why = f": {one.why}" if one.why else ""
    return f"{say(f'state.{one.state}')}, {in_zone(one.at, zone)}{took}{why}"


def hours(shown: Sequence[Hour], zone: str) -> Bars:
    """Return the drawing of hours in their order: all runs, and those that failed before them."""
    most = max((one.runs for one in shown), default=0)
    drawn = []
    for place, one in enumerate(shown):
        since = in_zone(one.since, zone)
        tip = say("figures.hour", since=since, runs=one.runs, failed=one.failed)
        for state, count in (("all", one.runs), ("bad", one.failed)):
            drawn.append(Bar(STEP * place, _part(count, most), state, tip, ""))
    return Bars(tuple(drawn), say("figures.by_hour"), STEP * len(shown))


def _part(count: int, most: int) -> int:
    """Return the height of a count; one is seen beside thousands."""
    return min(HIGH, max(2, round(HIGH * count / max(1, most)))) if count else 0
