"""The demo's files are what they say, and valid."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from data.small_app.document import data_in
from models.action.document import ParseContext, parse_action
from models.tenant.document import parse_small_app
from models.users import parse_users
from runtime.clock import utc_now
from tests.factories import STEPS

DEMO = Path(__file__).parents[3] / "examples/demo"


def read(name: str) -> Any:
    """Return the JSON of one of the demo's files."""
    return json.loads((DEMO / name).read_text(encoding="utf-8"))


def test_the_data_can_be_made_again_byte_for_byte(tmp_path: Path) -> None:
    runpy.run_path(str(DEMO / "make_data.py"))["write"](tmp_path)

    for name in ("a.csv", "b.csv"):
        assert (tmp_path / name).read_bytes() == (DEMO / "data" / name).read_bytes()


def test_the_small_app_is_valid() -> None:
    app = parse_small_app(read("app.json"))

    assert sorted(data_in(app).domains) == ["a", "b"]


def test_the_users_are_valid_and_of_every_kind() -> None:
    users = parse_users(read("users.json"))

    assert "toco@tou.can" in {user.id for user in users}
    assert [user.id for user in users if not user.active] == ["emil@example.com"]
    assert [user.id for user in users if user.activated_at is None] == ["fay@example.com"]


@pytest.mark.parametrize("name", ["weekly-update", "every-minute"])
def test_the_actions_are_valid(name: str) -> None:
    context = ParseContext(default_zone="Europe/Paris", now=utc_now(), steps=STEPS)

    assert parse_action(read(f"actions/{name}.json"), context).name == name.replace("-", " ")
