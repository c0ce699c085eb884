"""A plan of changes in words."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from views.change_plan import BusiestMinute, BusyMinute, ChangePlan, PlannedChange
from views.words import in_zone, instant

WORDS = {"created": "would create", "changed": "would change", "unchanged": "would not change"}


def _plan(plan: ChangePlan) -> Iterator[str]:
    for one in plan.actions:
        yield from _change(one)
    for gone in plan.pruned:
        yield f"would delete {gone.name} ({gone.uid})"
    yield _load(plan.busiest_minute)


def _change(one: PlannedChange) -> Iterator[str]:
    uid = f" ({one.uid})" if one.uid else ""
    yield f"{WORDS[one.change]} {one.name}{uid}, revision {one.revision}"
    if one.edited_by_sql:
        yield "  was edited by SQL: that edit becomes a revision of its own first"
    if one.change == "changed":
        yield from _next("before", one.next_before, one.zone)
    if one.change != "unchanged":
        yield from _after(one)
    if one.changes_priority:
        yield f"  priority {_priority(one)}"
    for at in one.sent_at_once:
        yield f"  at once by the old rule  {in_zone(at, one.zone)} {one.zone}   {instant(at)}"
    if one.missed:
        yield f"  missed by the old rule   {one.missed}"
    yield from (f"  {note}" for note in one.daylight_saving)


def _after(one: PlannedChange) -> Iterator[str]:
    if one.is_on_events:
        yield from (f"  after   {rule}" for rule in one.when)
    else:
        yield from _next("after ", one.next_after, one.zone)


def _next(word: str, instants: Sequence[datetime], zone: str) -> Iterator[str]:
    if not instants:
        yield f"  {word}  no occurrence to come"
    for at in instants:
        yield f"  {word}  {in_zone(at, zone)} {zone}   {instant(at)}"


def _priority(one: PlannedChange) -> str:
    if one.change == "created":
        return str(one.priority)
    return f"{one.priority_before or 0} becomes {one.priority}"


def _load(found: BusiestMinute) -> str:
    part = "" if found.is_whole else " (of the actions that are due first)"
    before, after = _busy(found.before), _busy(found.after)
    return f"busiest minute of the next 24 hours{part}: before {before}; after {after}"


def _busy(minute: BusyMinute | None) -> str:
    return "none" if minute is None else f"{minute.sent} at {instant(minute.at)}"


FORMS = {ChangePlan: _plan}
