"""The schedule of a Celery application, as `python -m minutebook beat` writes it."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

from models.document import Document, read_document
from models.errors import InvalidDocument, Problem
from models.parsing import Reading
from models.values import parse_list, parse_text
from moving.beat import BeatEntry, entry_of
from moving.entries import Entry, Refused, entry_or_refused

VERSION = 1
OWNER = "import:beat"


class BeatSchedule(Document):
    """The schedule of one Celery application."""

    minutebook_beat: int
    celery: Annotated[str, BeforeValidator(parse_text)]
    timezone: Annotated[str, BeforeValidator(parse_text)]
    entries: Annotated[tuple[JsonValue, ...], BeforeValidator(parse_list)]


def entries_of(document: object, file: str) -> Iterator[Entry | Refused]:
    """Yield the entries of a written schedule; raises InvalidDocument."""
    read, problems = read_document(BeatSchedule, document, Reading())
    if read is None or problems:
        raise InvalidDocument(problems)
    if read.minutebook_beat != VERSION:
        remedy = f"is another release's; write it with one that writes {VERSION}"
        raise InvalidDocument([Problem("minutebook_beat", read.minutebook_beat, remedy)])
    for number, one in enumerate(read.entries):
        yield _entry(one, f"{file} entries[{number}]", read.timezone)


def _entry(raw: JsonValue, where: str, zone: str) -> Entry | Refused:
    """Return an entry; one that cannot be read does not stop the others."""
    written = raw if isinstance(raw, Mapping) else {}
    name = str(written.get("name", where))
    if why := written.get("broken"):
        return Refused(name, where, str(why), "correct it in the application, and write it again")
    read, problems = read_document(BeatEntry, raw, Reading())
    if read is None or problems:
        return Refused.by(name, where, InvalidDocument(problems))
    return entry_or_refused(name, where, partial(entry_of, read, where, zone, OWNER))
