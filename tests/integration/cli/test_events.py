"""Users and events as they are told on the command line."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from models.tables import users as users_table
from runtime.config import load_settings
from runtime.database import make_engine
from tests.integration.cli.conftest import Call


@pytest.fixture
def ann(call: Call) -> str:
    """A user who is there and active."""
    assert call("user", "add", "ann@example.com", "--activated-at", "now").code == 0
    return "ann@example.com"


def test_the_instant_that_an_import_wrote_in_silence_still_raises_its_event(
    call: Call, ann: str, tmp_path: Path
) -> None:
    at = "2026-01-05T09:00:00Z"
    users = tmp_path / "users.json"
    users.write_text(json.dumps({"id": ann, "email": ann, "last_seen_at": at}))
    assert call("user", "import", str(users)).code == 0
    send = ("event", "send", "instance.user.last_seen", "--user", ann, "--at", at)

    first, again = call(*send), call(*send)

    engine = make_engine(load_settings(tmp_path / "home", {}))
    with engine.connect() as connection:
        is_silent = connection.execute(sa.select(users_table.c.last_seen_silent)).scalar_one()
    engine.dispose()
    assert first.out.startswith("sent instance.user.last_seen of ann@example.com")
    assert not is_silent
    assert again.out.endswith("already; nothing changed\n")
