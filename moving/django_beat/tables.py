"""The tables of django-celery-beat, read without Django."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cron import InvalidRule
from cron.zone import canonical_name
from models.errors import Refused as RefusedCommand
from moving.django_beat.times import Row, check_is_utc, zoned

TASKS = "django_celery_beat_periodictask"
# Tables of schedules, by the column that refers to each.
SCHEDULES = {
    "crontab_id": "django_celery_beat_crontabschedule",
    "interval_id": "django_celery_beat_intervalschedule",
    "clocked_id": "django_celery_beat_clockedschedule",
    "solar_id": "django_celery_beat_solarschedule",
}
MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of django-celery-beat: its tasks, and its schedules by referring column and id.

    `is_utc`: their times without a zone are known to be in UTC.
    """

    tasks: tuple[Row, ...]
    schedules: Mapping[str, Mapping[Any, Row]]
    read_at: datetime | None = None
    is_utc: bool = True


def read_tables(connection: sa.Connection) -> Tables:
    """Return the rows of django-celery-beat; raises Refused for a database without them."""
    present = set(sa.inspect(connection).get_table_names())
    if TASKS not in present:
        raise RefusedCommand(
            f"the database has no table {TASKS}; name the database of the Django application"
        )
    return Tables(
        tuple(_rows(connection, TASKS)),
        {
            column: {row["id"]: row for row in _rows(connection, table)}
            for column, table in SCHEDULES.items()
            if table in present
        },
    )


def in_zone(tables: Tables, zone: str | None, now: datetime) -> Tables:
    """Return the rows with times in UTC: those without a zone are of `zone`, if it is named.

    Raises Refused if it is not, and the rows show that it is not UTC.
    """
    if zone is None:
        return replace(tables, is_utc=check_is_utc(tables.tasks, now))
    try:
        canonical_name(zone)
    except InvalidRule as error:
        raise RefusedCommand(f"--zone: {error}") from None
    schedules = {
        column: {key: zoned(row, zone) for key, row in rows.items()}
        for column, rows in tables.schedules.items()
    }
    return replace(
        tables, tasks=tuple(zoned(row, zone) for row in tables.tasks), schedules=schedules
    )


def _rows(connection: sa.Connection, table: str) -> Iterator[Row]:
    # Older releases lack columns, so none is named.
    found = sa.select(sa.text("*")).select_from(sa.table(table)).order_by(sa.text("id"))
    rows = connection.execute(found.limit(MOST_ROWS + 1)).mappings().all()
    if len(rows) > MOST_ROWS:
        raise RefusedCommand(f"the table {table} has more than {MOST_ROWS} rows")
    yield from (dict(row) for row in rows)
