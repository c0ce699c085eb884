"""What a monitor of schedules, such as Sentry Crons, is told of an action."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.rules import CronModel

MOST = 50
# Minutes that a check-in may be late: an operation may wait for its turn, and a notice for a tick.
MARGIN = 10
_PLAIN = re.compile(r"[0-9*/,-]+( [0-9*/,-]+){4}")
_UNITS = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)
DEFAULT_APP = "default"


def slug_of(app: str, action: str) -> str:
    """Return the name of an action's monitor: its own, with that of its small app."""
    name = action if app == DEFAULT_APP else f"{app}-{action}"
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:MOST].strip("-") or "action"


def config_of(plan: Plan) -> Mapping[str, Any] | None:
    """Return the schedule and limits of an action, in Sentry's form; None if it has no such form.

    Sentry knows one plain cron rule in a zone, or one interval, and no exceptions. Its margin and
    run time are in minutes.
    """
    schedule = _schedule(plan)
    if schedule is None:
        return None
    longest = -(-plan.time_limit // timedelta(minutes=1))
    return {**schedule, "checkin_margin": MARGIN, "max_runtime": max(1, longest)}


def _schedule(plan: Plan) -> dict[str, Any] | None:
    if len(plan.rules) != 1 or plan.closed:
        return None
    rule = plan.rules[0]
    if isinstance(rule, CronModel) and _PLAIN.fullmatch(rule.cron_rule):
        written = {"type": "crontab", "value": rule.cron_rule}
        return {"schedule": written, "timezone": rule.zone}
    if isinstance(rule, IntervalModel):
        for unit, span in _UNITS:
            if not rule.every % span:
                return {"schedule": {"type": "interval", "value": rule.every // span, "unit": unit}}
    return None
