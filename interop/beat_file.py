"""The schedule of a Celery application, as `python -m minutebook export` writes it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from pydantic import Field, JsonValue

from interop.beat import BeatEntry, Items, Source, Text, entry_of, instant_or_none
from interop.entries import Entry, Refused, entry_or_refused
from models.document import Document, read_document
from models.errors import InvalidDocument, Problem
from models.parsing import Reading

VERSION = 1
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
    source = Source(read.timezone, instant_or_none(read.written_at) or now, now)
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


def _entry(raw: JsonValue, where: str, source: Source) -> Entry | Refused:
    """Return an entry; one that cannot be read does not stop the others."""
    written = raw if isinstance(raw, Mapping) else {}
    name = str(written.get("name", where))
    if why := written.get("broken"):
        return Refused(name, where, str(why), str(written.get("instead")))
    read, problems = read_document(BeatEntry, raw, Reading())
    if read is None or problems:
        return Refused.by(name, where, InvalidDocument(problems))
    return entry_or_refused(name, where, partial(entry_of, read, where, source))
