"""Actions as timers and services of systemd, exactly or with what is lost."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY, WEEKDAYS, Field
from models.action import ScheduledActionModel, plan_of
from models.action.plan import DueDateTrigger, Plan, Trigger
from models.action.policy import LONGEST_LOOK_BACK, NO_TIME_LIMIT, SHORTEST_LOOK_BACK
from models.values.durations import format_span
from moving.cron_text import all_of, ranges_of, values_of
from moving.entries import CannotMove
from moving.exported import Exported, compared, lost
from moving.programs import Program, crontab_of, program_of
from moving.to_beat import crontabs_of
from moving.wall_fires import WallFires

# Before each unit, so that a script can write the files.
FILE = "# file: "
PERSISTENT_FROM = timedelta(days=1)
# What is carried over for a program; a Celery task runs on after it has been sent.
KEEPS = ("time_limit", "overlap")
# A carriage return ends a line of a unit too.
_ESCAPED = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "%": "%%"}
)
# Before a program they change how systemd runs it, even inside quotes.
PREFIXES = tuple("@-:+!|")
WEEKDAY_NAMES = [name.title() for name in WEEKDAYS]


def exported(action: ScheduledActionModel, now: datetime, celery_app: str | None) -> Exported:
    """Return an action as a timer with its service, compared over two years."""
    plan = plan_of(action)
    try:
        program = program_of(action, plan, celery_app)
        if not plan.active:
            raise CannotMove("it is paused, and a timer file cannot say so", "resume it first")
        _refuse(program)
        calendars = [text for one in plan.triggers for text in _calendars(one)]
    except CannotMove as error:
        return Exported.refused(action.name, error)
    stem = _stem_of(action.name)
    units = {
        f"{stem}.timer": _timer(action.name, plan, calendars),
        f"{stem}.service": _service(action.name, plan, program),
    }
    remarks = (
        *_compared(plan, now),
        *program.remarks,
        *_differing(plan),
        *lost(action, "systemd", keeps=() if plan.hand_over else KEEPS),
    )
    return Exported.made(action.name, units, remarks)


def text_of(found: Sequence[Exported]) -> str:
    """Return the units one after the other, each under the name of its file."""
    return "\n".join(f"{FILE}{name}\n{text}" for one in found for name, text in one.entries.items())


def _stem_of(name: str) -> str:
    made = re.sub("[^A-Za-z0-9_-]+", "-", name).strip("-")[:100]
    return made if made == name else f"{made}-{sha256(name.encode()).hexdigest()[:6]}".lstrip("-")


def _calendars(trigger: Trigger) -> Iterator[str]:
    if isinstance(trigger, DueDateTrigger):
        yield f"{trigger.due_at:%Y-%m-%d %H:%M:%S} UTC"
        return
    rule, zone = crontab_of(trigger)
    for minute, hour, day, month, weekday in crontabs_of(rule):
        days = "" if weekday == "*" else f"{_weekdays(weekday)} "
        date = f"*-{_values(MONTH, month)}-{_values(DAY, day)}"
        yield f"{days}{date} {_values(HOUR, hour)}:{_values(MINUTE, minute)}:00 {zone}"


def _values(field: Field, text: str) -> str:
    """Return a field without steps: systemd writes them otherwise."""
    values = values_of(field, text) or set()
    return "*" if values == all_of(field) else ranges_of(values).replace("-", "..")


def _weekdays(text: str) -> str:
    values = values_of(WEEKDAY, text) or set()
    return ",".join(WEEKDAY_NAMES[day] for day in sorted(values))


def _timer(name: str, plan: Plan, calendars: Sequence[str]) -> str:
    persistent = _look_back(plan) >= PERSISTENT_FROM
    lines = [
        "[Unit]",
        f"Description={_text(name)}",
        "",
        "[Timer]",
        *(f"OnCalendar={one}" for one in calendars),
        "AccuracySec=1s",
        f"Persistent={str(persistent).lower()}",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return "\n".join(lines) + "\n"


def _service(name: str, plan: Plan, program: Program) -> str:
    limit = plan.time_limit
    lines = [
        "[Unit]",
        f"Description={_text(name)}",
        "",
        "[Service]",
        "Type=oneshot",
        *([f"WorkingDirectory={_text(program.cwd)}"] if program.cwd else []),
        *(f"Environment={_quoted(f'{key}={value}')}" for key, value in program.env.items()),
        f"TimeoutStartSec={'infinity' if limit >= NO_TIME_LIMIT else int(limit.total_seconds())}",
        f"ExecStart={' '.join(_quoted(one, is_command=True) for one in program.run)}",
    ]
    return "\n".join(lines) + "\n"


def _refuse(program: Program) -> None:
    """Raise CannotMove for text that a unit would change, and has no way to write."""
    folder = program.cwd or ""
    if folder.endswith("\\") or folder != " ".join(folder.split()):
        why = f"its folder {folder!r} ends in \\, or has line breaks or repeated spaces"
        raise CannotMove(why, "rename the folder")
    if program.run[0].startswith(PREFIXES):
        why = f"systemd would read the first character of {program.run[0]!r} as a prefix"
        raise CannotMove(why, "write the program's whole path")


def _text(text: str) -> str:
    # A backslash at the end would take in the next line.
    return " ".join(text.split()).rstrip("\\").replace("%", "%%")


def _quoted(text: str, *, is_command: bool = False) -> str:
    """Return a word in quotes, with nothing that systemd would replace."""
    text = text.translate(_ESCAPED)
    return '"' + (text.replace("$", "$$") if is_command else text) + '"'


def _look_back(plan: Plan) -> timedelta:
    return max(one.look_back for one in plan.triggers)


def _compared(plan: Plan, now: datetime) -> tuple[str, ...]:
    if len(plan.triggers) > 1 or isinstance(plan.triggers[0], DueDateTrigger):
        return ()
    rule, zone = crontab_of(plan.triggers[0])
    return compared(plan, WallFires(rule, zone, once=True), now)


def _differing(plan: Plan) -> Iterator[str]:
    if plan.overlap != "skip" and not plan.hand_over:
        yield f"systemd skips a run that is due during the last one (overlap {plan.overlap})"
    look_back = _look_back(plan)
    if look_back not in (SHORTEST_LOOK_BACK, LONGEST_LOOK_BACK):
        what = "however late" if look_back >= PERSISTENT_FROM else "not at all"
        yield f"systemd catches up {what} (look_back {format_span(look_back)})"
