"""The example's actions say what its `beat_schedule` said."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action, plan_of
from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.rules import CronModel
from models.celery_task import CeleryRules
from tests.factories import STEPS

EXAMPLE = Path(__file__).parents[3] / "examples/from_celery_beat"
CONTEXT = ParseContext(
    "UTC", datetime(2026, 11, 21, tzinfo=UTC), celery=CeleryRules(("tasks.*",)), steps=STEPS
)
# Its modules are called as ours are: it is asked in a process of its own.
ASK = """
import json, tasks
from shop import app
print(json.dumps({
    "zone": app.conf.timezone,
    "queue": app.conf.task_default_queue,
    "tasks": sorted(name for name in app.tasks if not name.startswith("celery.")),
    "schedule": app.conf.beat_schedule,
}, default=str))
"""


@pytest.fixture(scope="module")
def beat() -> dict[str, Any]:
    """What the example's application says of itself."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=EXAMPLE, check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """The actions' plans, by name."""
    documents = json.loads((EXAMPLE / "actions.json").read_text(encoding="utf-8"))
    actions = [parse_action(document, CONTEXT) for document in documents]
    return {one.name: plan_of(one) for one in actions}


def test_each_entry_became_an_action_that_sends_the_same(
    beat: dict[str, Any], plans: dict[str, Plan]
) -> None:
    assert plans.keys() == beat["schedule"].keys()
    for name, entry in beat["schedule"].items():
        handed = plans[name].hand_over
        assert handed is not None
        assert handed.task == entry["task"]
        assert handed.task in beat["tasks"]
        assert list(handed.args) == entry.get("args", [])
        assert handed.kwargs == entry.get("kwargs", {})
        assert plans[name].queue == entry.get("options", {}).get("queue", beat["queue"])


def test_each_rule_says_the_same(beat: dict[str, Any], plans: dict[str, Plan]) -> None:
    said: dict[str, str | float] = {}
    for name, plan in plans.items():
        (rule,) = plan.rules
        if isinstance(rule, CronModel):
            assert rule.timezone == beat["zone"]
            said[name] = f"<crontab: {rule.cron_rule} (m/h/dM/MY/d)>"
        if isinstance(rule, IntervalModel):
            said[name] = rule.every / timedelta(seconds=1)

    assert said == {name: one["schedule"] for name, one in beat["schedule"].items()}
