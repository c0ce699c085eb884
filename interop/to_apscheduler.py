"""Actions as jobs of APScheduler 3, exactly or with what is lost."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pprint import pformat

from cron.fields import FIELDS, WEEKDAY, Field
from interop.cron_text import all_of, ranges_of, values_of
from interop.entries import CannotMove
from interop.exported import KEEP, Exported, lost, options_of, task_of
from interop.to_beat import crontabs_of
from models.action.document import ScheduledActionModel, plan_of
from models.action.intervals import FromEndModel, IntervalModel
from models.action.plan import Plan
from models.action.recurrence import RecurrenceModel
from models.action.rule import RuleModel
from models.action.rules import CronModel, DueDateModel

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
NAMES = ("minute", "hour", "day", "month", "day_of_week", "second")
# What APScheduler can do too: it catches up, and a job may have a beginning and an end.
KEEPS = ("catch_up", "bounds")


def exported(action: ScheduledActionModel) -> Exported:
    """Return an action as a job."""
    try:
        job = _job(action, plan_of(action))
    except CannotMove as error:
        return Exported.refused(action.name, error)
    return Exported.made(
        action.name, {action.name: job}, tuple(lost(action, "APScheduler", keeps=KEEPS))
    )


def text_of(found: Sequence[Exported]) -> str:
    """Return the jobs as a Python module."""
    written = "".join(text for one in found for text in one.entries.values())
    return HEADER.replace("{jobs}", written)


def _job(action: ScheduledActionModel, plan: Plan) -> str:
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
    return f"    {{\n{written}        'trigger': {_trigger(plan)},\n    }},\n"


def _trigger(plan: Plan) -> str:
    """Return the Python that makes the trigger of a plan; raises CannotMove."""
    starts_at, ends_at = plan.policy.starts_at, plan.policy.ends_at
    # APScheduler's end is included.
    bounds = _dated(start_date=starts_at, end_date=ends_at and ends_at - SECOND)
    found = [one for rule in plan.rules for one in _triggers(rule, plan, bounds)]
    if len(found) == 1:
        return found[0]
    if any(isinstance(one, DueDateModel) for one in plan.rules):
        why = "one of its rules is a due date, which APScheduler forgets beside others"
        raise CannotMove(why, "make an action of each rule")
    return f"OrTrigger([{', '.join(found)}])"


def _triggers(rule: RuleModel, plan: Plan, bounds: str) -> list[str]:
    match rule:
        case CronModel(cron_rule=text, timezone=zone):
            return [
                f"CronTrigger({_fields(crontab)}, timezone={zone!r}{bounds})"
                for crontab in crontabs_of(text)
            ]
        case FromEndModel():
            why = "it counts from the end of its last run, and APScheduler does not"
            raise CannotMove(why, KEEP)
        case IntervalModel():
            return [_interval(rule, plan)]
        case DueDateModel(due_at=due_at):
            return [f"DateTrigger({_at(due_at)})"]
        case RecurrenceModel(rrule=text):
            raise CannotMove(f"APScheduler 3 does not know the recurrence rule {text}", KEEP)
        case _:
            raise CannotMove("APScheduler knows no events, of users or of the sun", KEEP)


def _interval(rule: IntervalModel, plan: Plan) -> str:
    starts_at, ends_at = plan.policy.starts_at, plan.policy.ends_at
    first = rule.starting_at
    if first and starts_at:
        first += max(-((first - starts_at) // rule.every), 0) * rule.every
    bounds = _dated(start_date=first or starts_at, end_date=ends_at and ends_at - SECOND)
    return f"IntervalTrigger(seconds={int(rule.every.total_seconds())}, timezone='UTC'{bounds})"


def _dated(**bounds: datetime | None) -> str:
    """Return the arguments of bounds that are given."""
    return "".join(f", {name}={_at(at)}" for name, at in bounds.items() if at)


def _at(at: datetime) -> str:
    return f"datetime.fromisoformat({at.isoformat()!r})"


def _fields(crontab: Sequence[str]) -> str:
    """Return the fields of a trigger, in which Monday is day 0; steps become lists of values."""
    order = dict(zip(FIELDS, crontab, strict=True))
    texts = [*(_text(field, order[field]) for field in FIELDS), "0"]
    return ", ".join(f"{name}={text!r}" for name, text in zip(NAMES, texts, strict=True))


def _text(field: Field, text: str) -> str:
    values = values_of(field, text) or set()
    if values == all_of(field):
        return "*"
    return ranges_of({(day - 1) % 7 for day in values} if field is WEEKDAY else values)
