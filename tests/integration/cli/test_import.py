"""`minutebook import …`: actions out of other schedulers' entries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write

DAILY = {"crontab": {"minute": "30", "hour": "2"}}
SOME_MONDAYS = {"crontab": {"minute": "*", "day_of_month": "8-15", "day_of_week": "1"}}


def schedule(**schedules: object) -> dict[str, object]:
    entries = [
        {"name": name, "task": "shop.close", "schedule": one} for name, one in schedules.items()
    ]
    for one in entries:
        one["last_run_at"] = "2026-11-22T15:00:00Z"
    return {
        "minutebook_beat": 1,
        "celery": "5.3.6",
        "timezone": "Europe/Paris",
        "written_at": "2026-11-22T15:01:00Z",
        "entries": entries,
    }


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHED_CELERY_TASKS", "shop.*")


def test_documents_go_to_stdout_and_the_report_to_stderr(call: Call, write: Write) -> None:
    written: Any = schedule(close={"every_s": 900}, night=DAILY, monday=SOME_MONDAYS)
    written["entries"][1]["next_at"] = ["2026-11-23T02:30:00Z"]
    made = call("import", "beat", write(written, "beat.json"))

    assert made.code == 1
    assert [one["name"] for one in made.json] == ["close", "night"]
    _, refused, night, same = (" ".join(one.split()) for one in made.err.split("\n\n"))
    assert refused.startswith("cannot: day_of_month 8-15 and")
    assert refused.endswith("monday (beat.json entries[2])")
    assert night.startswith(
        "differs: at its next instants night (beat.json entries[1])"
        " beat here 2026-11-23T02:30:00Z 2026-11-23T01:30:00Z none 2026-11-24T01:30:00Z"
    )
    assert same == "same: close"


JOB = {"id": "nightly", "name": "nightly", "func": "shop:close", "misfire_grace_time": 3600}
SCHEDULER = {
    "minutebook_apscheduler": 1,
    "apscheduler": "3.11.3",
    "written_at": "2026-11-22T15:01Z",
}


def crontab(line: str) -> Callable[[int], str]:
    return lambda hour: f"0 {hour} * * * {line}\n"


def scheduler_at(hour: int) -> str:
    fields = {"hour": str(hour), "minute": "0", "second": "0"}
    trigger = {"type": "cron", "timezone": "UTC", "fields": fields}
    return json.dumps({**SCHEDULER, "jobs": [{**JOB, "trigger": trigger}]})


SOURCES = [
    pytest.param(["crontab"], crontab("/bin/df -h"), id="crontab"),
    pytest.param(["crontab"], crontab("cd / && df -h"), id="shell"),
    pytest.param(["crontab", "--system"], crontab("root /bin/df -h"), id="accounts"),
    pytest.param(["apscheduler"], scheduler_at, id="apscheduler"),
]


@pytest.mark.parametrize(("kind", "text"), SOURCES)
def test_no_source_changes_what_another_one_made(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: list[str], text: Any
) -> None:
    monkeypatch.setenv("SCHED_COMMANDS", "/bin/df,shell")
    for number, name in enumerate(("shop", "bank", "shop", "bank")):
        (tmp_path / name).write_text(text(5 + number % 2))
        made = call("import", *kind, str(tmp_path / name), "--apply")
        created = int(number < 2)

        assert made.out == f"created {created}, changed 0, unchanged {1 - created}\n", made.err
        assert "warning" not in made.err


def test_an_action_whose_line_was_changed_is_named(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_COMMANDS", "/bin/df,/bin/du")
    file = tmp_path / "crontab"
    arguments = ("import", "crontab", str(file), "--zone", "UTC", "--apply")
    file.write_text("0 7 * * 1 /bin/df -h /\n0 8 * * 1 /bin/du -s /srv\n")
    first = call(*arguments)

    file.write_text("0 7 * * 1 /bin/df -h /home\n0 8 * * 1 /bin/du -s /srv\n")
    second = call(*arguments, "--json")

    assert "warning: " not in first.err
    assert (second.code, second.json["left"]) == (0, ["/bin/df -h /"])
    assert 'warning: "/bin/df -h /": from an earlier import, not in this one; ' in second.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param('{"a":' + "[" * 5_000, "beat.json", id="deep"),
        pytest.param('{"a": "' + "x" * (9 << 20) + '"}', "beat.json", id="huge"),
    ],
)
def test_a_hostile_file_is_refused(call: Call, write: Write, content: str, said: str) -> None:
    refused = call("import", "beat", write(content, "beat.json"))

    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


def test_an_export_keeps_what_a_terminal_must_not_show(call: Call, write: Write) -> None:
    document = make_document(name="kept", description="soft\u00adhyphen, a\u2028line")
    added = call("action", "add", write(document))
    assert added.code == 0, added.err

    exported = call("export").json

    assert [one["description"] for one in exported] == [document["description"]]


def test_an_export_as_json_can_be_applied_again(call: Call, write: Write) -> None:
    file = write(schedule(close={"every_s": 900}, night=DAILY), "beat.json")
    call("import", "beat", file, "--apply")
    exported = call("export").json

    applied = call("--json", "action", "apply", write(exported, "all.json")).json
    assert {one["name"]: one["change"] for one in applied}.items() >= {
        ("close", "unchanged"),
        ("night", "unchanged"),
    }


def test_jobs_of_a_list_keep_their_grid(call: Call, write: Write) -> None:
    jobs = [{"url": f"https://example.com/{n}", "interval_s": 300} for n in "abc"]
    file = write([*jobs, {"url": "https://example.com/d", "interval_s": 0}], "jobs.json")
    first, second = (call("import", "jobs", file, "--apply") for _ in range(2))

    assert (first.code, first.out) == (1, "created 3, changed 0, unchanged 0\n")
    assert (second.code, second.out) == (1, "created 0, changed 0, unchanged 3\n")
    assert "\n  https://example.com/d" in first.err
    starts = [one["when"]["starting_at"][-4:-1] for one in call("import", "jobs", file).json]
    assert starts == [":01", ":41", ":21"] or len(set(starts)) == 3
