"""CronJobs of Kubernetes, as entries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from cron import CronSchedule, InvalidRule
from cron.fields import DAY, FIELDS, MONTH, WEEKDAY, Field
from cron.rule import NICKNAMES
from models.action.policy import LONGEST_LOOK_BACK, LONGEST_TIME_LIMIT, SHORTEST_LOOK_BACK
from models.errors import Refused as RefusedCommand
from models.values import flag_of
from models.values.durations import format_span
from moving.cron_text import RULES, all_of, ranges_of, values_in
from moving.entries import CannotMove, Entry, Refused, entry_or_refused
from moving.kubernetes.manifests import CRON_JOB, DEADLINE, left_out, mapping, scheduled, unread
from moving.wall_fires import WallFires
from tasks.steps.command import STEP

OWNER = "import:kubernetes"
OVERLAPS = {"Allow": "allow", "Forbid": "skip", "Replace": "replace"}
# Kubernetes reads YAML 1.1.
FLAGS = {"yes": True, "y": True, "on": True, "no": False, "n": False, "off": False}
# As Kubernetes waits before it starts a failed pod again, up to six minutes.
BACKOFF = ["PT10S", "PT20S", "PT40S", "PT1M20S", "PT2M40S", "PT5M20S", "PT6M"]
RETRIES = 6
# A program asks for another attempt by EX_TEMPFAIL; any other failure of `command` is for good.
RETRIES_DIFFER = "Kubernetes tries again after any failure, the action only after exit code 75"
DEADLINE_DIFFERS = (
    "its activeDeadlineSeconds is for all tries together, the time limit for each attempt"
)
_ZONED = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)", re.ASCII)
_REFERENCE = re.compile(r"\$\$|\$\(([^()]+)\)")
# In characters: a variable may expand to others, which expand in turn.
LONGEST_VALUE = 100_000


def entries_of(documents: Sequence[Any], zone: str, file: str) -> Iterator[Entry | Refused]:
    """Yield the CronJobs of YAML documents; raises Refused if there are none.

    `zone` is that of the cluster's controller, for those without `timeZone`.
    """
    found = [one for document in documents for one in scheduled(document)]
    if not any(one.get("kind") == CRON_JOB for one in found):
        raise RefusedCommand(f"{file} has no CronJob; name a file with `kind: CronJob`")
    for number, one in enumerate(found):
        kind = str(one.get("kind"))[:60]
        name, where = _name(one, number), f"{file} {kind} {number + 1}"
        yield entry_or_refused(name, where, partial(_entry, name, where, one, zone))


def _name(cron_job: Mapping[str, Any], number: int) -> str:
    """Return `namespace/name`; a manifest without them is named by its number."""
    written = cron_job.get("metadata")
    meta = written if isinstance(written, Mapping) else {}
    place = (meta.get("namespace"), meta.get("name") or f"CronJob {number + 1}")
    return "/".join(str(part) for part in place if part not in (None, "default"))


def _entry(name: str, where: str, cron_job: Mapping[str, Any], zone: str) -> Entry:
    if cron_job.get("kind") != CRON_JOB:
        why = f"it is a {str(cron_job.get('kind'))[:60]}, which another controller runs"
        raise CannotMove(why, "write an action for it")
    spec = mapping(cron_job, "spec")
    job = mapping(mapping(spec, "jobTemplate"), "spec")
    when, fires = _when(str(spec.get("schedule") or ""), str(spec.get("timeZone") or zone))
    command, remarks = _command(job)
    limits, differing = _limits(job)
    if fires is None:
        remarks += ("its grid begins when the action is stored",)
    return Entry(
        name=name,
        where=where,
        owner=OWNER,
        active=not _flag(spec, "suspend"),
        operations={STEP: command},
        when=when,
        policy={**_late(spec), **limits},
        remarks=(*unread(spec, job), *left_out(job), *remarks, *differing, *_later(spec)),
        fires=fires,
    )


def _flag(parent: Mapping[str, Any], key: str) -> bool:
    """Return a boolean, also one that a template left as a text; raises CannotMove for another."""
    value = parent.get(key)
    found = False if value is None else FLAGS.get(str(value).lower(), flag_of(value))
    if found is None:
        raise CannotMove(
            f"its {key} {str(value)[:60]!r} is not true or false", "write true or false"
        )
    return found


def _when(schedule: str, zone: str) -> tuple[dict[str, str], WallFires | None]:
    if "{{" in schedule:
        why = f"its schedule {schedule[:60]!r} is a variable of Helm's template"
        raise CannotMove(why, "render the chart first: helm template CHART > rendered.yaml")
    zoned = _ZONED.fullmatch(schedule.strip())
    if zoned:
        zone, schedule = zoned[1], zoned[2]
    if schedule.startswith("@every "):
        return {"every": format_span(_go_duration(schedule[7:].strip()))}, None
    rule = rule_of(NICKNAMES.get(schedule.strip(), schedule))
    try:
        CronSchedule(rule, zone)
    except InvalidRule as error:
        raise CannotMove(str(error), "correct the manifest") from None
    return {"cron_rule": rule, "timezone": zone}, WallFires(rule, zone)


def _go_duration(text: str) -> timedelta:
    found = re.fullmatch(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", text, re.ASCII)
    parts = [int(one or 0) for one in found.groups()] if found else []
    if not any(parts):
        raise CannotMove(f"its interval {text[:60]!r} is not a whole number of seconds", RULES)
    return timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])


def rule_of(text: str) -> str:
    """Return the cron rule with the days and times of a schedule; raises CannotMove.

    Only a day that is `*` leaves the decision to the other field of days: `*/2` does not, as it
    does in cron rules here.
    """
    fields = text.replace("?", "*").split()
    if len(fields) != len(FIELDS):
        raise CannotMove(f"its schedule {text[:60]!r} has {len(fields)} fields, not 5", RULES)
    return " ".join(_field(*pair) for pair in zip(FIELDS, fields, strict=True))


def _field(field: Field, text: str) -> str:
    names = field.names if field in (MONTH, WEEKDAY) else {}
    high = 6 if field is WEEKDAY else field.high
    values = values_in(field.name, text, field.low, high, names)
    if field in (DAY, WEEKDAY):
        is_any = any(part in {"*", "*/1"} for part in text.split(","))
        return "*" if is_any else ranges_of(values)
    is_step = text.startswith("*") and "," not in text
    return "*" if values == all_of(field) else text if is_step else ranges_of(values)


def _late(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether runs overlap, and how late one may start."""
    overlap = OVERLAPS.get(str(spec.get("concurrencyPolicy") or "Allow"))
    if overlap is None:
        shown = str(spec["concurrencyPolicy"])[:60]
        raise CannotMove(f"its concurrencyPolicy {shown!r} is unknown", "correct the manifest")
    deadline = _whole(spec, "startingDeadlineSeconds")
    span = LONGEST_LOOK_BACK if deadline is None else timedelta(seconds=deadline)
    look_back = min(max(span, SHORTEST_LOOK_BACK), LONGEST_LOOK_BACK)
    return {"overlap": overlap, "look_back": format_span(look_back)}


def _later(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield that a run may start later than in the cluster, if its deadline is too short here."""
    deadline = _whole(spec, "startingDeadlineSeconds")
    if deadline is not None and deadline < SHORTEST_LOOK_BACK.total_seconds():
        shortest = format_span(SHORTEST_LOOK_BACK)
        yield f"its startingDeadlineSeconds {deadline} becomes {shortest}, the shortest look_back"


def _limits(job: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the time limit and the retries of a job, and how they differ."""
    for name in ("completions", "parallelism"):
        if _whole(job, name) not in (None, 1):
            raise CannotMove(f"its {name} is {job[name]}", "make an action of each part")
    retries = _whole(job, "backoffLimit")
    attempts = min((RETRIES if retries is None else retries) + 1, 100)
    limit, remarks = _time_limit(job, is_retried=attempts > 1)
    limits: dict[str, Any] = {"time_limit": format_span(limit)}
    if attempts == 1:
        return limits, remarks
    backoff = BACKOFF[: min(attempts - 1, len(BACKOFF))]
    retry = {"max_attempts": attempts, "backoff": backoff}
    return {**limits, "retry": retry}, (RETRIES_DIFFER, *remarks)


def _time_limit(job: Mapping[str, Any], *, is_retried: bool) -> tuple[timedelta, tuple[str, ...]]:
    """Return the time limit of an attempt, and how it differs."""
    pod = mapping(mapping(job, "template"), "spec")
    of_job, of_pod = _whole(job, DEADLINE), _whole(pod, DEADLINE)
    seconds = min((one for one in (of_job, of_pod) if one is not None), default=None)
    if seconds is None:
        # A CronJob without a limit may run for ever; this is the longest limit of a policy.
        return LONGEST_TIME_LIMIT, ()
    remarks = []
    # A pod that is not restarted is one attempt.
    if is_retried and (of_job is not None or pod.get("restartPolicy") != "Never"):
        remarks.append(DEADLINE_DIFFERS)
    limit = min(timedelta(seconds=seconds), LONGEST_TIME_LIMIT)
    if limit.total_seconds() < seconds:
        longest = format_span(limit)
        remarks.append(f"its {DEADLINE} {seconds} is cut to {longest}, the longest time limit")
    return limit, tuple(remarks)


def _whole(parent: Mapping[str, Any], key: str) -> int | None:
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**9:
        raise CannotMove(f"its {key} {str(value)[:60]!r} is not a number", "correct the manifest")
    return value


def _command(job: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the step `command` of a job's container, and what it leaves out."""
    pod = mapping(mapping(job, "template"), "spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or len(containers) != 1 or pod.get("initContainers"):
        why = "its pod does not have exactly one container, and the step command runs one program"
        raise CannotMove(why, "write a script that runs all of them in turn")
    (container,) = containers
    variables, left_out = _environment(container)
    env = {name: value for name, value in variables.items() if value is not None}
    run = [
        _expanded(one, variables) for key in ("command", "args") for one in _texts(container, key)
    ]
    if not _texts(container, "command"):
        image = _text_of(container, "image")
        why = f"it runs the entry point of the image {image!r}, which the manifest does not name"
        raise CannotMove(why, "write its `command`")
    found: dict[str, Any] = {"run": run}
    if isinstance(folder := mapping({"it": container}, "it").get("workingDir"), str):
        found["cwd"] = folder
    if env:
        found["env"] = env
    image = _text_of(container, "image")
    return found, (f"it runs on a worker's machine, not in the image {image}", *left_out)


def _environment(container: Any) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return the variables of a container, None for those of secrets, and what is left out."""
    written = mapping({"it": container}, "it")
    found: dict[str, str | None] = {}
    left_out = []
    variables = written.get("env") or ()
    if not isinstance(variables, Sequence):
        raise CannotMove(f"its env {str(variables)[:60]!r} is not a list", "correct the manifest")
    for one in variables:
        name, value = _text_of(one, "name"), one.get("value") if isinstance(one, Mapping) else None
        if isinstance(value, str) and not value.startswith(("env:", "file:")):
            found[name] = _expanded(value, found)
        else:
            found[name] = None
            left_out.append(f"its variable {name} is left out: its value is not in the manifest")
    if written.get("envFrom"):
        left_out.append("the variables of its envFrom are left out")
    if written.get("volumeMounts"):
        left_out.append("its volumes are left out")
    return found, tuple(left_out)


def _texts(container: Any, key: str) -> list[str]:
    found = mapping({"it": container}, "it").get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise CannotMove(f"its {key} is not a list of texts", "correct the manifest")
    return found


def _text_of(parent: Any, key: str) -> str:
    return str(mapping({"it": parent}, "it").get(key) or "?")[:200]


def _expanded(text: str, env: Mapping[str, str | None]) -> str:
    """Return a text with its variables, as Kubernetes writes $(NAME), and $$ for a dollar sign.

    A variable that is None has a value that the manifest does not contain.
    """
    size = len(text)

    def value(found: re.Match[str]) -> str:
        nonlocal size
        name = found[1]
        if name is None:
            return "$"
        if name not in env:
            return found[0]
        known = env[name]
        if known is None:
            why = f"its command needs the variable {name[:60]}, which is not in the manifest"
            raise CannotMove(why, "write its value as `value`")
        size += len(known)
        if size > LONGEST_VALUE:
            why = f"with its variables, a text of it is longer than {LONGEST_VALUE:,} characters"
            raise CannotMove(why, "write shorter values")
        return known

    return _REFERENCE.sub(value, text)
