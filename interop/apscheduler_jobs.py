"""Jobs of APScheduler 3, as `python -m minutebook apscheduler` writes them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue

from interop.apscheduler_rules import rule_of
from interop.beat import UNKNOWN, instant_or_none, known_of
from interop.celery_work import work_of
from interop.entries import CannotMove, Entry, Refused, check_said, entry_or_refused
from models.action.policy import LONGEST_LOOK_BACK, SHORTEST_LOOK_BACK
from models.document import Document, read_document
from models.errors import InvalidDocument, Problem
from models.parsing import Reading
from models.values import Flag, format_instant, parse_list, parse_text
from models.values.durations import format_span
from tasks.steps.command import STEP

VERSION = 1
OWNER = "import:apscheduler"
# Calls a function by its reference, as APScheduler does.
CALL = (
    "import importlib, json, operator, sys; m, _, f = sys.argv[1].partition(':'); "
    "operator.attrgetter(f)(importlib.import_module(m))"
    "(*json.loads(sys.argv[2]), **json.loads(sys.argv[3]))"
)

Text = Annotated[str, BeforeValidator(parse_text)]
Items = Annotated[tuple[JsonValue, ...], BeforeValidator(parse_list)]


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class Job(Document):  # type: ignore[no-redef]
    """One job; `unsaid` are the parts that no action can hold, `altered` those that it changes.

    `task` is what its function is or `sends`, with the arguments and `options` of its message. At
    `next_at` its own trigger runs it next, found at `as_of`.
    """

    id: Text
    name: Text
    func: Text
    args: Items = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    trigger: dict[str, JsonValue]
    misfire_grace_time: int | None = None
    coalesce: Flag = True
    max_instances: int = 1
    paused: Flag = False
    next_run_time: Text | None = None
    next_at: Items | None = None
    begins_anew: Flag = False
    unsaid: Items = ()
    altered: Items = ()
    task: Text = ""
    sends: Flag = False
    task_args: Items = ()
    task_kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    broken: Text = ""
    instead: Text = "write a function of a module, and schedule that"
    as_of: Text = ""


class Jobs(Document):
    """The jobs of one scheduler."""

    minutebook_apscheduler: int
    apscheduler: Text
    written_at: Text = ""
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What the functions of jobs become.

    `allows` says which names are tasks that may be sent; `python` runs the other functions.
    """

    allows: Callable[[str], bool]
    queue: str = "celery"
    python: str | None = None


def written_jobs(document: object) -> Iterator[Job]:
    """Yield the jobs of a file; raises InvalidDocument."""
    read, problems = read_document(Jobs, document, Reading())
    if read is None or problems:
        raise InvalidDocument(problems)
    if read.minutebook_apscheduler != VERSION:
        remedy = f"is another release's; write it with one that writes {VERSION}"
        raise InvalidDocument(
            [Problem("minutebook_apscheduler", read.minutebook_apscheduler, remedy)]
        )
    for one in read.jobs:
        yield one.model_copy(update={"as_of": read.written_at})


def entries_of(
    jobs: Iterable[Job], where: str, work: Work, now: datetime
) -> Iterator[Entry | Refused]:
    """Yield the entries of jobs; `where` names their file."""
    for job in jobs:
        place = f"{where} {job.id}"
        yield entry_or_refused(job.id, place, partial(_entry, job, place, work, now))


def _entry(job: Job, where: str, work: Work, now: datetime) -> Entry:
    if job.broken:
        raise CannotMove(job.broken, job.instead)
    check_said(job.unsaid, "function")
    trigger = _continued(job)
    rule = rule_of(trigger, now)
    operations, policy, remarks = _work(job, work)
    bounds = {"starts_at": rule.starts_at, "ends_at": rule.ends_at}
    return Entry(
        # The id is unique in the job store, the name need not be.
        name=job.id,
        where=where,
        # Without one of its own a job is named after its function.
        description="" if job.name in {job.id, *re.split(r"[:.]", job.func)} else job.name,
        owner=OWNER,
        active=not job.paused,
        operations=operations,
        when=rule.when,
        policy={
            **policy,
            **_late(job),
            **{key: format_instant(at) for key, at in bounds.items() if at is not None},
        },
        remarks=(*remarks, *rule.remarks, *_of_grace(job)),
        unknown=(UNKNOWN,) if job.begins_anew else (),
        known=known_of(job.next_at, instant_or_none(job.as_of) or now),
    )


def _continued(job: Job) -> Mapping[str, Any]:
    """Return the trigger of a job; an interval begins when the job runs next.

    APScheduler counts it from the last run, wherever its `start_date` is.
    """
    if job.begins_anew:
        return {**job.trigger, "start_date": None}
    trigger = job.trigger
    next_at = instant_or_none(job.next_run_time)
    if trigger.get("type") != "interval" or next_at is None or _is_on_grid(trigger, next_at):
        return trigger
    return {**trigger, "start_date": job.next_run_time}


def _is_on_grid(trigger: Mapping[str, Any], at: datetime) -> bool:
    start_at, seconds = instant_or_none(trigger.get("start_date")), trigger.get("seconds")
    if start_at is None or not isinstance(seconds, int | float) or seconds < 1:
        return False
    return not (at - start_at) % timedelta(seconds=seconds)


def _late(job: Job) -> dict[str, str]:
    """Return how late a run may begin, and which of several late ones do."""
    grace = LONGEST_LOOK_BACK
    if job.misfire_grace_time is not None and job.misfire_grace_time < grace.total_seconds():
        grace = max(timedelta(seconds=job.misfire_grace_time), SHORTEST_LOOK_BACK)
    found = {"look_back": format_span(grace)}
    return found if job.coalesce else {**found, "catch_up": "all"}


def _of_grace(job: Job) -> Iterator[str]:
    """Yield what to say of a chosen grace time that no action has; 1 s is APScheduler's own."""
    grace = job.misfire_grace_time
    if grace is not None and 1 < grace < SHORTEST_LOOK_BACK.total_seconds():
        most = format_span(SHORTEST_LOOK_BACK)
        yield f"APScheduler skips a run that is {grace} s late, the action one that is {most} late"


Operations = tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]


def _work(job: Job, work: Work) -> Operations:
    """Return the operations of a job, the overlap of its runs, and what else differs."""
    module, _, function = job.func.partition(":")
    # As the message of its task has them.
    args, kwargs = (job.task_args, job.task_kwargs) if job.task else (job.args, job.kwargs)
    options = {"queue": work.queue, **job.options}
    if job.sends:
        operations, remarks = work_of(job.task, args, kwargs, options)
        # The function that sends ends at once: the next run never finds it running.
        return operations, {"overlap": "allow"}, remarks
    overlap, remarks = _overlap(job)
    name = job.task or f"{module}.{function}"
    if work.allows(name):
        operations, more = work_of(name, args, kwargs, options)
        return operations, overlap, (*remarks, *more)
    if work.python is not None:
        run = [work.python, "-c", CALL, job.func, *map(json.dumps, (job.args, job.kwargs))]
        changed = (f"JSON changes its {one}" for one in job.altered[:3])
        return {STEP: {"run": run}}, overlap, (*remarks, *changed)
    why = f"it calls {job.func} in the scheduler's process, and is not a Celery task here"
    instead = f"make it one and allow {name!r} in SCHED_CELERY_TASKS, or run it with --python PATH"
    raise CannotMove(why, instead)


def _overlap(job: Job) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return whether runs may overlap, and what differs."""
    if job.max_instances > 1:
        remark = f"APScheduler runs at most {job.max_instances} at once, the action any number"
        return {"overlap": "allow"}, (remark,)
    if job.coalesce:
        return {}, ()
    # APScheduler runs the late ones of a job one after the other.
    remark = "a run that is due during the last one waits, and APScheduler skips it"
    return {"overlap": "queue"}, (remark,)
