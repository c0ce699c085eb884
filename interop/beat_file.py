"""The schedule of a Celery application, as `python -m minutebook export` writes it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pydantic import Field, JsonValue

from interop import django_rows
from interop.beat import BeatEntry, Items, Text, entry_of, instant_or_none
from interop.django_rows import Row
from interop.entries import Entry, Refused, entry_or_refused
from minutebook.error_text import text_of
from models.document import Document, read_document
from models.errors import InvalidDocument, Problem
from models.parsing import Reading

VERSION = 1
OWNER = "import:beat"
EMPTY: Mapping[str, object] = {}
# Options of the application's broker that change where its workers look, and our settings.
SETTINGS = {
    "global_keyprefix": "SCHED_CELERY_GLOBAL_KEYPREFIX",
    "sep": "SCHED_CELERY_SEP",
    "priority_steps": "SCHED_CELERY_PRIORITY_STEPS",
}


class BeatSchedule(Document):
    """The schedule of one Celery application."""

    minutebook_beat: int
    celery: Text
    timezone: Text
    written_at: Text = ""
    broker_options: dict[str, JsonValue] = Field(default_factory=dict)
    entries: Items


def entries_of(
    document: object,
    file: str,
    now: datetime,
    known: Mapping[str, object] = EMPTY,
) -> Iterator[Entry | Refused]:
    """Yield the entries of a written schedule; raises InvalidDocument.

    `known` are the options of the application's broker that Minutebook has already.
    """
    read, problems = read_document(BeatSchedule, document, Reading())
    if read is None or problems:
        raise InvalidDocument(problems)
    if read.minutebook_beat != VERSION:
        remedy = f"is another release's; write it with one that writes {VERSION}"
        raise InvalidDocument([Problem("minutebook_beat", read.minutebook_beat, remedy)])
    remarks = tuple(_unset(read.broker_options, known))
    source = _Source(read.timezone, now, instant_or_none(read.written_at) or now)
    for number, one in enumerate(read.entries):
        found = _entry(one, f"{file} entries[{number}]", source)
        if isinstance(found, Entry):
            found = replace(found, remarks=(*found.remarks, *remarks))
        yield found


def _unset(given: Mapping[str, JsonValue], known: Mapping[str, object]) -> Iterator[str]:
    """Yield what to set, so that workers find the messages."""
    for name, setting in SETTINGS.items():
        if given.get(name, known.get(name)) != known.get(name):
            value = given[name]
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"its workers do not find messages before {setting} is {shown!r}"


@dataclass(frozen=True, slots=True)
class _Source:
    """The application's zone, the instant of the import, and that at which it was written."""

    zone: str
    now: datetime
    written_at: datetime


def _entry(raw: JsonValue, where: str, source: _Source) -> Entry | Refused:
    """Return an entry; one that cannot be read does not stop the others."""
    written = raw if isinstance(raw, Mapping) else {}
    name = str(written.get("name", where))
    if why := written.get("broken"):
        return Refused(name, where, str(why), str(written.get("instead")))
    kind: type[BeatEntry | Row] = Row if "row" in written else BeatEntry
    read, problems = read_document(kind, raw, Reading())
    if read is None or problems:
        return Refused.by(name, where, InvalidDocument(problems))
    if isinstance(read, BeatEntry):
        make = partial(entry_of, read, where, source.zone, OWNER, source.written_at)
        return entry_or_refused(name, where, make)
    row = partial(django_rows.entry_of, read, where, OWNER, source.now, source.written_at)
    try:
        return entry_or_refused(name, where, row)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # SQLite takes any value in any column.
        why = f"its rows hold what django-celery-beat does not write: {text_of(error)}"
        return Refused(name, where, why, "correct them, or write an action for it")
