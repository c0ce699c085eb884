"""Operations a page at a time: the last recorded of one small app or of many."""

from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.sql import read_clock
from models.store.operations import pages
from models.tables import operations
from runtime.database import reading
from tests.factories import make_action, make_app, make_operation

HOUR = timedelta(hours=1)


def newest(engine: sa.Engine, wanted: pages.Wanted, limit: int = 10) -> list[UUID]:
    with reading(engine) as connection:
        return [row["id"] for row in pages.newest(connection, wanted, limit)]


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_the_operations_of_many_apps_are_merged_however_many_a_statement_reads(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(pages, "APPS_AT_ONCE", at_once)
    with reading(engine) as connection:
        now = read_clock(connection).replace(microsecond=0)
    apps = [make_app(engine, name) for name in ("a", "b", "c")]
    made = {app.id: make_action(engine, app=app) for app in apps}
    ids = []
    for hours in range(6):
        app = apps[hours % 3]
        at = now - hours * HOUR
        ids.append(make_operation(engine, made[app.id], at, app=app))
        with engine.begin() as connection:
            its_own = sa.update(operations).where(operations.c.id == ids[-1])
            connection.execute(its_own.values(recorded_at=at))

    wanted = pages.Wanted([app.id for app in apps])

    assert newest(engine, wanted) == ids
    assert newest(engine, wanted, 4) == ids[:4]
    assert newest(engine, pages.Wanted([apps[0].id])) == ids[::3]


def test_older_occurrences_are_left_out_though_they_were_recorded_later(
    engine: sa.Engine,
) -> None:
    with reading(engine) as connection:
        now = read_clock(connection).replace(microsecond=0)
    action = make_action(engine)
    late, first, last = (make_operation(engine, action, now - hours * HOUR) for hours in (3, 1, 0))

    assert newest(engine, pages.Wanted([1])) == [last, first, late]
    assert newest(engine, pages.Wanted([1], occurred_since=now - HOUR)) == [last, first]


@pytest.mark.parametrize("apps", [1, 2])
def test_what_a_tick_recorded_at_once_is_paged_by_its_occurrences(
    engine: sa.Engine, apps: int
) -> None:
    with reading(engine) as connection:
        now = read_clock(connection).replace(microsecond=0)
    action = make_action(engine)
    ids = [make_operation(engine, action, now - hours * HOUR) for hours in range(9)]
    with engine.begin() as connection:
        connection.execute(sa.update(operations).values(recorded_at=now))
    app_ids = [1, *(make_app(engine, f"app{number}").id for number in range(1, apps))]

    found: list[UUID] = []
    while len(found) < len(ids):
        wanted = pages.Wanted(app_ids, after=found[-1] if found else None)
        with reading(engine) as connection:
            found += [row["id"] for row in pages.page(connection, wanted, 2)]

    assert found == ids
