"""`minutehand simulate`: the decisions of a year in seconds, for people and for somebody's CI."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.documents import located, read_documents, read_text
from cli.invocation import Invocation, of
from cli.output import in_zone, instant, print_json, print_line
from cli.preview import daylight_notes, zone_of
from models.action import ParseContext, parse_action, plan_of
from models.errors import InvalidAction, InvalidDocument, Problem, Refused
from models.json_text import InvalidJson, read_json
from models.values import parse_instant
from runtime.clock import utc_now
from scheduler.occurrence import BEGINNING
from scheduler.simulate import SENT, Fate, Simulated, Timetable, busiest, simulate
from scheduler.simulate.assertions import differences
from scheduler.simulate.expectations import parse_expectations

SECOND = timedelta(seconds=1)
WEEK = timedelta(days=7)
MOST_BUSY = 5
EXPECTATIONS = ".expect.json"

Spans = Annotated[
    list[str] | None,
    typer.Option("--down", help="FROM/TO: the daemon does not tick in [from, to); again for more."),
]


def simulate_files(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Files as `action add` takes them.")],
    *,
    since: Annotated[str | None, typer.Option("--from", help="Begin (default: now).")] = None,
    until: Annotated[str | None, typer.Option("--to", help="End (default: a week on).")] = None,
    down: Spans = None,
    zone: Annotated[str, typer.Option(help="Zone of instants and rules that name none.")] = "UTC",
    limit: Annotated[int, typer.Option(min=0, help="Lines of the timeline, at most.")] = 100,
    check: Annotated[
        bool, typer.Option("--check", help="Refuse when no expectations stand beside the files.")
    ] = False,
) -> None:
    """Say what would be sent in [from, to), and check expectations. Nothing is stored or read."""
    invocation = of(context)
    files = _documents_among(files)
    begin = _instant("--from", since, zone) or utc_now().replace(microsecond=0)
    end = _instant("--to", until, zone) or begin + WEEK
    if end <= begin:
        raise Refused(f"--to {instant(end)} is not after --from {instant(begin)}")
    if begin <= BEGINNING:
        raise Refused(f"--from {instant(begin)} is where cron rules begin; write a later instant")
    timetable = Timetable(
        tuple(_span(one, zone) for one in down or ()),
        timedelta(seconds=invocation.settings.scheduler.tick_seconds),
    )
    actions = _actions(invocation, files, zone, begin)
    fates = list(simulate(actions, begin - SECOND, end - SECOND, timetable))
    simulated = Simulation(actions, begin, end, fates, zone)
    wrong = list(simulated.differences(files, is_required=check))
    if invocation.as_json:
        print_json(simulated.as_json(limit) | {"differences": wrong})
    else:
        simulated.print(limit)
        for one in wrong:
            print_line(f"DIFFERS     {one}")
    if wrong:
        raise typer.Exit(1)


@dataclass
class Simulation:
    """What a simulation showed, and how it is told."""

    actions: Sequence[Simulated]
    begin: datetime
    end: datetime
    fates: Sequence[Fate]
    zone: str

    def differences(self, files: Sequence[Path], *, is_required: bool) -> Iterator[str]:
        """Yield each difference from the expectations that stand beside the files."""
        beside = [_beside(file) for file in files]
        found = [file for file in beside if file.exists()]
        if is_required and not found:
            raise Refused(f"no expectations: write them to {beside[0]}")
        zones = {one.name: zone_of(one.plan, self.zone) for one in self.actions}
        for file in found:
            try:
                expected = parse_expectations(read_json(read_text(file)), zones, self.zone)
            except (InvalidDocument, InvalidJson) as error:
                raise located(str(file), error) from None
            for number, one in enumerate(expected):
                about = f' "{one.action}"' if one.action else ""
                for difference in differences(one, self.fates):
                    yield f"{file}[{number}]{about}: {difference}"

    def counts(self) -> dict[str, int]:
        """Return how many occurrences have each fate."""
        counts: dict[str, int] = {SENT: 0}
        for one in self.fates:
            counts[one.fate] = counts.get(one.fate, 0) + one.count
        return counts

    def notes(self) -> list[str]:
        """Return what daylight saving moves, and what cannot be simulated."""
        told = []
        for one in self.actions:
            if one.plan.on_event is not None:
                told.append(f"{one.name}: is due by events, which no simulation knows")
            notes = daylight_notes(one.plan, self.begin - SECOND, self.end - SECOND)
            told += [f"{one.name}: {note}" for note in notes]
        return told

    def as_json(self, limit: int) -> dict[str, Any]:
        """Return all of it, with at most `limit` fates."""
        return {
            "from": self.begin,
            "to": self.end,
            "counts": self.counts(),
            "fates": [
                {
                    "action": one.action.name,
                    "first_at": one.first_at,
                    "last_at": one.last_at,
                    "count": one.count,
                    "fate": one.fate,
                    "reason": one.reason,
                    "decided_at": one.decided_at,
                }
                for one in self.fates[:limit]
            ],
            "left_out": max(0, len(self.fates) - limit),
            "busiest": [{"at": at, "sent": sent} for at, sent in busiest(self.fates, MOST_BUSY)],
            "notes": self.notes(),
        }

    def print(self, limit: int) -> None:
        """Print the timeline, the notes and the busiest minutes."""
        zones = {one.name: zone_of(one.plan, self.zone) for one in self.actions}
        for one in self.fates[:limit]:
            print_line(_line(one, zones[one.action.name]))
        if len(self.fates) > limit:
            print_line(f"… and {len(self.fates) - limit} more; --limit shows them")
        for note in self.notes():
            print_line(f"note        {note}")
        counts = ", ".join(f"{count} {fate}" for fate, count in self.counts().items())
        print_line(f"total       {counts}")
        for at, sent in busiest(self.fates, MOST_BUSY):
            print_line(f"busy        {instant(at)}: {sent} sent")


def _line(fate: Fate, zone: str) -> str:
    told = f"{in_zone(fate.first_at, zone)} {zone}  {instant(fate.first_at)}  {fate.action.name}:"
    told += f" {fate.fate}"
    if fate.count > 1:
        told += f" {fate.count} up to {instant(fate.last_at)}"
    late = fate.decided_at - fate.first_at
    if fate.fate == SENT and late >= timedelta(minutes=1):
        told += f" at {instant(fate.decided_at)}"
    return told + (f" ({fate.reason})" if fate.reason else "")


def _documents_among(files: Sequence[Path]) -> list[Path]:
    """Return `files` without expectations: `simulate actions/*.json` names those as well."""
    documents = [file for file in files if not file.name.endswith(EXPECTATIONS)]
    if not documents:
        raise Refused(f"{files[0]} holds expectations; name the files of the actions instead")
    return documents


def _beside(file: Path) -> Path:
    return file.with_suffix(EXPECTATIONS)


def _actions(
    invocation: Invocation, files: list[Path], zone: str, begin: datetime
) -> list[Simulated]:
    """Return the actions of the files, as if they were created at `begin`."""
    parse = ParseContext(
        default_zone=zone,
        # A due date may lie before: it is simply not due.
        now=datetime.fromtimestamp(0, begin.tzinfo),
        created_at=begin,
        steps=invocation.registry.user_specs(),
        tick=timedelta(seconds=invocation.settings.scheduler.tick_seconds),
        # Nothing is sent.
        celery=None,
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
        actions[model.name] = Simulated.named(model.name, plan_of(model))
    if problems:
        raise InvalidDocument(problems)
    return list(actions.values())


def _instant(option: str, text: str | None, zone: str) -> datetime | None:
    try:
        return None if text is None else parse_instant(text, zone)
    except ValueError as error:
        raise Refused(f"{option} {text!r}: {error}") from None


def _span(text: str, zone: str) -> tuple[datetime, datetime]:
    first, slash, second = text.partition("/")
    if not slash:
        raise Refused(f"--down {text!r}: write FROM/TO")
    begin, end = _instant("--down", first, zone), _instant("--down", second, zone)
    if begin is None or end is None or end <= begin:
        raise Refused(f"--down {text!r}: write FROM/TO, with TO after FROM")
    return begin, end
