"""Operations a page at a time: the last recorded of one small app or of many."""

from itertools import product
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.store.operations import pages
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.tables import operations, small_apps
from tests.factories import make_action, make_app, make_operation, update_operation
from tests.ticks import HOUR, MINUTE
from tests.transactions import act, clock_of, execute


def newest(engine: sa.Engine, wanted: pages.Wanted, limit: int = 10) -> list[UUID]:
    return [row["id"] for row in act(engine, pages.page, wanted, limit)]


def test_the_operations_of_many_apps_are_in_one_order(engine: sa.Engine) -> None:
    now = clock_of(engine).replace(microsecond=0)
    apps = [make_app(engine, name) for name in ("a", "b", "c")]
    made = {app.id: make_action(engine, app=app) for app in apps}
    ids = []
    for hours in range(6):
        app = apps[hours % 3]
        at = now - hours * HOUR
        ids.append(make_operation(engine, made[app.id], at, app=app))
        update_operation(engine, ids[-1], recorded_at=at)

    wanted = pages.Wanted(WHOLE_INSTALLATION)

    assert newest(engine, wanted) == ids
    assert newest(engine, wanted, 4) == ids[:4]
    assert newest(engine, pages.Wanted(Scope(apps[0].id))) == ids[::3]


@pytest.mark.parametrize("scope", [Scope(1), WHOLE_INSTALLATION], ids=["one", "all"])
def test_what_was_recorded_at_once_is_paged_by_occurrence(engine: sa.Engine, scope: Scope) -> None:
    now = clock_of(engine).replace(microsecond=0)
    action = make_action(engine)
    ids = [make_operation(engine, action, now - hours * HOUR) for hours in range(9)]
    execute(engine, sa.update(operations).values(recorded_at=now))
    make_app(engine, "other")

    found: list[UUID] = []
    while len(found) < len(ids):
        found += newest(engine, pages.Wanted(scope, after=found[-1] if found else None), 2)

    assert found == ids


def test_filters_choose_among_the_operations_of_all_apps(engine: sa.Engine) -> None:
    now = clock_of(engine).replace(microsecond=0)
    apps = [make_app(engine, name) for name in ("a", "b", "c")]
    ids = {}
    for number, (app, name) in enumerate(product(apps, ("mail out", "clean up"))):
        action = make_action(engine, app=app, name=name)
        for minutes in range(4):
            at = now - (4 * number + minutes) * MINUTE
            id = make_operation(engine, action, at, app=app)
            update_operation(engine, id, recorded_at=at)
            ids[app.name, name, minutes] = id
    execute(engine, sa.update(small_apps).where(small_apps.c.name == "b").values(deleted_at=now))
    cleaned = [ids[name, "clean up", minutes] for name in ("a", "c") for minutes in range(4)]

    assert newest(engine, pages.Wanted(WHOLE_INSTALLATION, words=["CLEAN"])) == cleaned
    assert newest(engine, pages.Wanted(WHOLE_INSTALLATION, words=["clean"]), 3) == cleaned[:3]
    after = pages.Wanted(WHOLE_INSTALLATION, words=["clean"], after=cleaned[2])
    assert newest(engine, after, 3) == cleaned[3:6]
    until = pages.Wanted(WHOLE_INSTALLATION, words=["clean"], until=now - 16 * MINUTE)
    assert newest(engine, until) == cleaned[4:]
    assert newest(engine, pages.Wanted(WHOLE_INSTALLATION, words=["nothing"])) == []
