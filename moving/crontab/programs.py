"""What a crontab runs for an action, and the cron rule that it has."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from models.action.document import ScheduledActionModel
from models.action.intervals import FromEndModel, IntervalModel
from models.action.plan import Plan
from models.action.recurrence import RecurrenceModel
from models.action.rule import RuleModel
from models.action.rules import CronModel
from models.celery_task import HandOver
from models.values.durations import format_span
from moving.cron_text import ranges_of
from moving.entries import CannotMove
from moving.exported import KEEP
from tasks.steps.command import STEP

HOUR_MINUTES, DAY_HOURS = 60, 24
MINUTE = timedelta(minutes=1)
SECRETS = ("env:", "file:")
# An action needs a rule; cron starts this one.
NEVER = "2199-12-31T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its arguments, and what of the action it does not have."""

    run: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    # Whether Minutebook goes on running it, with its policy and its hooks.
    stays_here: bool = False


def program_of(
    action: ScheduledActionModel,
    plan: Plan,
    celery_app: str | None,
    runs_by: Sequence[str] = (),
) -> Program:
    """Return what starts an action: its program, `celery call`, or a manual run.

    `runs_by` is the command that runs an action of this small app, without its name. Raises
    CannotMove for steps that nothing else starts.
    """
    if plan.hand_over is not None:
        return _call(plan.hand_over, plan.queue, celery_app)
    steps = action.operations.steps
    if [one.name for one in steps] != [STEP]:
        return _run(action.name, ", ".join(one.name for one in steps), runs_by)
    written: Any = steps[0].written
    if not isinstance(written, Mapping):
        raise CannotMove("its command cannot be read", "correct it first")
    shell = written.get("shell")
    run = ("/bin/sh", "-c", shell) if shell else tuple(written.get("run") or ())
    env = dict(written.get("env") or {})
    secret = [name for name, value in env.items() if str(value).startswith(SECRETS)]
    remarks = [f"the variable {name} is left out: it refers to a secret" for name in secret]
    if written.get("input"):
        remarks.append("its input is left out")
    kept = {name: value for name, value in env.items() if name not in secret}
    return Program(run, written.get("cwd"), kept, tuple(remarks))


def _run(name: str, steps: str, runs_by: Sequence[str]) -> Program:
    if not runs_by:
        raise CannotMove(f"its steps ({steps}) are not a program", KEEP)
    remarks = (
        f"its steps ({steps}) go on running in Minutebook's workers, started by this line",
        f'let Minutebook not start it too: give it the rule {{"due_date": "{NEVER}"}}',
    )
    return Program((*runs_by, name, "--wait"), remarks=remarks, stays_here=True)


def _call(handed: HandOver, queue: str, celery_app: str | None) -> Program:
    if celery_app is None:
        why = f"it sends the Celery task {handed.task}"
        raise CannotMove(why, "name the application, as for celery -A, with --celery-app")
    route = ["--queue", queue]
    if handed.exchange is not None:
        route = ["--exchange", handed.exchange, "--routing-key", handed.routing_key]
    run = ["celery", "-A", celery_app, "call", handed.task, *route]
    if handed.args:
        run += ["--args", json.dumps(handed.args)]
    if handed.kwargs:
        run += ["--kwargs", json.dumps(handed.kwargs)]
    if handed.expires is not None:
        run += ["--expires", str(int(handed.expires.total_seconds()))]
    remarks = [
        f"the {name} of its message is left out"
        for name, value in (("priority", handed.priority), ("headers", handed.headers))
        if value not in (None, {})
    ]
    return Program(tuple(run), remarks=tuple(remarks))


def crontab_of(rule: RuleModel) -> tuple[str, str]:
    """Return the cron rule and zone of a rule; raises CannotMove if it is not due by the clock."""
    match rule:
        case CronModel(cron_rule=text, timezone=zone):
            return text, zone
        case FromEndModel():
            raise CannotMove("it counts from the end of its last run, and a crontab does not", KEEP)
        case IntervalModel():
            return _of_interval(rule), "UTC"
        case RecurrenceModel(rrule=text):
            raise CannotMove(f"cron does not know the recurrence rule {text}", KEEP)
        case _:
            raise CannotMove("it is not due by the clock of a cron rule", KEEP)


def _of_interval(rule: IntervalModel) -> str:
    """Return the rule of a grid, never rounded; raises CannotMove if no rule expresses it."""
    every, first = rule.every, rule.starting_at
    shown = format_span(every)
    if every % MINUTE or first.second or first.microsecond:
        why = f"its interval of {shown} from {first:%H:%M:%S} is not at full minutes"
        raise CannotMove(why, KEEP)
    minutes = every // MINUTE
    hours, rest = divmod(minutes, HOUR_MINUTES)
    if minutes < HOUR_MINUTES and HOUR_MINUTES % minutes == 0:
        values = range(first.minute % minutes, HOUR_MINUTES, minutes)
        return f"{_stepped(values, minutes)} * * * *"
    if not rest and hours <= DAY_HOURS and DAY_HOURS % hours == 0:
        values = range(first.hour % hours, DAY_HOURS, hours)
        return f"{first.minute} {_stepped(values, hours)} * * *"
    why = f"its interval of {shown} is not a cron rule: it does not divide an hour or a day"
    raise CannotMove(why, f"{KEEP}, or choose one that does, such as PT30M or PT6H")


def _stepped(values: range, step: int) -> str:
    if values[0] == 0 and len(values) > 1:
        return "*" if step == 1 else f"*/{step}"
    return ranges_of(set(values))
