import pytest
import sqlalchemy as sa

from data.store.small_apps import templates_of
from data.store.snapshots import domains_of
from models.errors import NotFound
from models.store import tenants
from models.store.tenants import storing
from models.store.tenants.storing import Applied
from models.tenant.document import parse_small_app
from tests.transactions import act

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


def applied(engine: sa.Engine, **changes: object) -> Applied:
    return act(engine, storing.apply, parse_small_app({**DOCUMENT, **changes}))[1]


def test_a_document_makes_app_domains_and_templates(engine: sa.Engine) -> None:
    assert applied(engine) is Applied.CREATED

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


def test_the_same_document_again_changes_nothing(engine: sa.Engine) -> None:
    applied(engine)

    assert applied(engine) is Applied.UNCHANGED


def test_what_a_document_leaves_out_is_removed(engine: sa.Engine) -> None:
    applied(engine)

    result = applied(engine, domains={"a": {"source": {"file": "other.json"}}}, templates={})

    assert result is Applied.CHANGED
    with engine.connect() as connection:
        app = tenants.get(connection, "shop")
        assert [d.source["file"] for d in domains_of(connection, app.id)] == ["other.json"]
        assert templates_of(connection, app.id) == {}


def test_an_unknown_name_is_answered_with_the_nearest(engine: sa.Engine) -> None:
    applied(engine)

    with pytest.raises(NotFound, match='did you mean "shop"'):
        act(engine, tenants.get, "shopp")
