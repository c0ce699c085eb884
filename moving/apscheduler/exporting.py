"""Actions as jobs of APScheduler 3, exactly or with what is lost."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pprint import pformat
from typing import Any

from cron.fields import FIELDS, WEEKDAY, Field
from models.action.document import ScheduledActionModel, plan_of
from models.action.intervals import FromEndModel, IntervalModel
from models.action.plan import Plan
from models.action.recurrence import RecurrenceModel
from models.action.rule import RuleModel
from models.action.rules import CronModel, DueDateModel
from moving.apscheduler.fires import NOT_COMPARED, TriggerFires, is_engine_here
from moving.cron_text import all_of, ranges_of, values_of
from moving.entries import CannotMove
from moving.exported import KEEP, Exported, compared, lost, options_of, task_of
from moving.to_beat import crontabs_of

HEADER = '''"""Minutebook's actions as jobs of APScheduler 3.

    add_jobs(scheduler, app.send_task)         # jobs that the scheduler keeps in memory
    add_jobs(scheduler, "shop:app.send_task")  # jobs in a database: a reference to the same

`app` is the Celery application.
"""

from datetime import datetime

from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger


def add_jobs(scheduler, send_task):
    """Add all jobs, or replace those of the same ids."""
    for job in jobs:
        scheduler.add_job(send_task, replace_existing=True, **job)


jobs = [
{jobs}]
'''
SECOND = timedelta(seconds=1)
NAMES = ("minute", "hour", "day", "month", "day_of_week")
# What APScheduler can do too: it catches up, and a job may have a beginning and an end.
KEEPS = ("catch_up", "bounds")


def exported(action: ScheduledActionModel, now: datetime) -> Exported:
    """Return an action as a job, compared over two years if APScheduler is installed."""
    plan = plan_of(action)
    try:
        trigger = _trigger(plan)
        job = _job(action, plan, trigger)
    except CannotMove as error:
        return Exported.refused(action.name, error)
    more = compared(plan, TriggerFires(trigger), now) if is_engine_here() else (NOT_COMPARED,)
    return Exported.made(
        action.name, {action.name: job}, (*more, *lost(action, "APScheduler", keeps=KEEPS))
    )


def text_of(found: Sequence[Exported]) -> str:
    """Return the jobs as a Python module."""
    written = "".join(text for one in found for text in one.entries.values())
    return HEADER.replace("{jobs}", written)


def _job(action: ScheduledActionModel, plan: Plan, trigger: Mapping[str, Any]) -> str:
    handed = task_of(plan)
    call = {
        "name": handed.task,
        "args": list(handed.args),
        "kwargs": handed.kwargs,
        **options_of(handed, plan.queue),
    }
    parts = {
        "id": action.name,
        "name": action.description or action.name,
        "kwargs": call,
        "misfire_grace_time": plan.longest_look_back_s,
        "coalesce": plan.policy.catch_up == "latest",
        "max_instances": 1,
        **({} if plan.active else {"next_run_time": None}),
    }
    written = "".join(
        f"        {name!r}: {pformat(value, width=10_000, sort_dicts=False)},\n"
        for name, value in parts.items()
    )
    return f"    {{\n{written}        'trigger': {_written(trigger)},\n    }},\n"


def _trigger(plan: Plan) -> dict[str, Any]:
    """Return the trigger as `python -m minutebook apscheduler` writes it; raises CannotMove."""
    bounds = {
        "start_date": plan.policy.starts_at and plan.policy.starts_at.isoformat(),
        # APScheduler's end is included.
        "end_date": plan.policy.ends_at and (plan.policy.ends_at - SECOND).isoformat(),
    }
    found = [one for rule in plan.rules for one in _triggers(rule, bounds)]
    if len(found) == 1:
        return found[0]
    if any(one["type"] != "cron" for one in found):
        why = "one of its rules is a due date, which APScheduler forgets beside others"
        raise CannotMove(why, "make an action of each rule")
    return {"type": "or", "triggers": found}


def _triggers(rule: RuleModel, bounds: Mapping[str, Any]) -> list[dict[str, Any]]:
    match rule:
        case CronModel(cron_rule=text, timezone=zone):
            return [
                {"type": "cron", "fields": _fields(crontab), "timezone": zone, **bounds}
                for crontab in crontabs_of(text)
            ]
        case FromEndModel():
            why = "it counts from the end of its last run, and APScheduler does not"
            raise CannotMove(why, KEEP)
        case IntervalModel(every=every, starting_at=starting_at, first_n=first_n):
            first = starting_at + first_n * every
            if bounds["start_date"]:
                behind = datetime.fromisoformat(bounds["start_date"]) - first
                first += max(-(-behind // every), 0) * every
            seconds = int(every.total_seconds())
            start = {"start_date": first.isoformat()}
            return [{"type": "interval", "seconds": seconds, **bounds, **start}]
        case DueDateModel(due_at=due_at):
            return [{"type": "date", "run_date": due_at.isoformat()}]
        case RecurrenceModel(rrule=text):
            raise CannotMove(f"APScheduler 3 does not know the recurrence rule {text}", KEEP)
        case _:
            raise CannotMove("APScheduler knows no events, of users or of the sun", KEEP)


def _fields(crontab: Sequence[str]) -> dict[str, str]:
    """Return the fields of a trigger, in which Monday is day 0; steps become lists of values."""
    order = dict(zip(FIELDS, crontab, strict=True))
    texts = [_text(field, order[field]) for field in FIELDS]
    fields = dict(zip(NAMES, texts, strict=True))
    return {**fields, "second": "0"}


def _text(field: Field, text: str) -> str:
    values = values_of(field, text) or set()
    if values == all_of(field):
        return "*"
    return ranges_of({(day - 1) % 7 for day in values} if field is WEEKDAY else values)


def _written(trigger: Mapping[str, Any]) -> str:
    """Return the Python that makes a trigger."""
    bounds = "".join(
        f", {name}=datetime.fromisoformat({trigger[name]!r})"
        for name in ("start_date", "end_date")
        if trigger.get(name)
    )
    match trigger["type"]:
        case "cron":
            named = ", ".join(f"{name}={text!r}" for name, text in trigger["fields"].items())
            return f"CronTrigger({named}, timezone={trigger['timezone']!r}{bounds})"
        case "interval":
            return f"IntervalTrigger(seconds={trigger['seconds']}, timezone='UTC'{bounds})"
        case "date":
            return f"DateTrigger(datetime.fromisoformat({trigger['run_date']!r}))"
        case _:
            return f"OrTrigger([{', '.join(map(_written, trigger['triggers']))}])"
