"""Timers of systemd as entries, held against `systemd-analyze calendar` where it is installed."""

import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cron import CronSchedule
from models.action.document import ParseContext
from moving.entries import Entry, Refused
from moving.outcomes import outcomes
from moving.systemd import STORED_IS_DUE, entries_of
from moving.systemd.service import NO_USER, OF_A_USER
from moving.wall_fires import WallFires
from tasks.built_in import built_in_steps

STEPS = built_in_steps()
EIGHT_TO_15 = "8,9,10,11,12,13,14,15"
NOW = datetime(2027, 3, 20, 15, tzinfo=UTC)
SERVICE = """
[Service]
Type=oneshot
WorkingDirectory=/srv
Environment="PLACE=/the backups" STAGE=live
User=shop
TimeoutStartSec=1h 30min
ExecStart=/srv/backup.sh --to "/the \
backups"
"""


def found(calendar: str, more: str = "", service: str | None = SERVICE) -> Entry | Refused:
    timer = f"[Unit]\nDescription=Back up.\n\n[Timer]\n# daily\nOnCalendar={calendar}\n{more}"
    (one,) = entries_of([(Path("backup.timer"), timer, service)], "Europe/Paris")
    return one


def entry(*given: str) -> Entry:
    made = found(*given)
    assert isinstance(made, Entry), made
    return made


def test_a_timer_becomes_an_action_with_the_command_of_its_service() -> None:
    made = entry("Mon..Fri 02:30", "Persistent=true\nRandomizedDelaySec=5min")

    env = {"PLACE": "/the backups", "STAGE": "live"}
    run = ["/srv/backup.sh", "--to", "/the backups"]
    assert made.document == {
        "name": "backup",
        "description": "Back up.",
        "owner": "import:systemd",
        "operations": {"command": {"run": run, "cwd": "/srv", "env": env}},
        "when": {
            "cron_rule": "30 2 * * 1-5",
            "timezone": "Europe/Paris",
            "jitter": "PT5M",
            "jitter_each": True,
        },
        "policy": {"look_back": "P366D", "time_limit": "PT1H30M"},
    }
    assert made.remarks == ("left out of its service: User=shop",)


def test_the_action_can_be_stored() -> None:
    steps = built_in_steps()
    context = ParseContext("UTC", NOW, steps, created_at=NOW, celery=None, commands=None)
    (made,) = outcomes([entry("daily", "Persistent=true")], context)

    assert (made.kind, made.remarks) == ("differs", ("left out of its service: User=shop",))
    assert made.difference is not None
    assert made.difference.count == 0


def test_no_action_looks_back_longer_than_operations_are_kept() -> None:
    context = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, commands=None)
    given = [entry("daily", "Persistent=true"), replace(entry("daily"), name="on time")]

    late, on_time = outcomes(given, context, kept_for=timedelta(days=90))

    assert late.document is not None
    assert late.document["policy"]["look_back"] == "P90D"
    assert "a missed run is caught up for P90D" in late.remarks[-1]
    assert on_time.remarks == given[1].remarks


CALENDARS = [
    ("daily", "0 0 * * *"),
    ("weekly", "0 0 * * 1"),
    ("quarterly", "0 0 1 1,4,7,10 *"),
    ("Sat,Sun 10:00", "0 10 * * 0,6"),
    ("*:0/15", "*/15 * * * *"),
    ("*-*-* 09..17:00", "0 9-17 * * *"),
    ("*-*-1,15 06:30:00", "30 6 1,15 * *"),
    ("Mon *-*-1..7 12:00", "0 12 * * mon#1"),
    ("2/3:10", "10 2,5,8,11,14,17,20,23 * * *"),
    ("*-02-29 00:00", "0 0 29 2 *"),
    ("02:30", "30 2 * * *"),
]


@pytest.mark.parametrize(("calendar", "rule"), CALENDARS)
def test_a_calendar_has_the_instants_of_its_rule(calendar: str, rule: str) -> None:
    made = entry(calendar)

    assert made.when == {"cron_rule": rule, "timezone": "Europe/Paris"}
    if shutil.which("systemd-analyze"):
        fires = WallFires(rule, "Europe/Paris", once=True).between(
            NOW, datetime(2033, 1, 1, tzinfo=UTC)
        )
        twelve = list(fires)[:12]
        assert instants(calendar, len(twelve)) == twelve


@pytest.mark.parametrize(
    ("calendar", "when"),
    [
        ("*-*~01 09:00", {"cron_rule": "0 9 L * *"}),
        ("*-02~03,01 09:00", {"cron_rule": "0 9 L-2,L 2 *"}),
        ("*~02", {"cron_rule": "0 0 L-1 * *"}),
        (
            "Mon *-05~07/1 09:00",
            {"rrule": "FREQ=DAILY;BYMONTH=5;BYMONTHDAY=-7,-6,-5,-4,-3,-2,-1;BYDAY=MO"},
        ),
        (
            "Mon,Fri *-*-8..15 9,17:30",
            {"rrule": f"FREQ=DAILY;BYMONTHDAY={EIGHT_TO_15};BYDAY=MO,FR"},
        ),
    ],
)
def test_days_from_the_end_of_a_month_and_days_that_are_of_both_kinds(
    calendar: str, when: dict[str, str]
) -> None:
    made = entry(calendar)

    assert when.items() <= dict(made.when).items()  # type: ignore[call-overload]
    (outcome,) = outcomes([made], ParseContext("UTC", NOW, STEPS, created_at=NOW, commands=None))
    assert outcome.difference is not None
    assert outcome.difference.count == 0
    if shutil.which("systemd-analyze"):
        assert made.fires is not None
        twelve = list(made.fires.between(NOW, datetime(2045, 1, 1, tzinfo=UTC)))[:12]
        assert instants(calendar, len(twelve)) == twelve


def instants(calendar: str, number: int) -> list[datetime]:
    """Return when systemd elapses next, on a machine in Paris."""
    command = (
        "systemd-analyze",
        "calendar",
        f"--iterations={number}",
        f"--base-time={NOW:%F %T} UTC",
    )
    ran = subprocess.run(
        [*command, calendar], capture_output=True, text=True, check=True, timeout=20,
        env={"TZ": "Europe/Paris", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )  # fmt: skip
    texts = re.findall(r"\(in UTC\): \w+ (\S+ \S+) UTC", ran.stdout)
    return [datetime.fromisoformat(f"{text}+00:00") for text in texts]


def test_a_zone_and_short_look_back() -> None:
    made = entry("*-*-* 09:00:00 Asia/Tokyo", "AccuracySec=10min")

    assert made.when == {"cron_rule": "0 9 * * *", "timezone": "Asia/Tokyo"}
    assert made.policy["look_back"] == "PT10M"


def test_a_fixed_delay_is_one_of_the_action_and_accuracy_is_none() -> None:
    made = entry("02:30", "RandomizedDelaySec=1h\nFixedRandomDelay=yes\nAccuracySec=5min")

    rule = {"cron_rule": "30 2 * * *", "timezone": "Europe/Paris"}
    assert made.when == {**rule, "jitter": "PT1H"}
    assert "its AccuracySec=5min delays nothing: it is due on time" in made.remarks


def test_a_delay_at_random_does_not_make_the_instants_differ() -> None:
    made = entry("*-*-* 09:00:00", "RandomizedDelaySec=1h")

    context = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None, commands=None)
    (outcome,) = outcomes([made], context)
    assert "instants" not in " ".join(outcome.remarks)


@pytest.mark.parametrize("more", ["", "OnBootSec=2min\n", "OnActiveSec=0\n"])
def test_a_timer_that_waits_after_each_run_counts_from_its_end(more: str) -> None:
    made = entry("", f"{more}OnUnitInactiveSec=10min")

    assert made.when == {"every": "PT10M", "from": "end"}
    assert STORED_IS_DUE in made.remarks
    assert made.fires is None


def test_a_night_that_the_clocks_skip_is_left_out_by_systemd() -> None:
    fires = entry("02:30").fires
    assert fires is not None
    until = datetime(2027, 11, 30, tzinfo=UTC)

    here = set(CronSchedule("30 2 * * *", "Europe/Paris").between(NOW, until))
    assert here ^ set(fires.between(NOW, until)) == {datetime(2027, 3, 28, 1, tzinfo=UTC)}


def test_a_span_of_any_length_is_read() -> None:
    endless = "999999999w " * 2
    made = found("daily", f"AccuracySec={endless}", f"{SERVICE}\nTimeoutStartSec={endless}")

    assert isinstance(made, Entry), made
    assert made.policy["time_limit"] == "P7D"


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("/bin/sh -c 'echo $(date)'", ["/bin/sh", "-c", "echo $(date)"]),
        ("/bin/sh -c 'a=$((1+1)); b'", ["/bin/sh", "-c", "a=$((1+1)); b"]),
        ("/bin/sh -c 'echo $$HOME'", ["/bin/sh", "-c", "echo $HOME"]),
        ("/bin/sh -c 'echo $$(date)'", ["/bin/sh", "-c", "echo $(date)"]),
        ("/bin/a --price=5$", ["/bin/a", "--price=5$"]),
        ("/bin/a x$y", ["/bin/a", "x$y"]),
        ("/bin/a $1.00", ["/bin/a", "$1.00"]),
        ("/bin/a \\\n  # why\n  --all \\\n; more\n  --now", ["/bin/a", "--all", "--now"]),
        ("/bin/a \\\n#\n#\n--all", ["/bin/a", "--all"]),
        ("/bin/a \\\r\n  --all", ["/bin/a", "--all"]),
    ],
)
def test_a_command_is_read_as_systemd_reads_it(line: str, run: list[str]) -> None:
    made = found("daily", "", f"[Service]\nExecStart={line}\n")

    assert isinstance(made, Entry), made
    assert made.operations["command"] == {"run": run, "cwd": "/"}


@pytest.mark.parametrize("calendar", ["hourly UTC", "daily Asia/Tokyo", "weekly UTC", "Minutely"])
def test_a_short_name_may_have_a_zone(calendar: str) -> None:
    made = entry(calendar)

    assert made.when["timezone"] == [*calendar.split(), "Europe/Paris"][1]  # type: ignore[index]
    if shutil.which("systemd-analyze"):
        assert made.fires is not None
        three = list(made.fires.between(NOW, datetime(2027, 5, 1, tzinfo=UTC)))[:3]
        assert instants(calendar, 3) == three


@pytest.mark.parametrize(
    ("span", "limit"),
    [
        ("1.5h", "PT1H30M"),
        ("1min 30s", "PT1M30S"),
        ("500ms", "PT1S"),
        ("1M", "P7D"),
        ("90", "PT1M30S"),
    ],
)
def test_a_span_is_what_systemd_means_by_it(span: str, limit: str) -> None:
    made = found("daily", "", f"{SERVICE}\nTimeoutStartSec={span}")

    assert isinstance(made, Entry), made
    assert made.policy["time_limit"] == limit


@pytest.mark.parametrize(
    ("lines", "limit"),
    [
        # A simple service has started once its program runs.
        ("TimeoutStartSec=30", "P7D"),
        ("Type=exec\nTimeoutStartSec=30\nRuntimeMaxSec=1h", "PT1H"),
        ("Type=oneshot\nTimeoutStartSec=30\nRuntimeMaxSec=1h", "PT30S"),
        ("Type=oneshot\nTimeoutSec=30", "PT30S"),
        ("Type=oneshot\nTimeoutStartSec=infinity", "P7D"),
    ],
)
def test_the_time_limit_is_the_one_that_ends_the_program(lines: str, limit: str) -> None:
    made = found("daily", "", f"[Service]\nExecStart=/a\nDynamicUser=no\n{lines}\n")

    assert isinstance(made, Entry), made
    assert (made.policy["time_limit"], made.remarks) == (limit, (NO_USER,))


def test_what_an_action_does_not_have_is_reported() -> None:
    units = "[Unit]\nDescription=x\nAfter=network.target\nOnFailure=mail@%n.service\n"
    service = (
        f"{units}[Service]\nExecStart=/a\nRestart=always\nNice=0\nNoNewPrivileges=no\nUser=me\n"
    )
    made = found("daily", "WakeSystem=yes\nRandomizedDelaySec=0\n", service)

    assert isinstance(made, Entry), made
    assert made.remarks == (
        "left out of its timer: WakeSystem=yes",
        "left out of its service: OnFailure=mail@%n.service, Restart=always, User=me",
    )


@pytest.mark.parametrize(
    ("folder", "lines", "remarks", "cwd"),
    [
        ("/etc/systemd/system", "", (NO_USER,), "/"),
        ("/root", "WorkingDirectory=/srv", (NO_USER,), "/srv"),
        ("/tmp", "User=0", ("left out of its service: User=0",), "/"),
        ("/tmp", "User=shop", ("left out of its service: User=shop",), "/"),
        ("/tmp", "DynamicUser=yes", ("left out of its service: DynamicUser=yes",), "/"),
        ("/home/a/.config/systemd/user", "", (OF_A_USER,), None),
        ("/usr/lib/systemd/user", "WorkingDirectory=/srv", (OF_A_USER,), "/srv"),
    ],
)
def test_the_account_and_the_folder_of_a_service_are_those_of_systemd(
    folder: str, lines: str, remarks: tuple[str, ...], cwd: str | None
) -> None:
    service = f"[Service]\nExecStart=/a\n{lines}\n"
    (made,) = entries_of([(Path(folder, "a.timer"), "[Timer]\nOnCalendar=daily\n", service)], "UTC")

    assert isinstance(made, Entry), made
    assert (made.remarks, made.operations["command"].get("cwd")) == (remarks, cwd)


def test_a_template_runs_nothing_before_it_has_an_instance() -> None:
    (made,) = entries_of([(Path("dump@.timer"), "[Timer]\nOnCalendar=daily\n", SERVICE)], "UTC")

    assert isinstance(made, Refused), made
    assert made.why == "it is a template, of which systemd runs instances"
    assert made.instead == "copy it and its service as dump@NAME for each, without %i"


def test_doubled_signs_stand_for_one() -> None:
    lines = 'Environment="A=1 %%"\nExecStart=/a "100%% \\"$$HOME\\" $$(x)"\n'
    made = found("daily", "", f"[Service]\n{lines}")

    assert isinstance(made, Entry), made
    assert made.operations["command"] == {
        "run": ["/a", '100% "$HOME" $(x)'], "cwd": "/", "env": {"A": "1 %"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("calendar", "more", "service", "why"),
    [
        ("2030-01-01", "", SERVICE, "names a year"),
        ("*-*~32", "", SERVICE, "is no day before a month's end"),
        ("*-*~x", "", SERVICE, "is no day before a month's end"),
        ("*:*:0/10", "", SERVICE, "is not at full minutes"),
        ("Mon *-*-8..15 *:*", "", SERVICE, "must both match"),
        ("Mon *-*~07/1 *:*", "", SERVICE, "must both match"),
        ("5", "", SERVICE, "has the date '5'"),
        ("now and then", "", SERVICE, "has the part 'now'"),
        ("daily", "OnBootSec=5min", SERVICE, "its OnBootSec counts from a start"),
        ("", "OnUnitActiveSec=5min", SERVICE, "its OnUnitActiveSec counts from a start"),
        ("daily", "OnUnitInactiveSec=5min", SERVICE, "its OnUnitInactiveSec counts from a start"),
        ("", "", SERVICE, "it has no OnCalendar"),
        ("daily", "", None, "its service file is not beside it"),
        ("daily", "", "[Service]\nExecStart=/a\nExecStart=/b", "2 ExecStart"),
        ("daily", "", "[Service]\nExecStart=/a %n", "has specifiers or variables (%)"),
        ("daily", "", "[Service]\nExecStart=/a $$x $B", "has specifiers or variables ($)"),
        ("daily", "", "[Service]\nExecStart=/a x${B}y", "has specifiers or variables ($)"),
        ("daily", "", "[Service]\nExecStart=-/a", "has a prefix"),
        ("daily", "", "[Service]\nExecStart=/a 'x\\ty'", "has escapes"),
        ("daily", "", "[Service]\nExecStart=/a ; /b", "holds several programs"),
        ("daily", "", "[Service]\nExecStart=/a\nExecStopPost=/b", "1 ExecStart and ExecStopPost"),
        (
            "daily",
            "",
            "[Service]\nExecStart=/a\nEnvironment=B=%h",
            "has specifiers or variables (%)",
        ),
        (
            "daily",
            "",
            "[Service]\nType=oneshot\nExecStart=/a\nTimeoutStartSec=soon",
            "is not a span of time",
        ),
        ("daily", "", "[Service]\nExecStart=/a 'b", "quotes are not closed"),
    ],
)
def test_what_no_action_can_say_is_refused(
    calendar: str, more: str, service: str | None, why: str
) -> None:
    made = found(calendar, more, service)

    assert isinstance(made, Refused), made
    assert why in made.why
    assert made.instead
