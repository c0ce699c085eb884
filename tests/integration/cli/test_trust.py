"""`minutebook app add NAME --trusted`: how far a small app is trusted, and what it may name."""

from typing import Any

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.tables import table

SHOP: dict[str, Any] = {
    "name": "shop",
    "domains": {
        "sales": {"source": {"file": "shop/sales.csv"}},
        "stock": {"source": {"sql": "SELECT 1 AS a", "connection": "warehouse"}},
        "crm": {"source": {"reader": "crm", "parameters": {"token": "env:SHOP_TOKEN"}}},
    },
}
TRUST_IT = "an admin of the installation can allow it by `minutebook app add shop --trusted`"


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


def test_a_trusted_small_app_reaches_what_the_settings_allow(call: Call, write: Write) -> None:
    trusted = call("app", "add", "shop", "--trusted")
    added = call("app", "apply", write(SHOP, "shop.json"))

    said = "trusted: all that the settings allow"
    assert (trusted.code, trusted.out) == (0, f"small app shop is {said}\n")
    assert (added.code, added.err) == (0, "")
    assert f"may reach   {said}\n" in call("app", "show", "shop").out


def test_a_small_app_is_added_by_its_name_with_its_maintenance(call: Call) -> None:
    added = call("app", "add", "shop")
    again = call("app", "add", "shop")

    assert (added.code, added.out) == (0, "small app shop is restricted\n")
    assert "maintenance" in call("--app", "shop", "action", "list").out
    assert (again.code, '"shop" already exists' in again.err) == (2, True)


def test_trust_that_is_taken_back_is_missed_at_the_next_save(call: Call, write: Write) -> None:
    call("app", "add", "shop", "--trusted")
    call("app", "apply", write(SHOP, "shop.json"))

    taken = call("app", "add", "shop", "--restricted")
    done = call("app", "apply", write(SHOP, "shop.json"))

    assert taken.out == "small app shop is restricted\n"
    assert done.code == 2
    assert TRUST_IT in done.err


def test_the_small_app_default_is_trusted(call: Call, write: Write) -> None:
    done = call("app", "apply", write({**SHOP, "name": "default"}, "default.json"))

    assert (done.code, done.err) == (0, "")
    assert "may reach   trusted" in call("app", "show", "default").out


def test_queues_and_tasks_are_added_until_all_are_taken_back(call: Call) -> None:
    call("app", "add", "shop", "--queue", "fast")
    more = call("app", "add", "shop", "--queue", "slow", "--queue", "fast", "--tasks", "shop.*")
    anew = call("app", "add", "shop", "--restricted", "--queue", "slow")

    assert more.out == "small app shop is restricted; queues fast, slow; tasks shop.*\n"
    assert anew.out == "small app shop is restricted; queues slow\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(("--trusted", "--queue", "fast"), "--restricted", id="queue_of_a_trusted_one"),
        pytest.param(("--tasks", "\x1b[31m"), "can be printed", id="unprintable"),
        pytest.param(("--queue", " "), "can be printed", id="empty"),
    ],
)
def test_a_list_that_says_nothing_is_refused(
    call: Call, arguments: tuple[str, ...], why: str
) -> None:
    refused = call("app", "add", "shop", *arguments)

    assert (refused.code, why in refused.err) == (2, True)
    assert call("app", "show", "shop").code == 2


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"policy": {"queue": "fast"}}, "--queue fast"),
        ({"hooks": {"on_failure": [{"webhook": "env:CHAT"}]}}, "--trusted"),
        ({"hooks": {"on_failure": [{"notify": "ops"}]}}, "--trusted"),
        ({"operations": {"command": {"run": ["/bin/true"]}}}, "--trusted"),
    ],
)
def test_an_action_names_what_its_small_app_may(
    call: Call,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    option: str,
) -> None:
    monkeypatch.setenv("SCHED_COMMANDS", "/bin/true")
    monkeypatch.setenv("SCHED_NOTIFY_OPS", "json://127.0.0.1")
    call("app", "add", "shop")
    document = write(make_document(**changes), "action.json")

    refused = call("--app", "shop", "action", "add", document)
    call("app", "add", "shop", *option.split())
    added = call("--app", "shop", "action", "add", document)

    assert refused.code == 2
    assert f"`minutebook app add shop {option}`" in refused.err
    assert added.code == 0


def test_a_restricted_small_app_mails_and_calls_public_addresses(call: Call, write: Write) -> None:
    call("app", "add", "shop")
    hooks = {"on_failure": [{"mail": "a@b.example"}, {"webhook": "https://b.example/hook"}]}

    added = call("--app", "shop", "action", "add", write(make_document(hooks=hooks), "a.json"))

    assert (added.code, added.err) == (0, "")


def test_a_task_needs_the_setting_and_the_trust(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_CELERY_TASKS", "shop.*,execute_*")
    call("app", "add", "shop")

    def added(task: str, **parameters: str) -> str:
        operations = {"celery_task": {"task": task, **parameters}}
        document = make_document(name=task + str(parameters), operations=operations)
        return call("--app", "shop", "action", "add", write(document, "action.json")).err

    assert "`minutebook app add shop --tasks shop.close`" in added("shop.close")
    call("app", "add", "shop", "--tasks", "*")
    assert added("shop.close") == ""
    assert "`minutebook app add shop --queue letters`" in added("shop.close", queue="letters")
    call("app", "add", "shop", "--queue", "letters")
    assert added("shop.close", queue="letters") == ""
    assert "SCHED_CELERY_TASKS allows" in added("other.task")
    assert "Minutebook's own workers" in added("execute_scheduled_action")
