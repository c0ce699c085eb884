"""Documents of small apps between staging and production, on both stores."""

from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from data.store import documents as app_documents
from data.store.small_apps import names_in
from data.store.tables import app_documents as table
from models.store.tenants import storing
from models.tenant.document import parse_small_app
from tests.transactions import act, fetched

PUBLISHER = UUID(int=7)


@pytest.fixture
def app(engine: sa.Engine) -> int:
    return applied(engine, design={"start": {"color": "blue"}, "menu": {"open": True}})


def applied(engine: sa.Engine, **document: Any) -> int:
    return act(engine, storing.apply, parse_small_app({"name": "shop", **document}))[0].id


def published(engine: sa.Engine, app: int, *names: str, by: UUID = PUBLISHER) -> list[str]:
    act(engine, app_documents.publish, app, "design", names, by)
    return [one.name for one in act(engine, app_documents.published_by, app, by)]


def design(engine: sa.Engine, app: int, place: str) -> dict[str, Any]:
    return act(engine, app_documents.shown, app, place)["design"]


def test_a_save_stages_and_leaves_production_alone(engine: sa.Engine, app: int) -> None:
    published(engine, app, "start", "menu")

    applied(engine, design={"start": {"color": "red"}, "menu": {"open": True}})

    assert design(engine, app, "staging")["start"] == {"color": "red"}
    assert design(engine, app, "production")["start"] == {"color": "blue"}


def test_only_named_documents_that_differ_are_moved(engine: sa.Engine, app: int) -> None:
    assert published(engine, app, "start") == ["start"]
    assert published(engine, app, "start", by=uuid4()) == []

    assert design(engine, app, "production") == {"start": {"color": "blue"}}


def test_what_was_never_published_is_gone_when_it_is_left_out(engine: sa.Engine, app: int) -> None:
    applied(engine)

    assert fetched(engine, sa.select(table)).all() == []


def test_what_was_removed_may_come_back(engine: sa.Engine, app: int) -> None:
    published(engine, app, "start", "menu")
    applied(engine)
    published(engine, app, "start", "menu", by=uuid4())

    applied(engine, design={"menu": {"open": False}})

    assert act(engine, names_in, app)["design"] == ["menu"]
    assert published(engine, app, "menu", by=uuid4()) == ["menu"]


def test_one_kind_does_not_move_another(engine: sa.Engine, app: int) -> None:
    applied(engine, permissions={"start": {"groups": ["all"]}}, design={"start": {}})

    published(engine, app, "start")

    shown = act(engine, app_documents.shown, app, "production")
    assert shown == {"design": {"start": {}}, "permissions": {}}
