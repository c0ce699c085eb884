"""What an admin sees of priorities: before a change, in lists and of what waits."""

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write

# Each verb is proven by HTTP in test_each_verb.py, and each command in test_views.py.
pytestmark = pytest.mark.only_here

DAILY = {"cron_rule": "0 7 * * *", "timezone": "UTC"}


def document(priority: int | None, name: str = "daily") -> dict[str, object]:
    policy = {} if priority is None else {"priority": priority}
    return make_document(name=name, when=DAILY, policy=policy)


def test_the_plan_of_a_change_says_how_the_priority_changes(call: Call, write: Write) -> None:
    new = call("action", "apply", "--dry-run", write(document(50)))
    call("action", "apply", write(document(50)))
    lower = call("action", "apply", "--dry-run", write(document(-5)))
    same = call("action", "apply", "--dry-run", write(document(50)))
    none = call("--json", "action", "apply", "--dry-run", write(document(None)))

    assert "  priority 50" in new.out.splitlines()
    assert "  priority 50 becomes -5" in lower.out
    assert "priority" not in same.out
    (change,) = none.json["actions"]
    assert (change["priority_before"], change["priority"]) == (50, 0)


def test_a_priority_is_shown_where_there_is_one(call: Call, write: Write) -> None:
    call("action", "add", write(document(None)))
    assert "PRIORITY" not in call("action", "list").out
    assert "priority" not in call("action", "show", "daily").out

    added = call("action", "add", write(document(-10, "bulk")))

    assert "priority -10 among operations that wait" in added.out
    assert "priority -10 among operations that wait" in call("action", "show", "bulk").out
    listed = call("action", "list").out.splitlines()
    assert listed[0].split()[-1] == "PRIORITY"
    assert {line.split()[0]: line.split()[-1] for line in listed[1:]}["bulk"] == "-10"
    checked = call("--json", "action", "check", write(document(7, "new"))).json
    assert checked[0]["priority"] == 7


def test_an_operation_shows_the_priority_that_it_has(call: Call, write: Write) -> None:
    call("action", "add", write(document(None)))
    call("action", "add", write(document(10, "urgent")))
    for name in ("daily", "urgent"):
        call("action", "run", name)

    listed = call("--json", "operation", "list").json
    by_name = {one["action_name"]: one for one in listed}
    assert {name: one["priority"] for name, one in by_name.items()} == {"daily": 0, "urgent": 10}
    assert "PRIORITY" in call("operation", "list").out
    assert "  priority       10" in call("operation", "show", by_name["urgent"]["id"]).out
    assert "priority" not in call("operation", "show", by_name["daily"]["id"]).out


def test_a_simulation_shows_the_order_in_each_minute(call: Call, write: Write) -> None:
    files = [write(document(one, f"at {one}"), f"{one}.json") for one in (0, 9)]
    day = ("--from", "2027-01-01T00:00:00Z", "--to", "2027-01-02T00:00:00Z")

    first, second, *_ = call("simulate", *files, *day).out.splitlines()

    assert first.endswith("at 9: sent, priority 9")
    assert second.endswith("at 0: sent")
