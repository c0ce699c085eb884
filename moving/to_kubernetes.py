"""Actions as CronJobs of Kubernetes, exactly or with what is lost."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import yaml

from models.action import ScheduledActionModel, plan_of
from models.action.plan import Plan
from models.action.policy import NO_TIME_LIMIT
from moving.entries import CannotMove
from moving.exported import Exported, compared, lost, only_trigger
from moving.kubernetes import DEADLINE, RETRIES_DIFFER
from moving.programs import Program, crontab_of, either_day, program_of
from moving.wall_fires import WallFires

CONCURRENCY = {"allow": "Allow", "skip": "Forbid", "queue": "Forbid", "replace": "Replace"}
# What is carried over for a program; a Celery task runs on after it has been sent.
KEEPS = ("overlap", "retry", "time_limit")
LONGEST_NAME = 45
_REPLACED = re.compile(r"\$(?:\$+|(?=\())")


def exported(
    action: ScheduledActionModel, now: datetime, image: str | None, celery_app: str | None
) -> Exported:
    """Return an action as a CronJob that runs in `image`, compared over two years."""
    plan = plan_of(action)
    try:
        program = program_of(action, plan, celery_app)
        if image is None:
            raise CannotMove("a CronJob runs in an image", "name it with --image")
        schedule, zone = _schedule(plan)
    except CannotMove as error:
        return Exported.refused(action.name, error)
    name = _name_of(action.name)
    manifest = _manifest(name, plan, (schedule, zone))
    manifest["spec"]["jobTemplate"] = {"spec": _job(action, plan, program, image)}
    remarks = (
        *compared(plan, WallFires(schedule, zone), now),
        *program.remarks,
        *_differing(plan),
        *lost(action, "Kubernetes", keeps=() if plan.hand_over else KEEPS),
    )
    return Exported.made(action.name, {name: _written(manifest)}, remarks)


def text_of(found: Sequence[Exported]) -> str:
    """Return the CronJobs as one file."""
    return "---\n".join(text for one in found for text in one.entries.values())


def _written(manifest: object) -> str:
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=100)


def _name_of(name: str) -> str:
    """Return a name that Kubernetes takes; a changed one ends with a hash of the original."""
    made = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_NAME].strip("-")
    sign = sha256(name.encode()).hexdigest()[:6]
    return made if made == name else f"{made}-{sign}".lstrip("-")


def _schedule(plan: Plan) -> tuple[str, str]:
    rule, zone = crontab_of(only_trigger(plan))
    return " ".join(either_day(rule)), zone


def _manifest(name: str, plan: Plan, when: tuple[str, str]) -> dict[str, Any]:
    schedule, zone = when
    look_back = max(one.look_back for one in plan.triggers)
    spec = {
        "schedule": schedule,
        "timeZone": zone,
        "concurrencyPolicy": CONCURRENCY[plan.overlap],
        "startingDeadlineSeconds": int(look_back.total_seconds()),
        **({} if plan.active else {"suspend": True}),
    }
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def _job(action: ScheduledActionModel, plan: Plan, program: Program, image: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "it",
        "image": image,
        "command": [_plain(one) for one in program.run],
    }
    if program.cwd:
        container["workingDir"] = program.cwd
    if program.env:
        container["env"] = [
            {"name": name, "value": _plain(value)} for name, value in program.env.items()
        ]
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if plan.time_limit < NO_TIME_LIMIT:
        # The pod's limit, because a pod is one attempt; the job's is for all attempts together.
        pod[DEADLINE] = int(plan.time_limit.total_seconds())
    return {
        "backoffLimit": plan.max_attempts - 1,
        "template": {
            "metadata": {"annotations": {"minutebook/action": action.name}},
            "spec": pod,
        },
    }


def _plain(text: str) -> str:
    """Return a text in which Kubernetes replaces neither `$(NAME)` nor `$$`."""
    return _REPLACED.sub(lambda found: found[0].replace("$", "$$"), text)


def _differing(plan: Plan) -> Iterator[str]:
    # For a Celery task, only the sending would be repeated.
    if plan.hand_over:
        return
    if plan.overlap == "queue":
        yield "Kubernetes skips a run that is due during the last one"
    if plan.max_attempts > 1:
        yield f"{RETRIES_DIFFER}; its pauses are 10 s, 20 s, 40 s, … up to 6 minutes"
