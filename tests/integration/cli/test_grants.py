"""`minutebook app grant`: what a small app may name in its documents."""

from typing import Any

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write

SHOP: dict[str, Any] = {
    "name": "shop",
    "domains": {
        "sales": {"source": {"file": "shop/sales.csv"}},
        "stock": {"source": {"sql": "SELECT 1 AS a", "connection": "warehouse"}},
        "crm": {"source": {"reader": "crm", "parameters": {"token": "env:SHOP_TOKEN"}}},
    },
}
GRANTED = ("--connections", "warehouse", "--readers", "crm", "--env", "SHOP_*")


def of_domain(source: dict[str, Any]) -> dict[str, Any]:
    """Return a small app with that source."""
    return {"name": "shop", "domains": {"a": {"source": source}}}


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        ({"file": "tenant-b/salaries.csv"}, "--files tenant-b/salaries.csv"),
        ({"file": "sales.csv"}, "--files sales.csv"),
        ({"file": "shopping/sales.csv"}, "--files shopping/sales.csv"),
        ({"sql": "SELECT 1", "connection": "warehouse"}, "--connections warehouse"),
        ({"reader": "crm"}, "--readers crm"),
        ({"url": "env:OTHER_URL", "file": None}, "--env OTHER_URL"),
        (
            {"url": "https://x.example/a.csv", "headers": {"Authorization": "file:/run/secrets/a"}},
            "--env file:/run/secrets/a",
        ),
    ],
)
def test_a_new_small_app_reaches_its_own_folder_alone(
    call: Call, write: Write, source: dict[str, Any], remedy: str
) -> None:
    wanted = {key: value for key, value in source.items() if value is not None}
    domain = {"source": wanted, **({"format": "csv"} if "url" in wanted else {})}

    done = call("app", "add", write({"name": "shop", "domains": {"a": domain}}, "shop.json"))

    assert done.code == 2
    assert f"is not granted to this small app; run minutebook app grant shop {remedy}" in done.err
    assert call("app", "show", "shop").code == 2


def test_what_is_granted_is_taken_and_shown(call: Call, write: Write) -> None:
    granted = call("app", "grant", "shop", *GRANTED)
    added = call("app", "add", write(SHOP, "shop.json"))

    expected = "files shop/; connections warehouse; readers crm; env SHOP_*"
    assert (granted.code, granted.out) == (0, f"shop may reach: {expected}\n")
    assert (added.code, added.err) == (0, "")
    assert f"may reach   {expected}\n" in call("app", "show", "shop").out
    assert call("app", "grant", "shop", "--json").json["grants"]["env"] == ["SHOP_*"]


@pytest.mark.parametrize("document", [{"name": "shop"}, {"name": "shop", "zone": "UTC"}, SHOP])
def test_a_small_app_that_was_only_granted_something_is_added_once(
    call: Call, write: Write, document: dict[str, Any]
) -> None:
    call("app", "grant", "shop", *GRANTED)
    file = write(document, "shop.json")

    added = call("app", "add", file)
    again = call("app", "add", file)

    assert (added.code, again.code) == (0, 2)
    assert "already exists" in again.err
    assert call("app", "grant", "shop", "--json").json["grants"]["env"] == ["SHOP_*"]


def test_a_grant_to_a_small_app_with_a_document_frees_no_name(call: Call, write: Write) -> None:
    file = write({"name": "shop"}, "shop.json")
    call("app", "add", file)

    call("app", "grant", "shop", *GRANTED)

    assert call("app", "add", file).code == 2


def test_what_is_taken_back_is_refused_at_the_next_save(call: Call, write: Write) -> None:
    call("app", "grant", "shop", *GRANTED)
    call("app", "add", write(SHOP, "shop.json"))

    call("app", "grant", "shop", "--readers", "")
    done = call("app", "apply", write(SHOP, "shop.json"))

    assert done.code == 2
    assert "--readers crm" in done.err


def test_the_small_app_default_reaches_all(call: Call, write: Write) -> None:
    done = call("app", "apply", write({**SHOP, "name": "default"}, "default.json"))

    assert (done.code, done.err) == (0, "")
    assert "may reach   all that the settings allow\n" in call("app", "show", "default").out


def test_all_is_granted_at_once(call: Call, write: Write) -> None:
    call("app", "grant", "shop", "--all", "--files", "shop/")

    shown = call("app", "grant", "shop", "--json").json["grants"]
    assert (shown["files"], shown["tasks"]) == (["shop/"], ["*"])


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"policy": {"queue": "fast"}}, "--queues fast"),
        ({"hooks": {"on_failure": [{"webhook": "env:CHAT"}]}}, "--env CHAT"),
        ({"hooks": {"on_failure": [{"mail": "a@b.example"}]}}, "--mail a@b.example"),
        ({"hooks": {"on_missed": [{"mail": "a@b.example"}]}}, "--mail a@b.example"),
    ],
)
def test_an_action_names_what_is_granted(
    call: Call, write: Write, changes: dict[str, Any], remedy: str
) -> None:
    call("app", "add", write({"name": "shop"}, "shop.json"))
    document = write(make_document(**changes), "action.json")

    refused = call("--app", "shop", "action", "add", document)
    call("app", "grant", "shop", *remedy.split())
    added = call("--app", "shop", "action", "add", document)

    assert refused.code == 2
    assert f"run minutebook app grant APP {remedy}" in refused.err
    assert added.code == 0


def test_a_task_needs_the_setting_and_the_grant(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_CELERY_TASKS", "shop.*,execute_*")
    call("app", "add", write({"name": "shop"}, "shop.json"))

    def added(task: str) -> str:
        document = make_document(name=task, operations={"celery_task": {"task": task}})
        return call("--app", "shop", "action", "add", write(document, "action.json")).err

    assert "--tasks shop.close" in added("shop.close")
    call("app", "grant", "shop", "--tasks", "*")
    assert added("shop.close") == ""
    assert "SCHED_CELERY_TASKS allows" in added("other.task")
    assert "Minutebook's own workers" in added("execute_scheduled_action")


def test_a_program_with_a_broken_list_of_variables_is_not_granted(call: Call) -> None:
    refused = call("app", "grant", "shop", "--commands", "/srv/backup.sh(DAY,STAGE)")
    granted = call("app", "grant", "shop", "--commands", "/srv/backup.sh(DAY STAGE_*)", "--json")

    assert (refused.code, "names of variables apart by spaces" in refused.err) == (2, True)
    assert granted.json["grants"]["commands"] == ["/srv/backup.sh(DAY STAGE_*)"]
