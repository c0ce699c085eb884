from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from models.recipients import RecipientFilterModel
from models.store import small_apps, users
from models.store.users import Imported
from models.users import parse_users
from runtime.clock import monotonic

ANN = {"id": "ann", "email": "ann@example.com", "groups": ["manager"]}
BEN = {"id": "ben@example.com", "name": "Ben", "groups": ["manager", "shop"]}
SEEN = {"activated_at": "2026-01-05T09:00:00Z"}


def imported(engine: sa.Engine, *rows: dict[str, Any]) -> Imported:
    """Import rows into the default app."""
    with engine.begin() as connection:
        app = small_apps.ensure_default(connection)
        return users.import_users(connection, app.id, parse_users(rows))


def selected(engine: sa.Engine, **rule: Any) -> Sequence[str]:
    """Return the ids of those whom a rule selects."""
    with engine.begin() as connection:
        app = small_apps.ensure_default(connection)
        model = RecipientFilterModel.model_validate(rule)
        return [one.id for one in users.recipients_of(connection, app.id, model)]


def test_users_and_groups_are_made_then_updated(engine: sa.Engine) -> None:
    assert imported(engine, {**ANN, **SEEN}, BEN) == Imported(created=2, updated=0)
    again = {"id": "ann", "email": "ann@example.com", "name": "Ann", "groups": ["board"]}

    assert imported(engine, again) == Imported(created=0, updated=1)

    with engine.connect() as connection:
        app = small_apps.get(connection, "default")
        found = {user.id: user for user in users.listed(connection, app.id)}
        assert users.group_names(connection, app.id) == {"manager", "shop", "board"}
    assert found["ann"].name == "Ann"
    assert found["ann"].groups == {"board"}
    assert found["ann"].activated_at is not None
    assert found["ben@example.com"].groups == {"manager", "shop"}


def test_what_a_row_does_not_name_is_kept(engine: sa.Engine) -> None:
    imported(engine, {**ANN, **SEEN, "active": False})

    imported(engine, {"id": "ann", "email": "new@example.com"})

    with engine.connect() as connection:
        app = small_apps.get(connection, "default")
        (ann,) = users.listed(connection, app.id)
    assert (ann.email, ann.active) == ("new@example.com", False)
    assert ann.groups == {"manager"}
    assert ann.activated_at is not None


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({"users": ["ann"]}, ["ann"], id="by_id"),
        pytest.param({"groups": ["shop"]}, ["ben@example.com"], id="by_group"),
        pytest.param({"users": ["ann"], "groups": ["shop"]}, ["ann", "ben@example.com"], id="both"),
        pytest.param({"groups": ["all"]}, ["ann", "ben@example.com"], id="everybody"),
        pytest.param({"users": ["nobody"], "groups": ["none"]}, [], id="unknown"),
        pytest.param(
            {"groups": ["all"], "only_inactive_users": True}, ["old@example.com"], id="inactive"
        ),
        pytest.param(
            {"groups": ["all"], "only_inactivated_users": True},
            ["new@example.com"],
            id="inactivated",
        ),
    ],
)
def test_whom_a_filter_means(engine: sa.Engine, rule: dict[str, Any], expected: list[str]) -> None:
    old = {"id": "old@example.com", "active": False, "groups": ["shop"], **SEEN}
    imported(engine, {**ANN, **SEEN}, {**BEN, **SEEN}, old, {"id": "new@example.com"})

    assert selected(engine, **rule) == expected


def test_unknown_names_are_told(engine: sa.Engine) -> None:
    imported(engine, ANN)
    rule = RecipientFilterModel(users=("ann", "eve"), groups=("all", "board", "manager"))

    with engine.begin() as connection:
        app = small_apps.ensure_default(connection)
        assert users.unknown_names(connection, app.id, rule) == ["eve", "board"]


def test_ten_thousand_users_come_in_seconds(engine: sa.Engine) -> None:
    rows = [{"id": f"u{n}@example.com", "groups": [f"g{n % 50}", "staff"]} for n in range(10_000)]
    models = parse_users(rows)
    began = monotonic()

    with engine.begin() as connection:
        app = small_apps.ensure_default(connection)
        users.import_users(connection, app.id, models)
        users.import_users(connection, app.id, models)

    assert monotonic() - began < 20
    assert len(selected(engine, groups=["staff"], only_inactivated_users=True)) == 10_000
