"""Simulate the daemon's decisions over a range."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import Field

from models.action.document import ParseContext, parse_action, plan_of
from models.action.schedule import BEGINNING
from models.errors import InvalidAction, InvalidDocument, Problem, Refused
from models.tenant.document import DEFAULT_APP, SmallAppModel, parse_small_app
from runtime.clock import utc_now
from scheduler.simulate import (
    SENT,
    Simulated,
    SimulatedOutcome,
    Timetable,
    busiest,
    simulate,
)
from services.actions.rules import daylight_notes, zone_of
from services.files import located, read_documents
from services.installation import Installation
from services.lookup import instant_of
from services.view import Instant, View
from services.words import instant

SECOND = timedelta(seconds=1)
WEEK = timedelta(days=7)
MOST_BUSY = 5


class SimulatedFate(View):
    """The fate of an occurrence, or of consecutive occurrences."""

    action: str
    first_at: Instant
    last_at: Instant
    count: int
    fate: str = Field(description="`sent` or `missed`.")
    reason: str | None
    decided_at: Instant
    zone: str = Field(description="IANA zone of the action.")


class BusyMinute(View):
    """A minute and the number of operations it sends."""

    at: Instant = Field(description="The minute.")
    sent: int = Field(description="How many operations are sent in it.")


class Simulation(View):
    """What would be sent in [from, to)."""

    begin: Instant = Field(alias="from")
    end: Instant = Field(alias="to", description="Not included.")
    counts: dict[str, int] = Field(description="How many occurrences have each fate.")
    fates: tuple[SimulatedFate, ...] = Field(description="The first of them.")
    left_out: int = Field(description="How many more there are.")
    busiest: tuple[BusyMinute, ...] = Field(description="The minutes that send most.")
    notes_of_rules: tuple[str, ...] = Field(
        alias="notes", description="Effects of clock changes, and what cannot be simulated."
    )


@dataclass(frozen=True)
class SimulationRequest:
    """A requested simulation."""

    files: Sequence[Path]
    since: str | None = None
    until: str | None = None
    down: Sequence[str] = ()
    zone: str | None = None
    limit: int = 100
    # The file of the small app, whose zone and calendars apply.
    small_app: Path | None = None


def simulation(installation: Installation, asked: SimulationRequest) -> Simulation:
    """Simulate the actions of files; nothing is stored, and no database is read."""
    app = _small_app(asked.small_app)
    zone = asked.zone or app.zone
    now = utc_now()
    begin = instant_of("--from", asked.since or "now", zone, now)
    end = instant_of("--to", asked.until, zone, now) if asked.until else begin + WEEK
    if end <= begin:
        raise Refused(f"--to {instant(end)} is not after --from {instant(begin)}")
    if begin <= BEGINNING:
        raise Refused(f"--from {instant(begin)} is where cron rules begin; write a later instant")
    down = tuple(_span(one, zone, now) for one in asked.down)
    timetable = Timetable(down, installation.settings.scheduler.tick)
    actions = _actions(installation, asked.files, app.model_copy(update={"zone": zone}), begin)
    fates = list(simulate(actions, begin - SECOND, end - SECOND, timetable))
    zones = {one.name: zone_of(one.plan, zone) for one in actions}
    return Simulation(
        begin=begin,
        end=end,
        counts=_counts(fates),
        fates=tuple(_shown(one, zones[one.action.name]) for one in fates[: asked.limit]),
        left_out=max(0, len(fates) - asked.limit),
        busiest=tuple(BusyMinute(at=at, sent=sent) for at, sent in busiest(fates, MOST_BUSY)),
        notes_of_rules=_notes(actions, begin, end),
    )


def _small_app(file: Path | None) -> SmallAppModel:
    """Return the small app of a file, or one in UTC without anything."""
    if file is None:
        return SmallAppModel(name=DEFAULT_APP)
    located_documents = read_documents(file)
    if len(located_documents) != 1:
        raise Refused(f"{file} holds {len(located_documents)} documents; name the file of one")
    where, document = located_documents[0]
    try:
        return parse_small_app(document)
    except InvalidDocument as error:
        raise located(where, error) from None


def _shown(one: SimulatedOutcome, zone: str) -> SimulatedFate:
    action = one.action
    return SimulatedFate.of(one, action=action.name, zone=zone)


def _counts(fates: Sequence[SimulatedOutcome]) -> dict[str, int]:
    counts: dict[str, int] = {SENT: 0}
    for one in fates:
        counts[one.fate] = counts.get(one.fate, 0) + one.count
    return counts


def _notes(actions: Sequence[Simulated], begin: datetime, end: datetime) -> tuple[str, ...]:
    found = []
    for one in actions:
        if one.plan.watched is not None:
            found.append(
                f'{one.name}: is due by ends of "{one.plan.watched}", which is not simulated'
            )
        elif one.plan.on_event is not None:
            found.append(f"{one.name}: is due by events, which no simulation knows")
        if one.plan.from_end is not None:
            found.append(f"{one.name}: each of its runs is taken to end when it is sent")
        if one.plan.has_jitter:
            found.append(f"{one.name}: its jitter is an example; that of a stored action differs")
        moved = daylight_notes(one.plan, begin - SECOND, end - SECOND)
        found += [f"{one.name}: {note}" for note in moved]
    return tuple(found)


def _actions(
    installation: Installation, files: Sequence[Path], app: SmallAppModel, begin: datetime
) -> list[Simulated]:
    """Return the actions of the files, as if they were created at `begin`."""
    parse = ParseContext(
        default_zone=app.zone,
        calendars=app.calendars,
        # A due date may lie before; it is not due then.
        now=datetime.fromtimestamp(0, begin.tzinfo),
        created_at=begin,
        steps=installation.steps,
        tick=installation.settings.scheduler.tick,
        # Nothing is sent or run.
        celery=None,
        commands=None,
        channels=None,
    )
    actions: dict[str, Simulated] = {}
    problems: list[Problem] = []
    for where, document in (one for file in files for one in read_documents(file)):
        try:
            model = parse_action(document, parse)
        except InvalidAction as error:
            problems += located(where, error).problems
            continue
        if model.name in actions:
            remedy = "is the name of another action too; give this one a name of its own"
            problems.append(Problem(f"{where}: name", model.name, remedy))
        plan = plan_of(model).with_calendars(app.calendars)
        actions[model.name] = Simulated.named(model.name, plan)
    if problems:
        raise InvalidDocument(problems)
    return list(actions.values())


def _span(text: str, zone: str, now: datetime) -> tuple[datetime, datetime]:
    first, slash, second = text.partition("/")
    if not slash:
        raise Refused(f"--down {text!r}: write FROM/TO")
    begin, end = (instant_of("--down", one, zone, now) for one in (first, second))
    if end <= begin:
        raise Refused(f"--down {text!r}: write FROM/TO, with TO after FROM")
    return begin, end
