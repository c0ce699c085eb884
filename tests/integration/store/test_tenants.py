"""Small apps and their documents: applied all or none."""

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from data.store.small_apps import templates_of
from data.store.snapshots import domains_of
from models.errors import InvalidDocument, NotFound
from models.store import tenants
from models.store.people import users
from models.store.tenants import app_apply, storing
from models.store.tenants.storing import Applied
from models.tables import actions
from models.tenant.document import parse_small_app
from models.trust import RESTRICTED, TRUSTED
from models.users import parse_users
from runtime.clock import wait_for
from scheduler.changes.change import create_all
from tests.factories import author, make_document, spoil, waits_for_lock
from tests.transactions import act

# A folder that is not a restricted small app's own.
ELSEWHERE = {"domains": {"d": {"source": {"file": "elsewhere/d.csv"}}}}
CLOSED: dict[str, list[object]] = {"closed": ["12-25"]}
LEAVES_OUT = make_document(
    when={"cron_rule": "0 7 * * *", "timezone": "UTC", "except": [{"calendar": "closed"}]}
)
DOCUMENT = {
    "name": "shop",
    "title": "The Shop",
    "zone": "europe/paris",
    "domains": {
        "a": {"source": {"file": "a.csv"}},
        "b": {"source": {"url": "https://example.com/b"}, "format": "json"},
    },
    "templates": {"welcome": {"subject": "Hi", "text": "Hello"}},
}


def stored(engine: sa.Engine, **changes: object) -> Applied:
    return act(engine, storing.apply, parse_small_app({**DOCUMENT, **changes}))[1]


def applied(engine: sa.Engine, *documents: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    models = [(f"[{n}]", parse_small_app(one)) for n, one in enumerate(documents)]
    done = act(engine, app_apply.apply_all, models, "tests")
    return [(str(one.change), one.changes) for one in done]


def test_a_document_makes_app_domains_and_templates(engine: sa.Engine) -> None:
    stored(engine)

    with engine.connect() as connection:
        app = tenants.get(connection, "shop")
        assert tenants.by_id(connection, app.id) == app
        assert app.zone == "Europe/Paris"
        assert tenants.document_of(connection, app.id)["title"] == "The Shop"
        assert {d.name: d.source for d in domains_of(connection, app.id)} == {
            "a": {"file": "a.csv", "format": "csv"},
            "b": {"url": "https://example.com/b", "format": "json"},
        }
        assert templates_of(connection, app.id) == {
            "welcome": {"subject": "Hi", "text": "Hello", "html": None}
        }


def test_what_a_document_leaves_out_is_removed(engine: sa.Engine) -> None:
    again = [stored(engine), stored(engine)]
    result = stored(engine, domains={"a": {"source": {"file": "other.json"}}}, templates={})

    assert [*again, result] == [Applied.CREATED, Applied.UNCHANGED, Applied.CHANGED]
    with engine.connect() as connection:
        app = tenants.get(connection, "shop")
        assert [d.source["file"] for d in domains_of(connection, app.id)] == ["other.json"]
        assert templates_of(connection, app.id) == {}
        with pytest.raises(NotFound, match='did you mean "shop"'):
            tenants.get(connection, "shopp")


def test_nothing_is_stored_when_one_document_is_wrong(engine: sa.Engine) -> None:
    with pytest.raises(InvalidDocument) as refused:
        applied(engine, {"name": "a", **ELSEWHERE}, {"name": "b"}, {"name": "c", **ELSEWHERE})

    paths = [problem.path for problem in refused.value.problems]
    assert paths == ["[0]: domains.d.source.file", "[2]: domains.d.source.file"]
    assert [app.name for app in act(engine, tenants.listed)] == ["default"]


def test_one_that_was_deleted_comes_back_with_its_people(engine: sa.Engine) -> None:
    applied(engine, {"name": "shop"})
    with engine.begin() as connection:
        app = tenants.get(connection, "shop")
        users.import_users(connection, app.id, parse_users([{"id": "ann@example.com"}]))
        tenants.set_trust(connection, app.id, TRUSTED)
        tenants.mark_deleted(connection, app.id)

    done = applied(engine, {"name": "shop"})

    assert done == [("changed", ("restored after deletion",))]
    assert act(engine, users.find, app.id, "ann@example.com") is not None
    assert act(engine, tenants.trust_of, app.id) == RESTRICTED


def test_a_calendar_is_removed_beside_an_action_that_cannot_be_read(engine: sa.Engine) -> None:
    applied(engine, {"name": "shop", "calendars": CLOSED})
    app = act(engine, tenants.get, "shop")
    changed = create_all(engine, [LEAVES_OUT], author(app=app, calendars=CLOSED))[0]
    with engine.begin() as connection:
        plan = sa.type_coerce(actions.c.plan, sa.Text)
        broken = sa.func.replace(plan, '"rules"', '"rule"')
        spoil(connection, actions.c.uid == changed.uid, plan=broken)

    assert applied(engine, {"name": "shop"}) == [("changed", ('calendar "closed" removed',))]


def test_of_two_at_once_the_second_sees_what_the_first_left(engine: sa.Engine) -> None:
    def shop(day: str) -> dict[str, Any]:
        return {"name": "shop", "calendars": {"holidays": [day]}}

    applied(engine, shop("12-25"))
    found: list[tuple[str, tuple[str, ...]]] = []
    second = threading.Thread(target=lambda: found.extend(applied(engine, shop("12-25"))))
    with engine.begin() as connection:
        app_apply.apply_all(connection, [("", parse_small_app(shop("05-01")))], "tests")
        second.start()
        assert wait_for(lambda: waits_for_lock(engine), 20)
    second.join(20)

    assert found == [("changed", ('calendar "holidays" changed',))]
