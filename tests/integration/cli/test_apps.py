"""`minutebook app …` and `--owner` as a user calls them."""

import json
from pathlib import Path

import pytest

from models.tables import actions
from runtime.config import load_settings
from runtime.database import make_engine
from tests.factories import make_document, spoil
from tests.integration.cli.conftest import Call, Write

FAR = {"every": "PT1H", "starting_at": "2100-01-01T00:00:00Z"}


@pytest.fixture
def owned(call: Call, write: Write) -> None:
    documents = [
        make_document(name=name, owner=owner, when=FAR)
        for name, owner in [("in", "channel:42"), ("out", "channel:42"), ("other", "channel:4")]
    ]
    assert call("action", "add", write(documents)).code == 0


@pytest.mark.usefixtures("owned")
@pytest.mark.parametrize(
    ("verb", "did"), [("pause", "paused"), ("resume", "resumed"), ("delete", "deleted")]
)
def test_a_dry_run_says_which_actions_a_filter_admits_and_changes_none(
    call: Call, verb: str, did: str
) -> None:
    standing = "paused" if verb == "resume" else "active"
    call("action", "pause", "out" if verb == "resume" else "other")
    before = call("action", "list", "--json").json

    tried = call("action", verb, "--standing", standing, "--dry-run")
    alone = call("action", verb, "out", "--dry-run")

    assert tried.code == alone.code == 0
    assert tried.out == {
        "resume": "would resume 1 of 1 action\n  out\n",
    }.get(verb, f"would {verb} 2 of 2 actions\n  in\n  out\n")
    assert alone.out.startswith("would delete out" if verb == "delete" else "would change out")
    assert call("action", "list", "--json").json == before
    done = call("action", verb, "--standing", standing)
    assert done.out == tried.out.replace(f"would {verb}", did)


@pytest.mark.usefixtures("owned")
def test_an_action_that_cannot_be_resumed_does_not_stop_the_others(call: Call, home: Path) -> None:
    call("action", "pause", "--owner", "channel:42")
    wrong = json.dumps(
        make_document(name="in", owner="channel:42", when={"cron_rule": "61 * * * *"})
    )
    engine = make_engine(load_settings(home, {}))
    with engine.begin() as connection:
        spoil(connection, actions.c.name == "in", document=wrong)
    engine.dispose()

    resumed = call("action", "resume", "--owner", "channel:42")
    call("action", "delete", "out")
    alone = call("action", "resume", "--owner", "channel:42")

    assert (resumed.code, resumed.out) == (1, "resumed 1 of 2 actions\n  out\n")
    assert "minute '61' is above 59" in resumed.err
    assert (alone.code, alone.out) == (1, "resumed 0 of 1 action\n")
