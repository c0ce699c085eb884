"""Users and events as they are told on the command line."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from models.tables import users as users_table
from runtime.config import load_settings
from runtime.database import make_engine
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.tables import table


@pytest.fixture
def ann(call: Call) -> str:
    """A user who is there and active."""
    assert call("user", "add", "ann@example.com", "--activated-at", "now").code == 0
    return "ann@example.com"


def test_a_user_is_added_with_what_was_given(call: Call) -> None:
    added = call(
        *("user", "add", "ben", "--email", "ben@example.com", "--name", "Ben", "--group", "shop"),
        *("--group", "board", "--activated-at", "2026-01-05T09:00:00Z", "--no-active"),
    )
    (row,) = call("user", "list", "--json").json
    table = call("user", "list")

    assert (added.code, added.out) == (0, "added user ben <ben@example.com>\n")
    assert {key: row[key] for key in ("id", "email", "name", "active", "groups")} == {
        "id": "ben", "email": "ben@example.com", "name": "Ben", "active": False,
        "groups": ["board", "shop"],
    }  # fmt: skip
    assert row["activated_at"] == "2026-01-05T09:00:00Z"
    assert "inactive" in table.out


def test_a_user_is_shown_changed_and_deleted(call: Call, ann: str) -> None:
    before = call("user", "show", ann, "--json").json
    call("user", "update", ann, "--group", "board", "--group", "shop")

    changed = call("user", "update", ann, "--name", "Ann", "--no-active", "--json").json
    left = call("user", "update", ann, "--group", "", "--active", "--json").json
    deleted = call("user", "delete", ann)

    told = {"name": "Ann", "active": False, "groups": ["board", "shop"]}
    assert changed == before | told
    assert left == before | {"name": "Ann"}
    assert deleted.out == f"deleted user {ann}\n"
    for command in (("show",), ("update", "--name", "x"), ("delete",)):
        gone = call("user", command[0], ann, *command[1:])
        assert (gone.code, gone.err) == (
            2,
            f"error: no user is named {ann!r}; see `minutebook user list`\n",
        )


def test_an_update_activates_a_user_by_an_event(call: Call, write: Write) -> None:
    when = {"after": "instance.user.activated", "delay": "P7D"}
    call("action", "add", write(make_document(name="welcome", when=when)))
    call("user", "add", "ben@example.com")

    updated = call("user", "update", "ben@example.com", "--activated-at", "now", "--json")

    assert updated.json["activated_at"] is not None
    (due,) = call("action", "next", "welcome", "--json").json
    assert due["subject"] == "ben@example.com"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "nothing is to be changed; name what, such as email"),
        (("--email", "nobody"), "email 'nobody'"),
        (("--activated-at", "2199-01-01T00:00:00Z"), "the future"),
        (("--group", "all"), "everybody is in"),
    ],
)
def test_a_wrong_update_changes_nothing(
    call: Call, ann: str, arguments: tuple[str, ...], told: str
) -> None:
    before = call("user", "list", "--json").json

    refused = call("user", "update", ann, *arguments)

    assert refused.code == 2
    assert told in refused.err
    assert call("user", "list", "--json").json == before


@pytest.mark.parametrize(
    "command",
    [
        ("user", "show", "zoe@example.com"),
        ("event", "send", "order.paid", "--user", "zoe@example.com"),
        ("action", "run", "welcome", "--user", "zoe@example.com"),
    ],
    ids=" ".join,
)
def test_a_user_of_another_small_app_is_named_with_it(
    call: Call, write: Write, command: tuple[str, ...]
) -> None:
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    call("--app", "shop", "user", "add", "zoe@example.com")
    on = make_document(name="welcome", when={"on": "instance.user.activated"})
    call("action", "add", write(on))

    refused = call(*command)

    assert refused.code == 2
    assert refused.err == (
        "error: small app 'default' has no user named 'zoe@example.com'; it is in \"shop\";"
        " add --app shop\n"
    )


def test_who_never_activated_the_account_is_warned_about(call: Call) -> None:
    added = call("user", "add", "ben@example.com")

    assert "include_inactivated_users" in added.out
    assert "never activated" in call("user", "list").out


def test_an_import_that_leaves_the_activation_as_it_is_warns_of_no_user(
    call: Call, write: Write
) -> None:
    call("user", "add", "ann@example.com", "--activated-at", "2026-01-01T00:00:00Z")
    call("user", "add", "ben@example.com")

    one = call("user", "import", write([{"id": "ann@example.com", "active": False}], "one.json"))
    both = [{"id": f"{name}@example.com", "active": True} for name in ("ann", "ben")]
    two = call("user", "import", write(both, "two.json"))

    assert "warning" not in one.out
    assert "users without activated_at: 1" in two.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    table(__file__, "what_is_wrong_with_a_user_or_an_event"),
)
def test_what_is_wrong_is_refused(call: Call, ann: str, arguments: list[str], told: str) -> None:
    result = call(*arguments)

    assert (result.code, result.out) == (2, "")
    assert told in result.err


def test_an_event_with_an_id_counts_once(call: Call, ann: str) -> None:
    send = ("event", "send", "order.paid", "--user", ann)
    first = call(*send, "--id", "17")
    again = call(*send, "--id", "17")
    made = [call(*send, "--json").json for _ in range(2)]

    assert first.out.startswith("sent order.paid 17 of ann@example.com, 20")
    assert (again.code, again.out) == (0, "order.paid 17 already exists; nothing changed\n")
    assert [one["change"] for one in made] == ["sent", "sent"]
    assert made[0]["id"] != made[1]["id"]


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
