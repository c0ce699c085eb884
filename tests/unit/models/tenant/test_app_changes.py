from typing import Any

import pytest

from models.store.tenants import read_only
from models.store.tenants.app_apply import changes_between

NAMED = {"domains", "templates", "settings"}
OLD: dict[str, Any] = {
    "name": "shop",
    "zone": "UTC",
    "title": "Shop",
    "domains": {"a": {"source": {"file": "a.csv"}}, "b": {"source": {"file": "b.csv"}}},
    "settings": {"currency": "EUR"},
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"zone": "Europe/Paris"}, ["zone changed"]),
        ({"notify": False}, ["notify added"]),
        ({"title": None}, ["title removed"]),
        ({"domains": {"b": OLD["domains"]["b"]}}, ['domain "a" removed']),
        (
            {"domains": {**OLD["domains"], "b": {"source": {"file": "c.csv"}}, "c": {}}},
            ['domain "b" changed', 'domain "c" added'],
        ),
        ({"settings": {"currency": "USD"}}, ['setting "currency" changed']),
    ],
)
def test_each_change_is_reported(changes: dict[str, Any], expected: list[str]) -> None:
    new = {key: value for key, value in {**OLD, **changes}.items() if value is not None}

    assert changes_between(OLD, new, NAMED) == expected


def test_settings_cannot_be_changed() -> None:
    settings = read_only({"limits": {"rows": [1, 2]}})

    assert settings["limits"]["rows"] == (1, 2)
    with pytest.raises(TypeError):
        settings["limits"]["more"] = 1
