"""Plain values of a document: flags, names, texts, numbers, choices, addresses, instants."""

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    TypeAdapter,
    ValidationInfo,
)

from models.hints import listed, meant
from models.parsing import reading_of
from models.values.zones import instant_of, parse_zone


@dataclass(frozen=True, slots=True)
class NameOf:
    """Marks a parameter of a step that names what the small app has: `kind` of `KnownNames`.

    A list holds names, any other value (true, "all") means everything, unless it `is_one` name.
    """

    kind: str
    what: str
    is_one: bool = False


Hashed = TypeVar("Hashed")
# A part of a document that may hold any JSON. `read_document` checks the whole document for what is
# no JSON, in a tenth of the time that pydantic's JsonValue takes.
FreeJson: TypeAlias = Any
LONGEST_NAME = 200
LONGEST_TEXT = 10_000
LONGEST_URL = 2_000
QUEUE_PATTERN = re.compile("[a-z0-9_-]{1,64}")
CELERY_QUEUE_PATTERN = re.compile("[A-Za-z0-9_.:-]{1,200}")
# Control characters, lone surrogates, line breaks; and those that hide or reverse what is read.
CONTROLS = frozenset({"Cc", "Cs", "Zl", "Zp", "Cf"})
INSTANT_EXAMPLE = 'write an ISO 8601 instant such as "2026-12-24T18:00:00+01:00"'
_INSTANT = re.compile(
    r"(?P<wall>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?)"
    r"(?P<offset>Z|z|[+-][0-9]{2}(:?[0-9]{2})?)?"
)


def parse_flag(value: object) -> bool:
    """Return the boolean that `value` is or writes ("true", "false", any case)."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError("write true or false")


def flag_of(value: object) -> bool | None:
    """Return the boolean that `value` is or writes, None for anything else."""
    try:
        return parse_flag(value)
    except ValueError:
        return None


def parse_text(value: object, *, most: int = LONGEST_TEXT) -> str:
    """Return the text `value`; of control characters it may hold line breaks and tabs."""
    text = _text(value, most)
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\r\t" for char in text):
        raise ValueError("holds a control character; remove it")
    return text


def _text(value: object, most: int) -> str:
    if not isinstance(value, str):
        raise ValueError("write a text in double quotes")
    if len(value) > most:
        raise ValueError(f"is too long ({len(value)} characters); write at most {most}")
    return value


def parse_name(value: object, *, most: int = LONGEST_NAME) -> str:
    """Return the name `value`: a line as in `parse_line` that no command takes for an option."""
    name = parse_line(value, most=most)
    if name.startswith("-"):
        raise ValueError("begins with -, as an option of a command does; begin with a letter")
    return name


def composed(name: str) -> str:
    """Return a name with its accents as parts of the letters (NFC): two spellings look the same."""
    return unicodedata.normalize("NFC", name)


def parse_line(value: object, *, most: int = LONGEST_NAME) -> str:
    """Return the text `value`: one line of visible characters, not empty, no spaces around it."""
    line = _text(value, most)
    if not line.strip():
        raise ValueError("is empty; write a name")
    if _holds_controls(line):
        raise ValueError("holds a control character, a line break or an invisible one; remove it")
    if line != line.strip():
        raise ValueError(f'has spaces around it; write "{line.strip()}"')
    return line


def _holds_controls(text: str) -> bool:
    # A printable text holds none, and most texts are printable.
    return not text.isprintable() and any(unicodedata.category(one) in CONTROLS for one in text)


def parse_list(value: object) -> Sequence[object]:
    """Return the list `value`; raises ValueError for anything else."""
    if isinstance(value, list | tuple):
        return value
    shown = json.dumps(value, default=str)
    raise ValueError(f"write a list: [{shown}]" if len(shown) < 60 else "write a list in [ ]")


def each_once(values: tuple[Hashed, ...]) -> tuple[Hashed, ...]:
    """Return `values` in their order, without repeats."""
    return tuple(dict.fromkeys(values))


def parse_whole(value: object, *, least: int, most: int) -> int:
    """Return the whole number `value`, in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"write a whole number from {least} to {most}")
    return value


def parse_degrees(value: object, *, most: int) -> float:
    """Return the angle `value`, in [-most, most]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= most:
        raise ValueError(f"write degrees from {-most} to {most}, such as 48.85")
    return float(value)


def _matching(pattern: re.Pattern[str], allowed: str) -> Callable[[object], str]:
    """Return a check that accepts only texts of a pattern."""

    def check(value: object) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise ValueError(f"write {allowed}")

    return check


def one_of(*choices: str) -> Callable[[object], object]:
    """Return a check that accepts only `choices`."""

    def check(value: object) -> object:
        if isinstance(value, str) and value in choices:
            return value
        hint = meant(value, choices) if isinstance(value, str) else ""
        raise ValueError(f"write one of {listed(choices)}{hint}")

    return check


def parse_address(value: object) -> str:
    """Return the e-mail address `value`, its domain in lower case; no DNS is asked."""
    if not isinstance(value, str) or len(value) > 254:
        raise ValueError('write an e-mail address such as "ann@example.com"')
    from email_validator import EmailNotValidError, validate_email

    try:
        return validate_email(value, check_deliverability=False).normalized
    except EmailNotValidError as error:
        raise ValueError(f"is not an e-mail address: {error}") from None


def parse_url(value: object) -> str:
    """Return the URL `value` unchanged; http or https, with a host, without a password."""
    example = 'write a URL such as "https://example.com/data.csv"'
    if not isinstance(value, str) or len(value) > LONGEST_URL:
        raise ValueError(example)
    if any(char.isspace() or not char.isprintable() for char in value):
        raise ValueError("holds a space or a control character; write it as %20")
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"is not an http or https URL; {example}")
    if parts.password is not None:
        raise ValueError("holds a password, which every reader would see; remove it")
    return value


def has_offset(text: str) -> bool:
    """Return whether the instant `text` has an offset from UTC."""
    match = _INSTANT.fullmatch(text)
    return match is not None and match["offset"] is not None


def parse_instant(
    value: object, zone: str, *, round_up: bool = False, exact: bool = False
) -> datetime:
    """Return the instant `value` in UTC and whole seconds, read in `zone` if it has no offset.

    A fraction of a second is refused, rounded up if `round_up`, kept if `exact`. A time in a gap of
    the clock is the end of the gap, a repeated one the first. Raises ValueError with what to write
    instead.
    """
    if not isinstance(value, str) or _INSTANT.fullmatch(value) is None:
        raise ValueError(f"is not an instant; {INSTANT_EXAMPLE}")
    from dateutil.parser import isoparse

    try:
        written = isoparse(value.upper())
        found = instant_of(written, zone) if written.tzinfo is None else written.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"is not a date and time between 1970 and 2199; {INSTANT_EXAMPLE}"
        ) from None
    if not 1970 <= found.year < 2200:
        raise ValueError("is outside the years 1970 to 2199; write a date within them")
    if exact:
        return found
    if found.microsecond and not round_up:
        raise ValueError("holds a fraction of a second; write whole seconds")
    if found.microsecond:
        found += timedelta(seconds=1)
    return found.replace(microsecond=0)


def counted(count: int, what: str) -> str:
    """Return `1 user`, `3 users`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def format_instant(instant: datetime) -> str:
    """Return `instant` in UTC as `2026-11-23T06:00:00Z`."""
    # `strftime` takes twice as long, and a page shows hundreds.
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def instant_or_dash(instant: datetime | None) -> str:
    """Return an instant as `format_instant` does, `-` for none."""
    return "-" if instant is None else format_instant(instant)


def _read_instant(value: object, info: ValidationInfo) -> datetime:
    return parse_instant(value, reading_of(info).default_zone)


def _list_or_value(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


Flag = Annotated[bool, BeforeValidator(parse_flag)]
Name = Annotated[str, BeforeValidator(parse_name)]
ActionName = Annotated[str, BeforeValidator(lambda value: composed(parse_name(value)))]
Names = Annotated[tuple[Name, ...], BeforeValidator(parse_list), AfterValidator(each_once)]
AS_LIST = PlainSerializer(_list_or_value, return_type=Any)
NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(Names, config=ConfigDict(defer_build=True))
Queue = Annotated[
    str, BeforeValidator(_matching(QUEUE_PATTERN, "1 to 64 of: lowercase letters, digits, _ and -"))
]
CeleryQueue = Annotated[
    str,
    BeforeValidator(_matching(CELERY_QUEUE_PATTERN, "1 to 200 of: letters, digits, _ . : and -")),
]
Text = Annotated[str, BeforeValidator(parse_text)]
Address = Annotated[str, BeforeValidator(parse_address)]
Url = Annotated[str, BeforeValidator(parse_url)]
Zone = Annotated[str, BeforeValidator(parse_zone)]
UtcInstant = Annotated[
    AwareDatetime,
    BeforeValidator(_read_instant),
    PlainSerializer(format_instant, return_type=str),
]
