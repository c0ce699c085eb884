"""Every small app gets an action `maintenance`, once; both stores."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.sql import database_now
from models.store import actions
from models.store.tenants import storing
from models.tables import actions as actions_table
from models.tables import audit
from models.tables import small_apps as small_apps_table
from models.tenant.document import parse_small_app
from scheduler.changes import default_actions, deletion
from tests.factories import DEFAULT_APP, STEPS, author, make_action, make_app
from tests.transactions import act, execute, fetched


def maintenance_of(engine: sa.Engine, app: SmallApp = DEFAULT_APP) -> list[dict[str, Any]]:
    return act(engine, actions.listed, app.id)


def made_app(engine: sa.Engine, **document: Any) -> SmallApp:
    """Make a small app as `app add` does."""
    with engine.begin() as connection:
        app, _ = storing.apply(connection, parse_small_app({"name": "shop", **document}))
        default_actions.give_maintenance(connection, app, STEPS)
    return app


def test_migrate_gives_each_small_app_its_maintenance_at_four_in_its_zone(
    engine: sa.Engine,
) -> None:
    shop = make_app(engine, "shop", zone="Europe/Paris")

    migrated = default_actions.migrate(engine, STEPS)

    assert migrated.maintained == ("default", "shop")
    (action,) = maintenance_of(engine, shop)
    seen = (action["name"], action["owner"], action["active"])
    assert seen == ("maintenance", "minutebook", True)
    document = act(engine, actions.revision_document, action["uid"], 1)
    assert document is not None
    assert document["when"] == {"cron_rule": "0 4 * * *", "timezone": "Europe/Paris"}
    assert document["operations"] == {"maintenance": True}
    # A machine that sleeps at four is maintained when it wakes up.
    assert document["policy"]["look_back"] == "P1D"
    noted = fetched(engine, sa.select(audit).where(audit.c.small_app_id == shop.id)).one()
    assert (noted.actor, noted.verb) == ("minutebook", "action.create")


def test_migrating_again_and_at_once_makes_it_once(engine: sa.Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: default_actions.migrate(engine, STEPS), range(4)))

    assert sorted(one.maintained for one in done) == [(), (), (), ("default",)]
    assert len(maintenance_of(engine)) == 1


@pytest.mark.parametrize("admin", ["deletes", "renames"])
def test_what_an_admin_made_of_it_stays(engine: sa.Engine, admin: str) -> None:
    default_actions.migrate(engine, STEPS)
    (action,) = maintenance_of(engine)
    if admin == "deletes":
        deletion.delete(engine, action["uid"], author())
    else:
        execute(engine, sa.update(actions_table).values(name="nightly"))
    before = maintenance_of(engine)

    again = default_actions.migrate(engine, STEPS)

    assert again.maintained == ()
    assert maintenance_of(engine) == before


def test_an_action_of_that_name_is_the_admins_and_stays(engine: sa.Engine) -> None:
    own = make_action(engine, name="maintenance")

    before = default_actions.migrate(engine, STEPS)
    deletion.delete(engine, own.uid, author())
    after = default_actions.migrate(engine, STEPS)

    assert (before.maintained, after.maintained) == ((), ())
    assert maintenance_of(engine) == []


def test_a_small_app_that_comes_back_is_maintained_anew(engine: sa.Engine) -> None:
    app = made_app(engine)
    made_app(engine, title="The Shop")
    (action,) = maintenance_of(engine, app)
    deletion.delete(engine, action["uid"], author(app=app))
    its_row = sa.update(small_apps_table).where(small_apps_table.c.id == app.id)
    execute(engine, its_row.values(deleted_at=database_now()))

    made_app(engine)

    (again,) = maintenance_of(engine, app)
    assert again["uid"] != action["uid"]


def test_a_zone_that_nobody_knows_any_more_stops_no_other_small_app(engine: sa.Engine) -> None:
    make_app(engine, "away")
    its_row = sa.update(small_apps_table).where(small_apps_table.c.name == "away")
    execute(engine, its_row.values(zone="Mars/Olympus"))

    assert default_actions.migrate(engine, STEPS).maintained == ("default",)
