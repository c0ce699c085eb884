"""Times in the rows of django-celery-beat: without USE_TZ Django keeps them without a zone."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from cron.zone import canonical_name
from models.errors import Refused
from moving.phases import RECORDED_WITHIN

Row = Mapping[str, Any]

# Columns that Django fills in its own zone. Beat itself writes `last_run_at`, always in UTC.
OF_DJANGO = ("start_time", "expires", "clocked_time", "date_changed")
MINUTE = timedelta(minutes=1)
# Offsets of zones are multiples of it.
STEP = timedelta(minutes=15)
WEST, EAST = timedelta(hours=-12), timedelta(hours=14)
ASK = "Django runs with USE_TZ = False: name its TIME_ZONE with --zone"


def zoned(row: Row, zone: str) -> dict[str, Any]:
    """Return a row with its times in UTC; those without a zone are of `zone`."""
    own = ZoneInfo(canonical_name(zone))
    found = dict(row)
    for name in (*OF_DJANGO, "last_run_at"):
        at = _naive(row.get(name))
        if at is not None:
            its = UTC if name == "last_run_at" else own
            found[name] = at.replace(tzinfo=its).astimezone(UTC)
    return found


def check_is_utc(rows: Iterable[Row], now: datetime) -> bool:
    """Return whether the rows show that their times without a zone are in UTC.

    Beat saves a row just after its run, when Django writes `date_changed`. False if no row shows
    anything; raises Refused if they show another zone.
    """
    rows = list(rows)
    for row in rows:
        changed_at = _naive(row.get("date_changed"))
        if changed_at is not None and changed_at > now.replace(tzinfo=None) + MINUTE:
            why = f"the row {row.get('name')!r} was changed at {changed_at}, which is ahead in UTC"
            raise Refused(f"{why}: {ASK}")
    found = list(_offsets(rows))
    if timedelta(0) in found:
        return True
    # An edit may lie any time after a run, but not before it, nor after several runs alike.
    if found and (min(found) < timedelta(0) or (len(found) > 1 and len(set(found)) == 1)):
        hours = min(found) / timedelta(hours=1)
        raise Refused(f"runs are recorded {hours:+g} hours from the changes of their rows: {ASK}")
    return False


def _offsets(rows: Iterable[Row]) -> Iterator[timedelta]:
    """Yield how far the changes of rows lie from their runs, in whole steps, as beat made them."""
    for row in rows:
        ran_at, changed_at = _naive(row.get("last_run_at")), _naive(row.get("date_changed"))
        if ran_at is None or changed_at is None:
            continue
        steps, rest = divmod(changed_at - ran_at, STEP)
        if rest <= RECORDED_WITHIN and WEST <= steps * STEP <= EAST:
            yield steps * STEP


def has_no_zone(row: Row, names: Iterable[str]) -> bool:
    """Return whether one of these columns has a time without a zone."""
    return any(_naive(row.get(name)) is not None for name in names)


def _naive(value: object) -> datetime | None:
    """Return a time of a column that has no zone; None for any other value."""
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return at if at.tzinfo is None else None
