"""The demo's data can be made again; the actions from beat say what its `beat_schedule` said."""

import json
import runpy
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from models.action.document import plan_of
from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.rules import CronModel
from models.celery_task import CeleryRules
from tests.unit.models.action.minimal import parse

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO, FROM_BEAT = EXAMPLES / "demo", EXAMPLES / "from_celery_beat"
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


def read(file: Path) -> Any:
    """Return the JSON of an example's file."""
    return json.loads(file.read_text(encoding="utf-8"))


def test_the_data_can_be_made_again_byte_for_byte(tmp_path: Path) -> None:
    runpy.run_path(str(DEMO / "make_data.py"))["write"](tmp_path)

    for name in ("a.csv", "b.csv"):
        assert (tmp_path / name).read_bytes() == (DEMO / "data" / name).read_bytes()


@pytest.fixture(scope="module")
def beat() -> dict[str, Any]:
    """What the example's application says of itself."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=FROM_BEAT, check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """The actions' plans, by name."""
    rules = CeleryRules(("tasks.*",))
    actions = [parse(one, celery=rules) for one in read(FROM_BEAT / "actions.json")]
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
