"""Actions as lines of a crontab, exactly or with what is lost."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from shlex import join, quote
from typing import Any

from cron import CronSchedule
from models.action.document import ScheduledActionModel, plan_of
from models.action.plan import Plan
from models.action.policy import LONGEST_TIME_LIMIT
from models.notices import targets
from moving.crontab.programs import Program, crontab_of, program_of
from moving.entries import CannotMove
from moving.exported import Exported, compared, lost, only_rule

HEADER = """\
# Minutebook's actions. CRON_TZ is a setting of cronie: Debian's cron ignores it, and runs all lines
# in the machine's zone.
"""
# Debian's cron cuts a command there.
LONGEST_COMMAND = 998
SHELL = ("/bin/sh", "-c")
# Cron takes one backslash before a percent sign, but only from an odd number of them.
_KEPT_BACKSLASH = re.compile(r"(?<!\\)\\(?:\\\\)*%")
LEFT_OUT = "its input is left out"
# Differences that this module reports in its own words.
KEEPS = ("hooks", "time_limit")


# What Minutebook does for an action that it runs itself, whoever starts it.
STAYS = ("overlap", "retry", "time_limit", "priority", "hooks")


def exported(
    action: ScheduledActionModel,
    now: datetime,
    celery_app: str | None,
    runs_by: Sequence[str] = (),
) -> Exported:
    """Return an action as a line of a crontab, compared over two years; see `program_of`."""
    plan = plan_of(action)
    try:
        program = program_of(action, plan, celery_app, runs_by)
        if not plan.active:
            raise CannotMove("it is paused, and a crontab has no paused lines", "resume it first")
        rule, zone = crontab_of(only_rule(plan))
        command = _command(program, _input(action))
    except CannotMove as error:
        return Exported.refused(action.name, error)
    settings = {
        "CRON_TZ": zone,
        "SHELL": _shell(program),
        "MAILTO": f'"{",".join(() if program.stays_here else _addresses(plan))}"',
    }
    lines = [f"# {action.name}", *(f"{name}={value}" for name, value in settings.items())]
    text = "\n".join([*lines, f"{rule} {command}", ""])
    remarks = (*compared(plan, CronSchedule(rule, zone), now), *_lost(action, plan, program))
    return Exported.made(action.name, {action.name: text}, remarks)


def text_of(found: Sequence[Exported]) -> str:
    """Return the crontab; a setting stands where it changes."""
    current: set[str] = set()
    lines = []
    for text in (text for one in found for text in one.entries.values()):
        # Cron ends a line at a line feed only.
        title, *settings, line = text.removesuffix("\n").split("\n")
        new = [one for one in settings if one not in current]
        current = set(settings)
        lines += ["", title, *new, line]
    return HEADER + "\n".join([*lines, ""])


def _command(program: Program, given: str) -> str:
    variables = {name: value for name, value in program.env.items() if name != "SHELL"}
    exports = "".join(f"export {name}={quote(value)}; " for name, value in variables.items())
    folder = f"cd {quote(program.cwd)} || exit; " if program.cwd else ""
    is_shell = program.run[:2] == SHELL and len(program.run) == 3
    line = exports + folder + (program.run[2] if is_shell else join(program.run))
    if "\n" in _shell(program) + line or "\r" in line:
        raise CannotMove("its command has several lines", "move them into a script")
    if _KEPT_BACKSLASH.search(line):
        why = "its command has \\%, in which cron would end the command or take the backslash"
        raise CannotMove(why, "move it into a script")
    command = line.replace("%", "\\%")
    if given:
        # Cron ends the last line itself.
        command += "%" + given.removesuffix("\n").replace("%", "\\%").replace("\n", "%")
    if len(command.encode()) > LONGEST_COMMAND:
        why = f"its command is longer than cron's {LONGEST_COMMAND} bytes"
        raise CannotMove(why, "move it into a script")
    return command


def _shell(program: Program) -> str:
    return program.env.get("SHELL") or SHELL[0]


def _input(action: ScheduledActionModel) -> str:
    written: Any = action.operations.steps[0].written
    return str(written.get("input") or "") if isinstance(written, dict) else ""


def _addresses(plan: Plan) -> list[str]:
    failures = targets(plan.hooks.on_failure) if plan.hooks else ()
    return [one.to for one in failures if one.kind == "mail"]


def _lost(action: ScheduledActionModel, plan: Plan, program: Program) -> Iterator[str]:
    yield from (one for one in program.remarks if one != LEFT_OUT)
    if program.stays_here:
        yield from lost(action, "cron", keeps=STAYS)
        return
    yield from lost(action, "cron", keeps=KEEPS)
    if plan.time_limit < LONGEST_TIME_LIMIT:
        yield "cron has no time limit"
    if _addresses(plan):
        yield "MAILTO: cron mails all output, not only failures"
    hooks = plan.hooks.targets if plan.hooks else ()
    if len(hooks) > len(_addresses(plan)):
        yield "hooks on success and webhooks are left out"
