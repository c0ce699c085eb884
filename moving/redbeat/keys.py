"""Entries of RedBeat, read from its keys in Redis."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from cron.zone import canonical_name
from minutebook.beat.instants import Ran, next_instants
from models.document import read_document
from models.errors import Refused as RefusedCommand
from models.parsing import Reading
from models.values.durations import parse_span
from moving.beat import BeatEntry, entry_of
from moving.celery_fires import CrontabFires, known_crontab, known_interval
from moving.cron_text import RULES
from moving.entries import CannotMove, Entry, Known, Refused, entry_or_refused
from moving.wall_fires import GridFires, RecurrenceFires
from views.foreign_redis import foreign_redis

OWNER = "import:redbeat"
PREFIX = "redbeat:"
MOST_KEYS = 100_000
LONGEST = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# In seconds: the year 9999.
LATEST = 253_000_000_000


def read_definitions(url: str, prefix: str = PREFIX) -> dict[str, str]:
    """Return the definitions of RedBeat by their keys.

    Raises Refused, without the password, and if there is none: the prefix is another one.
    """
    with _reading(url) as client:
        found = dict(_definitions(client, prefix))
    if not found:
        why = f"Redis has no entry of RedBeat whose key begins with {prefix!r}"
        raise RefusedCommand(f"{why}; write your redbeat_key_prefix, and check the database")
    return found


def read_due(url: str, prefix: str = PREFIX) -> dict[str, datetime]:
    """Return when RedBeat runs each key next; raises Refused, without the password."""
    with _reading(url) as client:
        scores = client.zrange(f"{prefix}:schedule", 0, MOST_KEYS, withscores=True)
    # RedBeat runs no key with a score below 0.
    return {key: EPOCH + timedelta(seconds=score) for key, score in scores if 0 <= score < LATEST}


def read_last_runs(url: str, keys: Iterable[str]) -> dict[str, datetime]:
    """Return when RedBeat last ran each key; raises Refused, without the password."""
    with _reading(url) as client:
        found = {key: _last_run(client.hget(key, "meta")) for key in keys}
    return {key: at for key, at in found.items() if at is not None}


def _last_run(meta: str | None) -> datetime | None:
    """Return the last run in RedBeat's notes of a key; None for none, and for other texts."""
    try:
        written = dict(json.loads(meta or "")["last_run_at"])
        place = written.pop("timezone", "UTC")
        del written["__type__"]
        is_offset = isinstance(place, int | float)
        zone = timezone(timedelta(seconds=place)) if is_offset else ZoneInfo(canonical_name(place))
        return datetime(**written, tzinfo=zone).astimezone(UTC)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


@contextmanager
def _reading(url: str) -> Iterator[Any]:
    try:
        with foreign_redis(url) as client:
            yield client
    except UnicodeDecodeError:
        raise RefusedCommand("Redis has keys that are not text; write RedBeat's prefix") from None


def _definitions(client: Any, prefix: str) -> Iterator[tuple[str, str]]:
    # Keys with a second colon are RedBeat's own: its schedule, its statics, its lock.
    pattern = "".join(f"\\{char}" if char in "*?[]\\" else char for char in prefix) + "*"
    for number, key in enumerate(sorted(client.scan_iter(pattern, count=1_000, _type="hash"))):
        if number >= MOST_KEYS:
            raise RefusedCommand(f"Redis has more than {MOST_KEYS} keys of RedBeat")
        length = client.hstrlen(key, "definition")
        if length:
            yield key, client.hget(key, "definition") if length <= LONGEST else ""


@dataclass(frozen=True, slots=True)
class Application:
    """A Celery application: its `timezone`, the queue of tasks that name none, and RedBeat's plan.

    `due` has the instants of its keys, and `ran` their last runs, as they were at `read_at`.
    """

    zone: str
    queue: str
    due: Mapping[str, datetime]
    read_at: datetime
    ran: Mapping[str, datetime] = field(default_factory=dict)


def entries_of(definitions: Mapping[str, str], app: Application) -> Iterator[Entry | Refused]:
    """Yield the entries of a Celery application."""
    for key, text in definitions.items():
        yield entry_or_refused(key, key, partial(_entry, text, key, app))


def _entry(text: str, key: str, app: Application) -> Entry:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotMove(f"its definition is not JSON: {error}", "save it again") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("schedule"), dict):
        raise CannotMove("its definition has no schedule", "save it again")
    entry = {
        "name": raw.get("name"),
        "task": raw.get("task"),
        "args": raw.get("args") or [],
        "kwargs": raw.get("kwargs") or {},
        "options": _options(raw.get("options") or {}, app.queue),
        "enabled": raw.get("enabled", True),
        "schedule": _schedule(raw["schedule"]),
        **({"due_at": app.due[key].isoformat()} if key in app.due else {}),
        "unsaid": [*_objects("args", raw.get("args")), *_objects("kwargs", raw.get("kwargs"))],
    }
    read, problems = read_document(BeatEntry, entry, Reading())
    if read is None or problems:
        parts = "; ".join(dict.fromkeys(problem.path for problem in problems))
        raise CannotMove(f"its definition is not RedBeat's: {parts}", "save it again")
    found = entry_of(read, key, app.zone, OWNER, app.read_at)
    return replace(found, known=_next(found, key, app))


def _next(found: Entry, key: str, app: Application) -> Known | None:
    """Return when RedBeat runs a key next: never without a score, which is when it looks at it."""
    if not found.active:
        return None
    if key not in app.due:
        return Known((), app.read_at)
    ran = Ran(app.ran.get(key), app.due[key])
    if isinstance(found.fires, CrontabFires):
        return known_crontab(found.fires.crontab, ran, app.read_at)
    if isinstance(found.fires, RecurrenceFires | GridFires):
        return _next_of_rule(found.fires, ran, app.read_at)
    when: Any = found.when
    return known_interval(parse_span(when["every"]), app.zone, ran, app.read_at)


def _next_of_rule(fires: RecurrenceFires | GridFires, ran: Ran, as_of: datetime) -> Known:
    """Return when RedBeat runs a recurrence rule next, by dateutil."""

    def is_due(last: datetime, at: datetime) -> tuple[bool, float | None]:
        found = fires.next(last)
        return (False, None) if found is None else (found <= at, (found - at).total_seconds())

    return Known(tuple(next_instants(is_due, UTC, ran, as_of)), as_of)


def _objects(part: str, value: object) -> Iterator[str]:
    """Yield what RedBeat wrote of objects that JSON cannot hold, such as datetimes."""
    left = [(part, value)]
    while left:
        place, one = left.pop()
        if isinstance(one, dict) and "__type__" in one:
            yield f"{place}: a {str(one['__type__'])[:60]}"
        elif isinstance(one, dict):
            left += [(f"{place}.{name}", inner) for name, inner in one.items()]
        elif isinstance(one, list):
            left += [(f"{place}[{number}]", inner) for number, inner in enumerate(one)]


def _options(options: Any, queue: str) -> Any:
    """Return the options of a message, with a queue for those that name none."""
    return {"queue": queue, **options} if isinstance(options, dict) else options


def _schedule(written: Mapping[str, Any]) -> dict[str, Any]:
    match written.get("__type__"):
        case "crontab":
            return {
                "crontab": {
                    name: value for name, value in written.items() if not name.startswith("_")
                }
            }
        case "interval":
            return {"every_s": written.get("every"), "relative": bool(written.get("relative"))}
        case "rrule":
            return {"rrule": dict(_parts(written))}
        case kind:
            raise CannotMove(
                f"its schedule is a {kind}, which no rule of an action can express", RULES
            )


def _parts(written: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a recurrence rule; an instant is seconds and an offset in minutes."""
    for name, value in written.items():
        if name in ("dtstart", "until") and value is not None:
            offset = written.get(f"{name}_tz") or 0
            try:
                zone = timezone(timedelta(minutes=offset))
                yield name, datetime.fromtimestamp(value, zone).isoformat()
            except (TypeError, ValueError, OverflowError, OSError):
                raise CannotMove(f"its {name} {value!r} is no instant", "save it again") from None
        elif not name.startswith("_") and name not in ("dtstart_tz", "until_tz"):
            yield name, value
