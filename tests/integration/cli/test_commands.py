"""The command line as a user calls it, on an embedded database; exit codes and what is printed."""

import json
import re
import shutil
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

import minutebook
from broker.names import parse_queues
from cli.main import run
from models.store.schema import needed
from models.tables import operations
from processes import daemon
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.transactions import fetched

DEMO = Path(__file__).parents[3] / "examples" / "demo"
WEEKLY = DEMO / "actions" / "weekly-update.json"


def test_a_manual_run_without_a_broker_is_recorded_and_stays_pending(
    call: Call, write: Write
) -> None:
    call("action", "add", write(make_document()))

    result = call("action", "run", "every minute")
    again = call("action", "run", "every minute")

    assert result.code == 0
    assert result.err.startswith("warning: broker unavailable; the daemon sends it later")
    assert again.code == 2
    assert "is already active" in again.err
    shown = call("run", "list", "--json").json
    assert [one["state"] for one in shown] == ["pending"]
    assert shown[0]["triggerer"].startswith("Manual run by ")


class Unfinished(BaseModel):
    """Parameters that pydantic cannot describe."""

    day: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


def test_a_step_with_a_broken_model_hides_no_other(own_steps: None, call: Call) -> None:
    @minutebook.step("unfinished", parameters=Unfinished)
    def unfinished(_context: minutebook.StepContext) -> None: ...

    listed = call("step", "list", "--json")

    steps = {one["name"]: one["parameters"] for one in listed.json["steps"]}
    assert (listed.code, steps["unfinished"], "maintenance" in steps) == (0, None, True)


def test_waiting_in_vain_says_how_it_stands_and_how_to_look_again(call: Call, write: Write) -> None:
    call("action", "add", write(make_document()))

    result = call("action", "run", "every minute", "--wait", "--timeout", "0", "--json")

    shown = f"run {result.json['id']} is {result.json['state']}"
    look = f"minutebook run show {result.json['id']}"
    expected = f"error: stopped waiting: {shown}; to look again: {look}\n"
    assert (result.code, result.err.splitlines(keepends=True)[-1]) == (1, expected)


@pytest.fixture
def demo(call: Call) -> Call:
    """Commands on an installation that has the demo's action, and its users."""
    call("app", "apply", str(DEMO / "app.json"))
    call("--app", "demo", "user", "import", str(DEMO / "users.json"))
    assert call("action", "add", str(WEEKLY), "--app", "demo").code == 0
    return call


def test_a_dry_run_names_every_mail_of_its_steps(demo: Call) -> None:
    run = ("--app", "demo", "action", "run", "weekly update", "--dry-run")

    plan = demo(*run, "--json").json
    planned = plan["outgoing"]
    told = demo(*run).out
    silent = demo(*run, "--no-notify", "--json").json["outgoing"]

    readers = [one["id"] for one in demo("--app", "demo", "user", "list", "--json").json]
    named = {one["source"]: one["to"] for one in planned}
    count = len(named["publish"])
    assert count > 0
    assert set(named["publish"]) <= set(readers)
    assert named["send_execsum"] == [one["address"] for one in plan["recipients"]]
    assert f"  mail of publish to {count}, if something new is published: " in told
    assert silent == [one for one in planned if one["source"] != "publish"]


@pytest.mark.parametrize(
    ("options", "notify"), [((), None), (("--notify",), True), (("--no-notify",), False)]
)
def test_a_run_records_what_the_user_says_about_the_mail(
    call: Call, write: Write, stored: sa.Engine, options: tuple[str, ...], notify: bool | None
) -> None:
    call("action", "add", write(make_document(name="nightly")))

    ran = call("action", "run", "nightly", *options, "--json")

    said = fetched(stored, sa.select(operations.c.id, operations.c.notify)).one()
    assert (str(said.id), said.notify) == (ran.json["id"], notify)


@pytest.mark.parametrize(("answer", "notify"), [("y", True), ("n", False)])
def test_on_a_terminal_a_run_that_would_mail_asks(
    demo: Call, on_terminal: Call, stored: sa.Engine, answer: str, notify: bool
) -> None:
    asked = on_terminal(answer, "--app", "demo", "action", "run", "weekly update")

    said = fetched(stored, sa.select(operations.c.notify)).scalar_one()
    assert re.search(r"mail \d+ users if something new is published\?", asked.err)
    assert said is notify


@pytest.mark.parametrize(
    ("at", "code", "told"),
    [
        pytest.param("2030-01-07T06:00:30", 0, "tick 2030-01-07T06:00:30Z", id="in_utc"),
        pytest.param("2030-01-07T07:00:30+01:00", 0, "tick 2030-01-07T06:00:30Z", id="offset"),
        pytest.param("2030-01-07T06:00:30.5Z", 0, "tick 2030-01-07T06:00:30Z", id="fraction"),
        pytest.param("tomorrow", 2, "--at 'tomorrow': is not an instant", id="rubbish"),
    ],
)
def test_both_commands_of_the_daemon_read_an_instant_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str, code: int, told: str
) -> None:
    home = ["--home", str(tmp_path)]
    assert run([*home, "migrate"]) == 0

    for door in (daemon.main, lambda options: run(["daemon", *options])):
        assert door([*home, "--once", "--at", at]) == code
        assert told in capsys.readouterr().err


def test_looking_makes_nothing(call: Call, tmp_path: Path) -> None:
    home = tmp_path / "nowhere"

    for command in (["status"], ["run", "list"], ["action", "list"]):
        result = call("--home", str(home), *command)
        assert result.code == 2
        assert "there is no Minutebook in" in result.err
    assert not home.exists()


def test_a_health_check_tells_by_its_exit_code(call: Call, tmp_path: Path) -> None:
    before = call("status", "--check", "daemon")
    daemon.main(["--home", str(tmp_path / "home"), "--once"])

    assert (before.code, before.out) == (1, "")
    assert call("status", "--check", "daemon").code == 0
    assert call("status", "--check", "worker").code == 1
    assert call("status", "--check", "moon").code == 2


def test_an_error_is_json_where_json_is_asked_for(call: Call, write: Write) -> None:
    file = write(make_document(name="a", when={"cron_rule": "61 7 * * *"}), "a.json")
    unknown, wrong = (
        call("--json", "action", "show", "nobody"),
        call("action", "add", file, "--json"),
    )

    found = json.loads(unknown.err)
    assert found["error"].startswith("no action is named 'nobody'")
    assert (found["exit_code"], found["problems"], unknown.out) == (2, [], "")
    (problem,) = json.loads(wrong.err)["problems"]
    assert (problem["path"], problem["value"]) == ("when.cron_rule", "61 7 * * *")
    assert "is above 59" in problem["remedy"]


def test_wrong_settings_stop_the_start(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCHED_WORKER_LEASE_S", "5")

    assert call("status").code == 2
    assert daemon.main(["--once"]) == 2
    assert "SCHED_WORKER_LEASE_S" in capsys.readouterr().err


def test_errors_of_both_commands_of_the_daemon_are_safe_for_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for door in (daemon.main, lambda options: run(["daemon", *options])):
        assert door(["--once", "--home", "/dev/null/\x1b]0;owned\x07"]) == 2

        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert r"\x1b]0;owned\x07" in error
        assert "\x1b" not in error


def test_a_home_folder_that_cannot_be_used_is_a_failure(call: Call, tmp_path: Path) -> None:
    (tmp_path / "home" / "up.lock").mkdir()

    result = call("up")

    assert result.code == 1
    assert result.err.strip().endswith(f"error: {tmp_path}/home/up.lock: Is a directory")


def test_a_value_of_an_option_is_refused_in_our_own_words(call: Call) -> None:
    for given, remedy in (("0", "write 1 or more"), ("x", "write a whole number")):
        assert call("run", "list", "--limit", given).err.strip().endswith(f"'--limit': {remedy}")


def test_queues_are_named_by_commas(call: Call) -> None:
    refused = call("worker", "--queues", "quick,,heavy")

    assert (refused.code, parse_queues(" quick, default ,quick")) == (2, "quick,default")
    assert "separate names by commas" in refused.err


def test_migrate_says_what_it_did(call: Call, tmp_path: Path) -> None:
    (tmp_path / "home" / "minutebook.db").unlink()

    first = call("migrate").out

    assert f"from empty to {needed()}" in first
    assert "small app default has an action maintenance now" in first
    again = call("migrate", "--json").json
    assert (again["before"], again["maintained"]) == (again["after"], [])


def test_lines_end_with_a_newline_only(call: Call, write: Write) -> None:
    lines = [
        json.dumps(make_document(name=name, description="a\u2028b"), ensure_ascii=False)
        for name in ("one", "two")
    ]

    assert call("action", "apply", write("\r\n".join(lines), "many.jsonl")).code == 0


def test_a_terminal_that_knows_ascii_only_is_told_all_the_same(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("action", "apply", write(make_document(name="été")))
    printed = BytesIO()
    out = TextIOWrapper(printed, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)

    assert run(["action", "list"]) == 0
    out.flush()
    assert b"\\xe9t\\xe9" in printed.getvalue()


def test_a_deleted_action_is_explained_by_its_uid(call: Call) -> None:
    uid = call("--json", "action", "add", str(WEEKLY)).json[0]["uid"]
    call("action", "delete", "weekly update")

    assert "deleted" in call("action", "explain", uid, "2099-01-05T07:00:00Z").out
    assert call("action", "explain", "weekly update", "2099-01-05T07:00:00Z").code == 2


def test_a_simulation_needs_no_database(call: Call, write: Write, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "home")

    january = ("--from", "2027-01-01T00:00:00Z", "--to", "2027-02-01T00:00:00Z")
    found = call("simulate", "--json", str(WEEKLY), *january).json

    assert found["counts"] == {"sent": 4}
    assert found["fates"][0]["first_at"] == "2027-01-04T06:00:00Z"
    assert not (tmp_path / "home").exists()
