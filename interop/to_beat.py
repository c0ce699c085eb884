"""Actions as a `beat_schedule` of Celery, exactly or with what is lost."""

from collections.abc import Iterable, Sequence
from pprint import pformat

from cron.fields import DAY, FIELDS, WEEKDAY
from interop.celery_rules import NAMES
from interop.cron_text import all_of, ranges_of, values_of
from interop.entries import CannotMove
from interop.exported import KEEP, Exported, lost, only_rule, options_of, task_of
from models.action.document import ScheduledActionModel, plan_of
from models.action.intervals import FromEndModel, IntervalModel
from models.action.plan import Plan
from models.action.recurrence import RecurrenceModel
from models.action.rules import CronModel, DueDateModel, SolarModel
from models.celery_task import HandOver

HEADER = '''"""The schedule of Minutebook's actions, for celery beat.

app.conf.update(timezone=timezone, beat_schedule=beat_schedule)
"""

{imports}

timezone = {zone!r}
beat_schedule = {{
{entries}}}
'''
WEEKDAYS = " (weekdays)"
SCHEDULE = "'schedule': "
# Of celery.schedules.
CLASSES = {"crontab", "schedule", "solar"}


def exported(action: ScheduledActionModel, zone: str) -> Exported:
    """Return an action as entries of a schedule in that zone."""
    try:
        entries, more = _entries(action.name, plan_of(action), zone)
    except CannotMove as error:
        return Exported.refused(action.name, error)
    return Exported.made(action.name, entries, (*more, *lost(action, "beat")))


def text_of(found: Sequence[Exported], zone: str) -> str:
    """Return the schedule as a Python module."""
    entries = {name: text for one in found for name, text in one.entries.items()}
    used = _classes(entries.values())
    imports = f"from celery.schedules import {', '.join(used)}" if used else ""
    written = "".join(f"    {name!r}: {text},\n" for name, text in entries.items())
    return HEADER.format(imports=imports, zone=zone, entries=written)


def _classes(entries: Iterable[str]) -> list[str]:
    # The schedule is the last line of an entry: texts of users stand before it.
    last = {text.rpartition(SCHEDULE)[2].partition("(")[0] for text in entries}
    return sorted(last & CLASSES)


def _entries(name: str, plan: Plan, zone: str) -> tuple[dict[str, str], tuple[str, ...]]:
    handed = task_of(plan)
    if not plan.active:
        raise CannotMove("it is paused, and beat has no paused entries", "resume it first")
    match only_rule(plan):
        case CronModel() as rule:
            return _crontabs(name, plan, rule, zone), ()
        case FromEndModel():
            raise CannotMove("it counts from the end of its last run, and beat does not", KEEP)
        case IntervalModel(every=every):
            text = f"schedule({int(every.total_seconds())})"
            return {name: _entry(handed, plan.queue, text)}, ("beat's grid begins when it starts",)
        case SolarModel(solar=event, lat=lat, lon=lon):
            text = f"solar({str(event)!r}, {lat!r}, {lon!r})"
            return {name: _entry(handed, plan.queue, text)}, ("beat does not round to a minute",)
        case RecurrenceModel(rrule=rule):
            raise CannotMove(f"beat does not know the recurrence rule {rule}", KEEP)
        case DueDateModel():
            raise CannotMove("beat cannot run an entry once, at an instant", KEEP)
        case _:
            raise CannotMove("beat knows no events", KEEP)


def _crontabs(name: str, plan: Plan, rule: CronModel, zone: str) -> dict[str, str]:
    if rule.timezone != zone:
        why = f"its zone is {rule.timezone}, and that of the schedule {zone}"
        raise CannotMove(why, f"export it separately, with --zone {rule.timezone}")
    names = (name, name + WEEKDAYS)
    handed = task_of(plan)
    return {
        its: _entry(handed, plan.queue, _written(fields))
        for its, fields in zip(names, crontabs_of(rule.cron_rule), strict=False)
    }


def crontabs_of(rule: str) -> list[tuple[str, ...]]:
    """Return one crontab with the days of a rule, or two where either day is enough for it.

    The second has the weekdays that are no day of the first: no instant is in both.
    """
    texts = rule.split(" ")
    minute, hour, day, month, weekday = (
        "*" if values == all_of(one) else text if text.startswith("*") else ranges_of(values)
        for one, text in zip(FIELDS, texts, strict=True)
        if (values := values_of(one, text)) is not None
    )
    if texts[2].startswith("*") or texts[4].startswith("*"):
        return [(minute, hour, day, month, weekday)]
    others = all_of(DAY) - (values_of(DAY, texts[2]) or set())
    if not others or values_of(WEEKDAY, texts[4]) == all_of(WEEKDAY):
        return [(minute, hour, "*", month, "*")]
    return [
        (minute, hour, day, month, "*"),
        (minute, hour, ranges_of(others), month, weekday),
    ]


def _written(fields: Sequence[str]) -> str:
    named = ", ".join(f"{name}={text!r}" for name, text in zip(NAMES, fields, strict=True))
    return f"crontab({named})"


def _entry(handed: HandOver, queue: str, schedule: str) -> str:
    parts = {"task": handed.task, "args": list(handed.args), "kwargs": handed.kwargs}
    written = "".join(
        f"        {name!r}: {pformat(value, width=10_000, sort_dicts=False)},\n"
        for name, value in {**parts, "options": options_of(handed, queue)}.items()
    )
    return f"{{\n{written}        {SCHEDULE}{schedule},\n    }}"
