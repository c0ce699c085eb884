"""docs/how-to/move-back.md, carried out with the real schedulers of Celery."""

import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from cron import CronSchedule
from tests.servers import Broker

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "move-back.md"
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
FORGET = {
    "beat": next(text for kind, text in BLOCKS if "celerybeat-schedule" in text),
    "django": next(text for kind, text in BLOCKS if "PeriodicTask" in text),
    "redbeat": next(text for kind, text in BLOCKS if "redbeat" in text),
}
SCRIPT = Path(__file__).parent / "old_beat.py"
SCHEDULE = """
from celery.schedules import crontab

beat_schedule = {
    "half hours": {"task": "shop.half_hours", "schedule": crontab(minute="*/30")},
    "daily": {"task": "shop.daily", "schedule": crontab(minute="0", hour="7")},
    "weekly": {"task": "shop.weekly", "schedule": crontab("15", "9", day_of_week="mon")},
}
"""
RULES = {
    "shop.half_hours": "*/30 * * * *",
    "shop.daily": "0 7 * * *",
    "shop.weekly": "15 9 * * mon",
}
# The old scheduler has run until then; Minutebook has run since, until the cut-over.
BEFORE, CUT_OVER = "2026-10-01T03:50:00+00:00", "2026-11-25T08:10:00+00:00"
HOURS = 2


class Old:
    def __init__(self, kind: str, folder: Path, redis: str) -> None:
        self.kind, self.folder, self.redis = kind, folder, redis
        (folder / "schedule.py").write_text(SCHEDULE)
        self.runs(BEFORE)

    def runs(self, begin: str, step: str = "") -> list[tuple[str, datetime]]:
        """Return what it sends in two hours, to the minute."""
        asked = {
            "kind": self.kind, "begin": begin, "hours": HOURS, "folder": str(self.folder),
            "redis": self.redis, "step": step,
        }  # fmt: skip
        ran = subprocess.run(
            [sys.executable, str(SCRIPT), json.dumps(asked)],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return [
            (task, datetime.fromisoformat(at).replace(second=0, microsecond=0))
            for task, at in json.loads(ran.stdout)
            if task in RULES
        ]

    def forget(self) -> str:
        """Carry out the step of the page; return what is left for the scheduler's process."""
        step = FORGET[self.kind]
        if self.kind == "beat":
            subprocess.run(step, shell=True, cwd=self.folder, check=True)
            return ""
        return re.sub(r"redis://[^\"]+", self.redis, step)


@pytest.fixture(params=["beat", "django", "redbeat"])
def old(request: pytest.FixtureRequest, tmp_path: Path, broker: Broker) -> Old:
    return Old(request.param, tmp_path, broker.url)


def due() -> list[tuple[str, datetime]]:
    """Return what is due in the two hours after the cut-over."""
    begin = datetime.fromisoformat(CUT_OVER)
    end = begin.replace(hour=begin.hour + HOURS)
    return sorted(
        ((task, at) for task, rule in RULES.items()
         for at in CronSchedule(rule, "Europe/Paris").between(begin, end)),
        key=lambda one: one[1],
    )  # fmt: skip


def test_the_steps_of_the_page_leave_no_gap_and_send_nothing_twice(old: Old) -> None:
    sent = old.runs(CUT_OVER, old.forget())

    assert sent == due()
