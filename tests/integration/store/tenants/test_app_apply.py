"""Documents of small apps with their people: applied all or none."""

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from models.errors import InvalidDocument
from models.store import tenants
from models.store.people import users
from models.store.tenants import app_apply
from models.tables import actions, audit
from models.tenant.document import parse_small_app
from models.trust import RESTRICTED, TRUSTED
from runtime.clock import wait_for
from scheduler.changes.change import create_all
from tests.factories import author, make_document, spoil, waits_for_lock

PEOPLE: dict[str, Any] = {
    "users": [{"id": "ann@example.com"}, {"id": "bob@example.com", "groups": ["staff"]}],
    "groups": {"manager": ["ann@example.com"], "empty": []},
}
CLOSED: dict[str, list[object]] = {"closed": ["12-25"]}
LEAVES_OUT = make_document(
    when={"cron_rule": "0 7 * * *", "timezone": "UTC", "except": [{"calendar": "closed"}]}
)


def applied(engine: sa.Engine, *documents: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    models = [(f"[{n}]", parse_small_app(one)) for n, one in enumerate(documents)]
    with engine.begin() as connection:
        done = app_apply.apply_all(connection, models, "tests")
    return [(str(one.change), one.changes) for one in done]


def groups_of(engine: sa.Engine, name: str = "shop") -> dict[str, set[str]]:
    with engine.connect() as connection:
        app = tenants.get(connection, name)
        return {user.id: set(user.groups) for user in users.listed(connection, app.id)}


def test_people_are_written_and_the_same_again_changes_nothing(engine: sa.Engine) -> None:
    shop = {"name": "shop", "settings": {"currency": "EUR"}, **PEOPLE}

    first, second = applied(engine, shop), applied(engine, shop)

    assert first == [("created", ("2 users created", "3 groups created"))]
    assert second == [("unchanged", ())]
    assert groups_of(engine) == {"ann@example.com": {"manager"}, "bob@example.com": {"staff"}}
    with engine.connect() as connection:
        app = tenants.get(connection, "shop")
        assert tenants.settings_of(connection, app.id) == {"currency": "EUR"}
        assert users.group_names(connection, app.id) == {"manager", "empty", "staff"}
        assert connection.execute(sa.select(audit.c.verb)).scalars().all() == ["app.create"]


def test_a_change_made_meanwhile_is_put_right(engine: sa.Engine) -> None:
    shop = {"name": "shop", **PEOPLE}
    applied(engine, shop)
    with engine.begin() as connection:
        users.remove(connection, tenants.get(connection, "shop").id, ["ann@example.com"], [])

    assert applied(engine, shop) == [("changed", ("1 user created",))]


def test_users_that_a_complete_document_leaves_out_are_removed(engine: sa.Engine) -> None:
    applied(engine, {"name": "shop", **PEOPLE})

    only = {"name": "shop", "users": [{"id": "ann@example.com"}], "users_complete": True}
    done = applied(engine, only)

    assert done == [("changed", ("1 user removed", "2 groups removed"))]
    assert groups_of(engine) == {"ann@example.com": {"manager"}}


def test_nothing_is_stored_when_one_document_is_wrong(engine: sa.Engine) -> None:
    with pytest.raises(InvalidDocument) as refused:
        applied(
            engine,
            {"name": "a", "groups": {"staff": ["nobody"]}},
            {"name": "b"},
            {"name": "c", "groups": {"staff": ["no one"]}},
        )

    paths = [problem.path for problem in refused.value.problems]
    assert paths == ["[0]: groups.staff[0]", "[2]: groups.staff[0]"]
    with engine.connect() as connection:
        assert [app.name for app in tenants.listed(connection)] == ["default"]


def test_one_that_was_deleted_comes_back_with_its_people(engine: sa.Engine) -> None:
    applied(engine, {"name": "shop", **PEOPLE})
    with engine.begin() as connection:
        app = tenants.get(connection, "shop")
        tenants.set_trust(connection, app.id, TRUSTED)
        tenants.mark_deleted(connection, app.id)

    done = applied(engine, {"name": "shop"})

    assert done == [("changed", ("restored after deletion",))]
    assert set(groups_of(engine)) == {"ann@example.com", "bob@example.com"}
    with engine.connect() as connection:
        assert tenants.trust_of(connection, app.id) == RESTRICTED


def test_a_calendar_is_removed_beside_an_action_that_cannot_be_read(engine: sa.Engine) -> None:
    applied(engine, {"name": "shop", "calendars": CLOSED})
    with engine.connect() as connection:
        app = tenants.get(connection, "shop")
    changed = create_all(engine, [LEAVES_OUT], author(app=app, calendars=CLOSED))[0]
    with engine.begin() as connection:
        plan = sa.type_coerce(actions.c.plan, sa.Text)
        broken = sa.func.replace(plan, '"rules"', '"rule"')
        spoil(connection, actions.c.uid == changed.uid, plan=broken)

    assert applied(engine, {"name": "shop"}) == [("changed", ('calendar "closed" removed',))]


def test_of_two_at_once_the_second_sees_what_the_first_left(engine: sa.Engine) -> None:
    def shop(day: str) -> dict[str, Any]:
        return {"name": "shop", "calendars": {"holidays": [day]}}

    def apply_old() -> None:
        with engine.begin() as connection:
            old = [("", parse_small_app(shop("12-25")))]
            found.extend(app_apply.apply_all(connection, old, "tests"))

    applied(engine, shop("12-25"))
    found: list[app_apply.AppliedApp] = []
    second = threading.Thread(target=apply_old)
    with engine.begin() as connection:
        app_apply.apply_all(connection, [("", parse_small_app(shop("05-01")))], "tests")
        second.start()
        assert wait_for(lambda: waits_for_lock(engine), 20)
    second.join(20)

    (after,) = found
    assert after.changes == ('calendar "holidays" changed',)
