"""A new tz release unschedules every action; an old daemon is refused."""

import pytest
import sqlalchemy as sa

from cron import tz_release
from models.store import ticks
from models.store.actions.cursors import UNSCHEDULED
from models.tables import action_cursor
from runtime.database import reading
from scheduler import kernel_release
from scheduler.kernel_release import KERNEL, TZ_RELEASE, OlderRelease, adopt_release
from tests.factories import make_many
from tests.integration.scheduler.test_tick import SEVEN, run_tick


def set_fact(engine: sa.Engine, key: str, value: str) -> None:
    with engine.begin() as connection:
        ticks.set_fact(connection, key, value)


def filed(engine: sa.Engine) -> int:
    """Return how many actions have a computed next occurrence."""
    query = sa.select(sa.func.count()).where(action_cursor.c.next_occurrence_at > UNSCHEDULED)
    with reading(engine) as connection:
        return connection.execute(query).scalar_one()


def test_the_first_daemon_stores_its_release(engine: sa.Engine) -> None:
    assert adopt_release(engine) is False

    with reading(engine) as connection:
        assert ticks.fact(connection, TZ_RELEASE) == tz_release()


def test_a_newer_release_files_every_action_anew(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_release, "BATCH", 3)
    make_many(engine, 10)
    run_tick(engine, SEVEN)
    set_fact(engine, KERNEL, "1")
    set_fact(engine, TZ_RELEASE, "2020a")
    before = filed(engine)

    changed = adopt_release(engine)

    assert (before, changed, filed(engine)) == (10, True, 0)
    assert adopt_release(engine) is False


def test_an_unreadable_kernel_version_counts_as_an_older_one(engine: sa.Engine) -> None:
    adopt_release(engine)
    set_fact(engine, KERNEL, "²")

    assert adopt_release(engine) is True
    assert adopt_release(engine) is False


@pytest.mark.parametrize(("key", "value"), [(KERNEL, "99"), (TZ_RELEASE, "2999z")])
def test_an_older_daemon_is_refused(engine: sa.Engine, key: str, value: str) -> None:
    adopt_release(engine)
    set_fact(engine, key, value)

    with pytest.raises(OlderRelease, match="upgrade it"):
        adopt_release(engine)
