"""What a monitor of schedules, such as Sentry Crons, is told of an action."""

import re
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any

from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.rule import Jittered
from models.action.rules import CronModel

MOST = 50
# Minutes that a check-in may be late: an operation may wait for its turn, and a notice for a tick.
MARGIN = 10
_OTHER = re.compile(r"[^a-z0-9_]+")
_PLAIN = re.compile(r"[0-9*/,-]+( [0-9*/,-]+){4}")
_UNITS = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)
DEFAULT_APP = "default"


def slug_of(app: str, action: str) -> str:
    """Return the name of an action's monitor: its own, with that of its small app.

    Letters that Sentry does not take would leave the same of different names, and it refuses digits
    alone: a mark of the whole name then follows.
    """
    name = action if app == DEFAULT_APP else f"{app}-{action}"
    slug = _OTHER.sub("-", name.lower()).strip("-")
    is_whole = name.isascii() and 0 < len(slug) <= MOST and not slug.isdecimal()
    mark = "" if is_whole else f"-{sha256(name.encode()).hexdigest()[:8]}"
    return (slug[: MOST - len(mark)].strip("-") or "action") + mark


def config_of(plan: Plan) -> Mapping[str, Any] | None:
    """Return the schedule and limits of an action, in Sentry's form; None if it has no such form.

    Sentry knows one plain cron rule in a zone, or one interval, and no exceptions. Its margin and
    run time are in minutes.
    """
    schedule = _schedule(plan)
    if schedule is None:
        return None
    longest = max(1, _minutes(plan.time_limit))
    return {**schedule, "checkin_margin": MARGIN + _jitter(plan), "max_runtime": longest}


def _jitter(plan: Plan) -> int:
    """Return the minutes by which an occurrence may lie behind the instant that the rule names."""
    return max(_minutes(one.jitter) for one in plan.rules if isinstance(one, Jittered))


def _minutes(span: timedelta) -> int:
    """Return a span in minutes, rounded up."""
    return -(-span // timedelta(minutes=1))


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
