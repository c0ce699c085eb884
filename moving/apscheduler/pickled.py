"""Jobs as APScheduler 3 pickles them: read as data, without loading a class of theirs.

A pickle is a program. Here it can only make texts, numbers, lists, instants and records. The reader
is the one written in Python: the one in C reserves memory by the lengths that a pickle claims,
before it has seen the data.
"""

import io
import pickle
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from cron.zone import canonical_name
from minutebook import apscheduler as written
from minutebook.error_text import text_of
from moving.entries import CannotMove

TRIGGERS = "apscheduler.triggers."
MOST_PARTS = 50_000
LARGEST = 2**63
INSTEAD = "write the jobs with `python -m minutebook apscheduler`, and import that file"


class _Record:
    """The state of an object, whose class is not loaded."""

    kind: ClassVar[str] = ""

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, Mapping):
            raise pickle.UnpicklingError(f"the state of {self.kind} is not a dictionary")
        self.__dict__.update({str(key): value for key, value in state.items()})


class _Zone(tzinfo):
    """A zone by its name; of a pickled instant with the offset that pytz keeps in it."""

    def __init__(self, key: object, offset: timedelta | None = None) -> None:
        self.key = canonical_name(key) if isinstance(key, str) else "UTC"
        self.offset = offset

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        """Return the offset at an instant on the wall."""
        return ZoneInfo(self.key).utcoffset(at) if self.offset is None else self.offset

    def dst(self, _at: datetime | None) -> None:
        """Return None: it is never used."""

    def tzname(self, _at: datetime | None) -> str:
        """Return the name of the zone."""
        return self.key


def _of_pytz(key: str, offset_s: int | None = None, *_rest: object) -> _Zone:
    return _Zone(key, None if offset_s is None else timedelta(seconds=offset_s))


def _of_zoneinfo(key: str, _from_cache: object = True) -> _Zone:
    return _Zone(key)


class _ZoneInfo:
    """Stands for the class ZoneInfo, whose pickles ask for one of its methods."""


def _getattr(owner: object, name: object) -> Any:
    if (owner, name) != (_ZoneInfo, "_unpickle"):
        raise pickle.UnpicklingError("it holds a builtins.getattr")
    return _of_zoneinfo


def _utc() -> _Zone:
    return _Zone("UTC")


def _records(module: str, *names: str) -> dict[str, Any]:
    whole = f"{TRIGGERS}{module}."
    return {whole + name: type(name, (_Record,), {"kind": whole + name}) for name in names}


# What a pickled job may name, and what stands for it.
KNOWN: Mapping[str, Any] = {
    "datetime.date": date,
    "datetime.datetime": datetime,
    "datetime.timedelta": timedelta,
    "datetime.timezone": timezone,
    "pytz._p": _of_pytz,
    "pytz._UTC": _utc,
    "dateutil.tz.tz.tzutc": _utc,
    "builtins.getattr": _getattr,
    "zoneinfo.ZoneInfo": _ZoneInfo,
    "zoneinfo.ZoneInfo._unpickle": _of_zoneinfo,
    "backports.zoneinfo.ZoneInfo": _ZoneInfo,
    "backports.zoneinfo.ZoneInfo._unpickle": _of_zoneinfo,
    **_records("cron", "CronTrigger"),
    **_records(
        "cron.fields", "BaseField", "WeekField", "DayOfMonthField", "DayOfWeekField", "MonthField"
    ),
    **_records(
        "cron.expressions",
        "AllExpression",
        "RangeExpression",
        "MonthRangeExpression",
        "WeekdayRangeExpression",
        "WeekdayPositionExpression",
        "LastDayOfMonthExpression",
    ),
    **_records("interval", "IntervalTrigger"),
    **_records("date", "DateTrigger"),
    **_records("combining", "AndTrigger", "OrTrigger"),
    **_records("calendarinterval", "CalendarIntervalTrigger"),
}


class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a class; raises UnpicklingError for another."""
        found = KNOWN.get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(f"it holds a {module}.{name}")
        return found


def job_of(pickled: bytes) -> dict[str, Any]:
    """Return a pickled job as `python -m minutebook apscheduler` writes it; raises CannotMove."""
    try:
        state = _Reader(io.BytesIO(pickled)).load()
        _refuse_floods(state)
        return written.job_of(state)
    # A pickle may make its reader raise any error.
    except Exception as error:
        raise CannotMove(f"its pickle is not read: {text_of(error)[:200]}", INSTEAD) from None


def _refuse_floods(state: object) -> None:
    """Raise UnpicklingError for what would be endless as JSON: many parts may share one."""
    left, seen = [state], 0
    while left:
        seen += 1
        match left.pop():
            case Mapping() as found:
                left += [*found.keys(), *found.values()]
            case list() | tuple() as found:
                left += found
            case _Record() as found:
                left += vars(found).values()
            case int() as found if abs(found) > LARGEST:
                raise pickle.UnpicklingError("it holds a number of over 64 bits")
        if seen > MOST_PARTS:
            raise pickle.UnpicklingError(f"it holds over {MOST_PARTS} parts")
