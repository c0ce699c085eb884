"""Documents of small apps between staging and production, on both stores."""

from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from data.store import documents as app_documents
from data.store.small_apps import names_in
from data.store.tables import app_documents as table
from tests.integration.data.steps.conftest import Work
from tests.transactions import act, fetched


@pytest.fixture
def shop(work: Work) -> Work:
    """A small app with two documents of design."""
    work.apply(design={"start": {"color": "blue"}, "menu": {"open": True}})
    return work


def published(shop: Work, *names: str) -> list[str]:
    """Publish design documents; return those that moved."""
    operation = uuid4()
    act(shop.engine, app_documents.publish, shop.app.id, "design", names, operation)
    moved = act(shop.engine, app_documents.published_by, shop.app.id, operation)
    return [one.name for one in moved]


def shown(shop: Work, place: str) -> dict[str, dict[str, Any]]:
    return act(shop.engine, app_documents.shown, shop.app.id, place)


def test_a_save_stages_and_leaves_production_alone(shop: Work) -> None:
    published(shop, "start", "menu")

    shop.apply(design={"start": {"color": "red"}, "menu": {"open": True}})

    assert shown(shop, "staging")["design"]["start"] == {"color": "red"}
    assert shown(shop, "production")["design"]["start"] == {"color": "blue"}


def test_only_named_documents_that_differ_are_moved(shop: Work) -> None:
    assert published(shop, "start") == ["start"]
    assert published(shop, "start") == []

    assert shown(shop, "production")["design"] == {"start": {"color": "blue"}}


def test_what_was_never_published_is_gone_when_it_is_left_out(shop: Work) -> None:
    shop.apply()

    assert fetched(shop.engine, sa.select(table)).all() == []


def test_what_was_removed_may_come_back(shop: Work) -> None:
    published(shop, "start", "menu")
    shop.apply()
    published(shop, "start", "menu")

    shop.apply(design={"menu": {"open": False}})

    assert act(shop.engine, names_in, shop.app.id)["design"] == ["menu"]
    assert published(shop, "menu") == ["menu"]


def test_one_kind_does_not_move_another(shop: Work) -> None:
    shop.apply(permissions={"start": {"groups": ["all"]}}, design={"start": {}})

    published(shop, "start")

    assert shown(shop, "production") == {"design": {"start": {}}, "permissions": {}}
