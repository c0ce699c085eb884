"""`minutebook import …`: actions out of other schedulers' entries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interop.crontab import OWN_PATH, OWNER_OF_FILE, RAN_AS
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


def test_the_report_is_a_table_and_then_what_most_share_and_the_worst(
    call: Call, tmp_path: Path
) -> None:
    file = tmp_path / "crontab"
    file.write_text(
        "MAILTO=ann@shop.example\n0 1 * * * /bin/a\n0 2 * * * date +%F\n@reboot /bin/b\n"
    )
    made = call("import", "crontab", str(file), "--zone", "UTC")

    assert made.err.splitlines()[:2] == [
        "same  differs  cannot  entries",
        "   0        2       1        3",
    ]
    parts = [" ".join(one.split()) for one in made.err.split("\n\n")[1:]]
    assert parts[:3] == [
        "2 of 3 entries: MAILTO: failures are mailed, and output is in the log",
        f"2 of 3 entries: {OWN_PATH}",
        f"2 of 3 entries: {RAN_AS.format(OWNER_OF_FILE)}",
    ]
    assert parts[3].startswith("SCHED_COMMANDS has to allow: /bin/a")
    assert parts[4].endswith("/bin/b (crontab:4)")
    assert parts[5].startswith("differs: its command ends at the first %")


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


def test_applying_twice_is_the_same_as_once(call: Call, write: Write) -> None:
    file = write(schedule(close={"every_s": 900}, night=DAILY), "beat.json")
    first, second = (call("import", "beat", file, "--apply") for _ in range(2))

    assert (first.code, first.out) == (0, "created 2, changed 0, unchanged 0\n")
    assert (second.code, second.out) == (0, "created 0, changed 0, unchanged 2\n")


def test_two_sources_with_equal_names_live_side_by_side(call: Call, write: Write) -> None:
    shop = write(schedule(cleanup={"every_s": 900}, close=DAILY), "shop.json")
    bank = write(schedule(cleanup={"every_s": 3600}, open=DAILY), "bank.json")
    for file in (shop, bank, bank, shop):
        made = call("import", "beat", file, "--apply")
        assert (made.code, "warning" in made.err) == (0, False)

    listed = call("--json", "action", "list").json
    owners = {one["name"]: one["owner"] for one in listed}
    assert owners == {
        "cleanup": "import:beat:shop",
        "close": "import:beat:shop",
        "cleanup (bank)": "import:beat:bank",
        "open": "import:beat:bank",
    }
    every = call("--json", "action", "show", "cleanup (bank)").json["document"]["when"]["every"]
    assert every == "PT1H"


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


def beat_at(hour: int) -> str:
    return json.dumps(schedule(nightly={"crontab": {"minute": "0", "hour": str(hour)}}))


SOURCES = [
    pytest.param(["crontab"], crontab("/bin/df -h"), id="crontab"),
    pytest.param(["crontab"], crontab("cd / && df -h"), id="shell"),
    pytest.param(["crontab", "--system"], crontab("root /bin/df -h"), id="accounts"),
    pytest.param(["beat"], beat_at, id="beat"),
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


def test_what_an_import_changes_is_named(call: Call, tmp_path: Path) -> None:
    for number, folder in enumerate(("shop", "bank")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_text(beat_at(5 + number))
        made = call("import", "beat", str(tmp_path / folder / "same"), "--apply")

    assert made.out == "created 0, changed 1, unchanged 0\n"
    assert "an earlier import made them otherwise; if that was another file" in made.err


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


def test_an_action_of_somebody_else_is_not_replaced(call: Call, write: Write) -> None:
    file = write(schedule(close={"every_s": 900}, night=DAILY), "beat.json")
    mine = {**call("import", "beat", file).json[0], "owner": "ann"}
    call("action", "add", write(mine, "mine.json"))

    refused = call("import", "beat", file, "--apply")

    assert (refused.code, refused.out) == (2, "")
    assert "nothing is stored: 1 of these names" in refused.err
    assert call("--json", "action", "show", "close").json["document"]["owner"] == "ann"
    assert call("action", "show", "night").code != 0


def test_a_cut_over_is_stored_as_the_start_of_each_action(call: Call, write: Write) -> None:
    file = write(schedule(close={"every_s": 900}), "beat.json")
    made = call("--json", "import", "beat", file, "--apply", "--cut-over", "2199-01-01T03:00:00Z")

    assert made.json["cut_over_at"] == "2199-01-01T03:00:00Z"
    shown = call("--json", "action", "show", "close").json["document"]
    assert shown["policy"]["starts_at"] == "2199-01-01T03:00:00Z"
    assert shown["when"]["starting_at"] == "2026-11-22T15:15:00Z"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("{", "beat.json", id="no_json"),
        pytest.param(json.dumps([1]), "document", id="a_list"),
        pytest.param('{"a":' + "[" * 5_000, "beat.json", id="deep"),
        pytest.param('{"a": "' + "x" * (9 << 20) + '"}', "beat.json", id="huge"),
    ],
)
def test_a_hostile_file_is_refused(call: Call, write: Write, content: str, said: str) -> None:
    refused = call("import", "beat", write(content, "beat.json"))

    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "soon", "2199-01-01T00:00:30Z"])
def test_a_cut_over_is_a_full_minute_to_come(call: Call, write: Write, at: str) -> None:
    refused = call("import", "beat", write(schedule(close=DAILY), "beat.json"), "--cut-over", at)

    assert refused.code == 2
    assert f"error: --cut-over '{at}'" in refused.err


def test_an_export_of_beat_is_what_was_imported(call: Call, write: Write) -> None:
    file = write(schedule(close={"every_s": 900}, night=DAILY), "beat.json")
    call("import", "beat", file, "--apply")
    made = call("export", "--format", "beat", "--owner", "import:beat:beat")

    assert made.code == 0
    assert "timezone = 'Europe/Paris'\n" in made.out
    assert "'night': {\n        'task': 'shop.close'," in made.out
    assert made.err.splitlines() == [
        "same  differs  cannot  entries",
        "   1        1       0        2",
        "differs  close: beat's grid begins when it starts",
        "same     night",
    ]


def test_an_export_leaves_out_what_the_installation_made(call: Call, write: Write) -> None:
    call("import", "beat", write(schedule(night=DAILY), "beat.json"), "--apply")

    made = call("export", "--format", "beat", "--json").json

    assert [one["name"] for one in made["actions"]] == ["night"]


def test_an_export_keeps_what_a_terminal_must_not_show(call: Call, write: Write) -> None:
    document = make_document(name="kept", description="soft\u00adhyphen, a\u2028line")
    added = call("action", "add", write(document))
    assert added.code == 0, added.err

    exported = call("export").json

    assert [one["description"] for one in exported] == [document["description"]]


def test_an_export_reads_documents_alone(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("action", "add", write([make_document(name="b"), make_document(name="a")]))
    # It reads an action's last operations and its next occurrences.
    monkeypatch.setattr("services.upcoming.shown_in", None)

    assert [one["name"] for one in call("export").json] == ["a", "b"]


def test_an_export_as_json_can_be_applied_again(call: Call, write: Write) -> None:
    file = write(schedule(close={"every_s": 900}, night=DAILY), "beat.json")
    call("import", "beat", file, "--apply")
    exported = call("export").json

    applied = call("--json", "action", "apply", write(exported, "all.json")).json
    assert {one["name"]: one["change"] for one in applied}.items() >= {
        ("close", "unchanged"),
        ("night", "unchanged"),
    }


@pytest.mark.parametrize(
    ("kind", "url", "writer"),
    [
        ("apscheduler", "sqlite:////srv/jobs.db", "python -m minutebook apscheduler -s"),
        ("beat", "postgresql://u:s3cret@host/shop", "python -m minutebook export -A APP"),
        ("beat", "redis://:s3cret@host:6379/0", "python -m minutebook export -A APP"),
    ],
)
def test_a_store_without_its_application_is_answered_with_the_command_to_run_there(
    call: Call, kind: str, url: str, writer: str
) -> None:
    refused = call("import", kind, url)

    assert refused.code == 2
    assert writer in refused.err
    assert "s3cret" not in refused.err


def test_jobs_of_a_list_keep_their_grid(call: Call, write: Write) -> None:
    jobs = [{"url": f"https://example.com/{n}", "interval_s": 300} for n in "abc"]
    file = write([*jobs, {"url": "https://example.com/d", "interval_s": 0}], "jobs.json")
    first, second = (call("import", "jobs", file, "--apply") for _ in range(2))

    assert (first.code, first.out) == (1, "created 3, changed 0, unchanged 0\n")
    assert (second.code, second.out) == (1, "created 0, changed 0, unchanged 3\n")
    assert "\n  https://example.com/d" in first.err
    starts = [one["when"]["starting_at"][-4:-1] for one in call("import", "jobs", file).json]
    assert starts == [":01", ":41", ":21"] or len(set(starts)) == 3


def test_a_refused_import_names_each_action(call: Call, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("5 4 * * * /srv/backup\n7 4 * * * /srv/report\n")

    refused = call("import", "crontab", str(table), "--apply")

    assert [line.partition(" operations")[0] for line in refused.err.splitlines()[-2:]] == [
        "error: /srv/backup:",
        "error: /srv/report:",
    ]


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        pytest.param(None, "shop.close, shop.open", id="nothing_is_allowed"),
        pytest.param("shop.close", "shop.open", id="one_is_allowed"),
        pytest.param("shop.*", None, id="all_are_allowed"),
        pytest.param("*", None, id="anything"),
        pytest.param("bank.*", "shop.close, shop.open", id="others_are_allowed"),
        pytest.param("bank.*,shop.open", "shop.close", id="one_of_several"),
    ],
)
def test_only_tasks_that_are_not_allowed_yet_are_asked_for(
    call: Call,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    allowed: str | None,
    asked: str | None,
) -> None:
    monkeypatch.delenv("SCHED_CELERY_TASKS", raising=False)
    if allowed is not None:
        monkeypatch.setenv("SCHED_CELERY_TASKS", allowed)
    entries: Any = schedule(close={"every_s": 900}, open={"every_s": 900})
    entries["entries"][1]["task"] = "shop.open"

    made = call("import", "beat", write(entries, "beat.json"))

    asked_for = [one for one in made.err.splitlines() if "has to allow" in one]
    assert asked_for == ([] if asked is None else [f"SCHED_CELERY_TASKS has to allow: {asked}"])
