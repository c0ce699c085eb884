"""What a small app uses of a limit is counted by the day or the minute, by the database's clock."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from models.sql import read_clock
from models.store import usage
from models.store.usage import Used
from models.tables import app_usage
from runtime.database import reading
from tests.factories import make_app


def spend(engine: sa.Engine, amount: int, most: int = 0, app: int = 1) -> int:
    with engine.begin() as connection:
        return usage.spend(connection, app, Used.IMPORT_MS, amount, most)


def spent(engine: sa.Engine, app: int = 1) -> int:
    with reading(engine) as connection:
        return usage.spent(connection, app, Used.IMPORT_MS)


def test_amounts_add_up(engine: sa.Engine) -> None:
    assert spent(engine) == 0
    assert [spend(engine, 3), spend(engine, 4)] == [3, 4]
    assert spent(engine) == 7


@pytest.mark.parametrize(
    ("before", "granted"), [(0, 5), (5, 5), (6, 4), (9, 1), (10, 0), (12, 0)], ids=str
)
def test_no_more_is_counted_than_the_limit_allows(
    engine: sa.Engine, before: int, granted: int
) -> None:
    spend(engine, before)

    assert spend(engine, 5, most=10) == granted
    assert spent(engine) == before + granted


def test_each_app_has_its_own(engine: sa.Engine) -> None:
    other = make_app(engine, "other")
    spend(engine, 10)

    assert spend(engine, 5, most=10, app=other.id) == 5
    with reading(engine) as connection:
        found = usage.all_spent(connection, read_clock(connection))
    assert found[Used.IMPORT_MS] == {1: 10, other.id: 5}


def test_a_new_day_begins_anew(engine: sa.Engine) -> None:
    spend(engine, 10)
    with engine.begin() as connection:
        began = connection.execute(sa.select(app_usage.c.starts_at)).scalar_one()
        earlier = sa.update(app_usage).values(starts_at=began - timedelta(days=1))
        connection.execute(earlier)

    assert (began.hour, began.minute, began.second) == (0, 0, 0)
    assert spent(engine) == 0
    assert spend(engine, 5, most=10) == 5
    assert spent(engine) == 5
