"""Actions as CronJobs of Kubernetes and timers of systemd, read back by their imports."""

import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from models.action import ScheduledActionModel, load_action, plan_of
from models.action.schedule import NO_UID, schedules_of
from moving import kubernetes, to_kubernetes, to_systemd
from moving.entries import Entry
from moving.exported import Exported
from moving.to_systemd import FILE
from runtime.documents import read_yaml_documents
from tasks.built_in import built_in_steps
from tests.unit.moving.test_systemd import instants

NOW = datetime(2027, 3, 20, 15, tzinfo=UTC)
BACKUP = {"run": ["/srv/backup.sh", "a b", '100% "$HOME" $(x)'], "cwd": "/srv", "env": {"A": "1 %"}}
NIGHTLY = {"cron_rule": "30 7 * * 1-5", "timezone": "Europe/Paris"}


def action(when: object = None, step: Any = None, **rest: Any) -> ScheduledActionModel:
    document = {
        "name": "backup",
        "operations": {"command": step or BACKUP},
        "when": when or NIGHTLY,
        "policy": {"look_back": "PT1M", "time_limit": "PT1H"},
        **rest,
    }
    return load_action(document, steps=built_in_steps(), created_at=NOW)


def in_kubernetes(made: ScheduledActionModel) -> Exported:
    return to_kubernetes.exported(made, NOW, "shop:7", "shop")


def in_systemd(made: ScheduledActionModel) -> Exported:
    return to_systemd.exported(made, NOW, "shop")


def from_kubernetes(made: Exported) -> Entry:
    documents = read_yaml_documents(to_kubernetes.text_of([made]))
    (entry,) = kubernetes.entries_of(documents, "UTC", "it.yaml")
    assert isinstance(entry, Entry), entry
    return entry


def units(made: Exported) -> dict[str, str]:
    """Return the files that the text holds, by their names."""
    parts = re.split(rf"^{FILE}(.+)\n", to_systemd.text_of([made]), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_a_command_becomes_a_cron_job_that_is_imported_as_it_was() -> None:
    found = in_kubernetes(action())
    back = from_kubernetes(found)

    assert (found.kind, found.remarks) == ("same", ())
    assert (back.name, back.when) == ("backup", NIGHTLY)
    assert back.operations == {"command": BACKUP}
    assert back.policy == {"overlap": "skip", "look_back": "PT1M", "time_limit": "PT1H"}


def test_the_time_limit_of_an_attempt_is_that_of_a_pod() -> None:
    policy = {"look_back": "PT1M", "time_limit": "PT1H", "retry": {"max_attempts": 3}}
    back = from_kubernetes(in_kubernetes(action(policy=policy)))

    assert (back.policy["time_limit"], back.policy["retry"]["max_attempts"]) == ("PT1H", 3)
    assert kubernetes.DEADLINE_DIFFERS not in back.remarks


def test_a_command_becomes_a_timer_with_a_service() -> None:
    found = in_systemd(action())
    files = units(found)

    assert (found.kind, found.remarks) == ("same", ())
    assert "OnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 7:30:00 Europe/Paris\n" in files["backup.timer"]
    assert files["backup.service"].splitlines()[3:] == [
        "[Service]",
        "Type=oneshot",
        "WorkingDirectory=/srv",
        'Environment="A=1 %%"',
        "TimeoutStartSec=3600",
        'ExecStart="/srv/backup.sh" "a b" "100%% \\"$$HOME\\" $$(x)"',
    ]


@pytest.mark.parametrize(
    "argument", ["x\rExecStartPre=/evil", "x\nExecStartPre=/evil", "\\", "$$ $$(x) $$$(x) $", "%n"]
)
def test_an_argument_is_nothing_but_an_argument(argument: str) -> None:
    made = action(step={"run": ["/bin/echo", argument, "$(A)"], "env": {"A": "$$ $(B)"}})

    command = from_kubernetes(in_kubernetes(made)).operations["command"]
    assert command == {"run": ["/bin/echo", argument, "$(A)"], "env": {"A": "$$ $(B)"}}
    service = units(in_systemd(made))["backup.service"]
    assert re.findall("(?m)^Exec.*?=", service.replace("\r", "\n")) == ["ExecStart="]
    assert service.endswith('"\n')


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"run": ["/bin/true"], "cwd": "/srv\\"}, "ends in \\"),
        ({"run": ["/bin/true"], "cwd": "/srv\rExecStartPre=/evil"}, "has line breaks"),
        ({"run": ["+true"]}, "'+true' as a prefix"),
    ],
)
def test_what_a_unit_would_read_otherwise_is_refused(step: dict[str, Any], why: str) -> None:
    found = in_systemd(action(step=step))

    assert (found.kind, found.entries) == ("cannot", {})
    assert why in found.why


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    for name, text in units(in_systemd(action(step={"run": ["/bin/true"], "cwd": "/"}))).items():
        (tmp_path / name).write_text(text)
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "backup.timer")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert [line for line in checked.stderr.splitlines() if "backup." in line] == []


@pytest.mark.parametrize(
    ("when", "schedule"),
    [
        ({"cron_rule": "*/20 9-17 * * mon-fri"}, "0,20,40 9-17 * * 1-5"),
        ({"cron_rule": "0 9 1-7 * 1"}, "0 9 1-7 * 1"),
        ({"cron_rule": "0 9 * * */2"}, "0 9 * * 0,2,4,6"),
        ({"every": 900, "starting_at": "2026-01-01T00:07:00Z"}, "7,22,37,52 * * * *"),
        ({"every": 3600, "starting_at": "2026-01-01T00:00:00Z"}, "0 * * * *"),
        ({"every": "PT6H", "starting_at": "2026-01-01T03:30:00Z"}, "30 3,9,15,21 * * *"),
        ({"every": 86400, "starting_at": "2026-01-01T00:00:00Z"}, "0 0 * * *"),
    ],
)
def test_both_run_at_the_instants_of_the_action(when: dict[str, Any], schedule: str) -> None:
    made = action(when)
    until = NOW + timedelta(days=60)
    (due,) = (one.between(NOW, until) for one in schedules_of(plan_of(made), NO_UID))
    job, timer = in_kubernetes(made), in_systemd(made)

    assert (job.remarks, timer.remarks) == ((), ())
    back = from_kubernetes(job)
    assert back.when == {"cron_rule": schedule, "timezone": "UTC"}
    assert back.fires is not None
    assert list(back.fires.between(NOW, until)) == due
    if shutil.which("systemd-analyze"):
        texts = re.findall("OnCalendar=(.+)", units(timer)["backup.timer"])
        found = sorted({at for one in texts for at in instants(one, 20)})
        assert found[:20] == due[:20]


@pytest.mark.parametrize("every", [30, 90, 420, 5400, 25_200, "P45D", "P2D"], ids="{0}".format)
def test_an_interval_that_no_rule_says_is_refused_and_not_rounded(every: object) -> None:
    made = action({"every": every, "starting_at": "2026-01-01T00:00:00Z"})

    for found in (in_kubernetes(made), in_systemd(made)):
        assert (found.kind, found.entries) == ("cannot", {})
        assert re.search("is not at full minutes|is not a cron rule", found.why)


def test_a_celery_task_is_sent_by_celery() -> None:
    document = {
        "name": "Close the day!",
        "operations": {"celery_task": {"task": "shop.close", "args": ["Paris"], "priority": 3}},
        "when": NIGHTLY,
        "policy": {"overlap": "allow"},
    }
    made = load_action(document, steps=built_in_steps(), created_at=NOW)

    found = in_kubernetes(made)
    call = [
        "celery",
        "-A",
        "shop",
        "call",
        "shop.close",
        "--queue",
        "celery",
        "--args",
        '["Paris"]',
    ]
    assert from_kubernetes(found).operations["command"]["run"] == call
    assert found.remarks == ("the priority of its message is left out",)
    assert list(found.entries) == ["close-the-day-" + next(iter(found.entries))[-6:]]
    assert "--celery-app" in to_systemd.exported(made, NOW, None).instead
    # Only its sending is what the next run could find running.
    waiting = load_action({**document, "policy": {}}, steps=built_in_steps(), created_at=NOW)
    assert "(overlap skip)" in in_kubernetes(waiting).remarks[-1]
    assert "(overlap skip)" in in_systemd(waiting).remarks[-1]


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ({"operations": {"maintenance": True}}, "its steps (maintenance) are not a program"),
        ({"when": {"on": "instance.user.created"}}, "not due by the clock"),
        ({"when": {"solar": "sunset", "lat": 1, "lon": 2}}, "not due by the clock"),
    ],
)
def test_what_neither_can_run_is_refused(rest: dict[str, Any], why: str) -> None:
    made = action(**rest)

    for found in (in_kubernetes(made), in_systemd(made)):
        assert (found.kind, found.entries) == ("cannot", {})
        assert why in found.why
        assert found.instead


def test_days_that_must_both_match_are_a_timer_and_no_cron_job() -> None:
    made = action({"cron_rule": "0 9 */31,2-7 * 1"})

    assert "must both match" in in_kubernetes(made).why
    assert "OnCalendar=Mon *-*-1..7 9:0:00 UTC" in units(in_systemd(made))["backup.timer"]


def test_what_kubernetes_tries_again_is_reported() -> None:
    made = action(policy={"retry": {"max_attempts": 3}})

    (remark,) = (one for one in in_kubernetes(made).remarks if "tries again" in one)
    assert remark.startswith("Kubernetes tries again after any failure, the action only after")
