"""What a crontab runs for an action, and the rule of an interval."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cron import CronSchedule
from models.action.document import ScheduledActionModel, load_action, plan_of
from models.action.schedule import NO_UID
from moving.crontab.export import exported
from moving.crontab.programs import crontab_of, program_of
from moving.exported import Exported
from tasks.built_in import built_in_steps

NOW = datetime(2027, 3, 20, 15, tzinfo=UTC)


def action(**changes: Any) -> ScheduledActionModel:
    document = {
        "name": "backup",
        "operations": {"command": {"run": ["/srv/backup.sh"]}},
        "when": {"cron_rule": "30 7 * * 1-5", "timezone": "Europe/Paris"},
        **changes,
    }
    return load_action(document, steps=built_in_steps(), created_at=NOW)


def in_crontab(made: ScheduledActionModel, celery_app: str | None = "shop") -> Exported:
    return exported(made, NOW, celery_app)


@pytest.mark.parametrize(
    ("when", "rule"),
    [
        ({"every": 900, "starting_at": "2026-01-01T00:07:00Z"}, "7,22,37,52 * * * *"),
        ({"every": 3600, "starting_at": "2026-01-01T00:00:00Z"}, "0 * * * *"),
        ({"every": "PT6H", "starting_at": "2026-01-01T03:30:00Z"}, "30 3,9,15,21 * * *"),
        ({"every": 86400, "starting_at": "2026-01-01T00:00:00Z"}, "0 0 * * *"),
    ],
)
def test_a_rule_runs_at_the_instants_of_its_interval(when: dict[str, Any], rule: str) -> None:
    plan = plan_of(action(when=when))
    until = NOW + timedelta(days=60)
    (due,) = (one.between(NOW, until) for one in plan.schedules(NO_UID))

    assert crontab_of(plan.rules[0]) == (rule, "UTC")
    assert list(CronSchedule(rule, "UTC").between(NOW, until)) == due


@pytest.mark.parametrize("every", [30, 90, 420, 5400, 25_200, "P45D", "P2D"], ids="{0}".format)
def test_an_interval_that_no_rule_says_is_refused_and_not_rounded(every: object) -> None:
    found = in_crontab(action(when={"every": every, "starting_at": "2026-01-01T00:00:00Z"}))

    assert (found.kind, found.entries) == ("cannot", {})
    assert re.search("is not at full minutes|is not a cron rule", found.why)


def test_a_celery_task_is_sent_by_celery() -> None:
    task = {"task": "shop.close", "args": ["Paris"], "priority": 3}
    made = action(operations={"celery_task": task}, policy={"overlap": "allow"})

    program = program_of(made, plan_of(made), "shop")
    assert " ".join(program.run) == 'celery -A shop call shop.close --queue celery --args ["Paris"]'
    assert program.remarks == ("the priority of its message is left out",)
    assert "--celery-app" in in_crontab(made, None).instead


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"operations": {"maintenance": True}}, "its steps (maintenance) are not a program"),
        ({"when": {"on": "instance.user.created"}}, "not due by the clock"),
        ({"when": {"solar": "sunset", "lat": 1, "lon": 2}}, "not due by the clock"),
    ],
)
def test_what_no_crontab_can_run_is_refused(changes: dict[str, Any], why: str) -> None:
    found = in_crontab(action(**changes))

    assert (found.kind, found.entries) == ("cannot", {})
    assert why in found.why
    assert found.instead
