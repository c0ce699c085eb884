"""What bounds a small app: `--app` finds nothing of another one, and sources its own alone."""

import json
from typing import Any
from uuid import UUID

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.tables import table

# What reads or changes the action, the operation or the small app of another tenant by its id.
BY_ID = [str(case.values[0]) for case in table(__file__, "commands_by_id")]


@pytest.fixture
def theirs(call: Call, write: Write) -> dict[str, str]:
    """An action of the small app `default`, an operation of it, and the small app `shop`."""
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    added = call("action", "add", write(make_document(name="secret plan")), "--json").json[0]
    (ran,) = [call("action", "run", "secret plan", "--json").json]
    return {
        "uid": added["uid"],
        "id": ran["id"],
        "document": write({"name": "default", "zone": "Asia/Tokyo"}, "theirs.json"),
    }


def test_another_small_app_is_unknown(call: Call, theirs: dict[str, str]) -> None:
    before = _stored(call, theirs)

    answers = {
        command: call("--app", "shop", *command.format(**theirs).split()) for command in BY_ID
    }

    told = {
        command: one
        for command, one in answers.items()
        if (one.code, one.out) != (2, "") or "secret plan" in one.err
    }
    assert told == {}
    assert _stored(call, theirs) == before


def test_without_app_an_id_is_found_in_the_whole_installation(call: Call, write: Write) -> None:
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    document = write(make_document(name="team update"))
    uid = call("--app", "shop", "action", "add", document, "--json").json[0]["uid"]

    assert call("action", "show", uid, "--json").json["uid"] == str(UUID(uid))


def _stored(call: Call, theirs: dict[str, str]) -> tuple[str, str, str]:
    action = call("action", "show", theirs["uid"], "--json").json
    # Its next occurrence moves with the clock.
    kept = {key: action[key] for key in ("revision", "standing", "document", "operations")}
    operation = call("run", "show", theirs["id"], "--json").json
    app = call("app", "show", "default", "--json").json
    return json.dumps(kept), operation["state"], json.dumps([app["trusted"], app["document"]])


@pytest.mark.parametrize(
    ("source", "remedy"),
    table(__file__, "a_new_small_app_reaches_its_own_folder_alone"),
)
def test_a_new_small_app_reaches_its_own_folder_alone(
    call: Call, write: Write, source: dict[str, Any], remedy: str
) -> None:
    domain = {"source": source, **({"format": "csv"} if "url" in source else {})}

    done = call("app", "apply", write({"name": "shop", "domains": {"a": domain}}, "shop.json"))

    assert done.code == 2
    assert remedy in done.err
    assert call("app", "show", "shop").code == 2
