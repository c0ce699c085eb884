"""`minutehand action apply --dry-run`: what it would change, before it does."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cli.documents import read_documents
from cli.invocation import Invocation
from cli.output import in_zone, instant, print_json, print_line
from cli.preview import YEAR, daylight_notes, zone_of
from models.sql import read_clock
from runtime.database import reading
from scheduler.changes.change import Change
from scheduler.changes.plan import Foreseen, Load, foresee, load

WORDS = {
    Change.CREATED: "would create",
    Change.CHANGED: "would change",
    Change.UNCHANGED: "would not change",
}


def print_foreseen(invocation: Invocation, files: Sequence[Path]) -> None:
    """Print what applying the files' documents would do now; nothing is stored."""
    documents = [document for file in files for _, document in read_documents(file)]
    with reading(invocation.engine) as connection:
        now = read_clock(connection)
        foreseen = foresee(connection, documents, invocation.author)
        found = load(connection, foreseen, now)
    zone = invocation.small_app.zone
    if invocation.as_json:
        shown = [_as_json(one, now, zone) for one in foreseen]
        print_json({"actions": shown, "busiest_minute": _load_as_json(found)})
        return
    for one in foreseen:
        _print(one, now, zone)
    _print_load(found)


def _as_json(one: Foreseen, now: datetime, zone: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "uid": one.uid,
        "change": one.change,
        "revision": one.number,
        "next_before": one.before,
        "next_after": one.after,
        "sent_at_once": one.sent,
        "missed": one.missed,
        "edited_by_sql": one.is_edited,
        "daylight_saving": _notes(one, now),
        "zone": zone_of(one.plan, zone),
    }


def _notes(one: Foreseen, now: datetime) -> list[str]:
    return daylight_notes(one.plan, now, now + YEAR)


def _print(one: Foreseen, now: datetime, zone: str) -> None:
    zone = zone_of(one.plan, zone)
    uid = f" ({one.uid})" if one.uid else ""
    print_line(f"{WORDS[one.change]} {one.name}{uid}, revision {one.number}")
    if one.is_edited:
        print_line("  was edited by SQL: that edit becomes a revision of its own first")
    if one.change is Change.CHANGED:
        _print_next("before", one.before, zone)
    if one.change is not Change.UNCHANGED:
        _print_next("after ", one.after, zone)
    for at in one.sent:
        print_line(f"  at once by the old rule  {in_zone(at, zone)} {zone}   {instant(at)}")
    if one.missed:
        print_line(f"  missed by the old rule   {one.missed}")
    for note in _notes(one, now):
        print_line(f"  {note}")


def _print_next(word: str, instants: Sequence[datetime], zone: str) -> None:
    if not instants:
        print_line(f"  {word}  no occurrence to come")
    for at in instants:
        print_line(f"  {word}  {in_zone(at, zone)} {zone}   {instant(at)}")


def _load_as_json(found: Load) -> dict[str, Any]:
    def told(minute: tuple[datetime, int] | None) -> dict[str, Any] | None:
        return None if minute is None else {"at": minute[0], "sent": minute[1]}

    return {
        "before": told(found.before),
        "after": told(found.after),
        "is_whole": found.is_whole,
    }


def _print_load(found: Load) -> None:
    def told(minute: tuple[datetime, int] | None) -> str:
        return "none" if minute is None else f"{minute[1]} at {instant(minute[0])}"

    part = "" if found.is_whole else " (of the actions that are due first)"
    before, after = told(found.before), told(found.after)
    print_line(f"busiest minute of the next 24 hours{part}: before {before}; after {after}")
