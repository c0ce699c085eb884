"""Define, list and delete jobs: actions whose work is done by workers over HTTP."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from models.action.intervals import END
from models.action.plan import Plan
from models.errors import InvalidDocument, NotFound, Refused
from models.job import JOB, id_of
from models.problems import problems_of
from models.sql import read_clock
from models.store.actions import cursors
from models.store.actions import jobs as stored
from models.stored import document_in
from models.turns import HIGHEST_PRIORITY, LOWEST_PRIORITY
from models.values import Url, format_instant
from runtime.database import reading
from scheduler.changes.change import Change
from views import changes
from views.actions import PRIORITY, due_next
from views.changes import deleting
from views.files import Document, located
from views.finding import wrong_cursor
from views.installation import Installation
from views.verbs import EDIT, JOB_DOCUMENT, READ, Verb
from views.view import Instant, Listing, Page, RequestBody, View, first_of

EVERY_S = 300
MOST_S = 3660 * 86_400
LONGEST_IMPORT = 64 * 2**20
# How soon the first run may be: it must lie after the moment when the job is stored.
SOON = timedelta(seconds=2)
SOON_EACH = timedelta(milliseconds=5)


class NewJob(RequestBody):
    """A job as a request describes it."""

    url: Url = Field(description="Of its work.")
    interval_s: int = Field(EVERY_S, ge=1, le=MOST_S, strict=True, description="Seconds.")
    meta: dict[str, JsonValue] = Field(default_factory=dict, description="What its worker gets.")
    from_end: bool | None = Field(
        None, strict=True, description="Count from the end of its last run; else it has a grid."
    )
    jitter_s: int | None = Field(
        None, ge=0, le=MOST_S, strict=True, description="Seconds within which its runs are moved."
    )
    jitter_each: bool | None = Field(
        None, strict=True, description="Draw the jitter for each run; else it is the job's own."
    )
    priority: int | None = Field(
        None,
        ge=LOWEST_PRIORITY,
        le=HIGHEST_PRIORITY,
        strict=True,
        description=f"{PRIORITY} Without it, a stored job keeps its own.",
    )


class JobRow(View):
    """A job and how it stands."""

    id: str = Field(description="The first 12 hex digits of the SHA-1 of its URL.")
    url: str = Field(description="What its worker is to do.")
    interval_s: float | None = Field(description="Null if it has another rule.")
    meta: dict[str, Any] = Field(description="What its worker gets with it.")
    action: str = Field(description="The action that it is the work of.")
    active: bool = Field(description="Whether it is not paused.")
    next_run_at: Instant | None = Field(description="When it is due next.")
    last_state: str | None = Field(description="State of its run that ended last.")
    priority: int = Field(0, description=PRIORITY)


class Jobs(Listing[JobRow]):
    """The jobs of a small app, by id."""


class AddedJob(View):
    """A job that was stored."""

    id: str = Field(description="Id of the job: 12 digits of the SHA-1 of its URL.")
    url: str = Field(description="What its worker is to do.")
    interval_s: int = Field(description="Seconds between two runs.")
    change: str = Field(description="`created`, `changed` or `unchanged`.")


class ImportedJobs(View):
    """What an import of jobs did."""

    created: int = Field(description="New jobs.")
    changed: int = Field(description="Jobs with another interval, meta or priority than before.")
    unchanged: int = Field(description="Jobs that were stored like this before.")


class DeletedJob(View):
    """A job that was deleted; the history of its runs stays."""

    id: str = Field(description="Id of the job.")
    url: str = Field(description="Its URL.")
    cancelled: int = Field(description="Runs that had not started, and never will.")


def new_job(value: object) -> NewJob:
    """Return the job that a document describes; raises InvalidDocument."""
    try:
        return NewJob.model_validate(value)
    except ValidationError as error:
        raise InvalidDocument(problems_of(error)) from None


@Verb("add_job", "POST /api/apps/{app}/jobs", EDIT, status=201)
def add(installation: Installation, new: NewJob) -> AddedJob:
    """Store a job, or change the interval and meta of the job with the same URL."""
    (change,) = _store(installation, [new])
    return AddedJob(id=id_of(new.url), url=new.url, interval_s=new.interval_s, change=change)


@Verb("import_jobs", "POST /api/apps/{app}/jobs:import", EDIT, kind=JOB_DOCUMENT)
def import_jobs(installation: Installation, documents: Sequence[Document]) -> ImportedJobs:
    """Store jobs, all or none; first runs are spread over each interval."""
    news = []
    faults: list[InvalidDocument] = []
    for where, value in documents:
        try:
            news.append(new_job(value))
        except InvalidDocument as error:
            faults.append(located(where, error))
    if faults:
        raise InvalidDocument([problem for one in faults for problem in one.problems])
    # The last of those with the same URL counts.
    made = _store(installation, list({one.url: one for one in news}.values()))
    return ImportedJobs(**{str(one): made.count(one) for one in Change})


@Verb("list_jobs", "GET /api/apps/{app}/jobs", READ, pages=Jobs)
def list_jobs(installation: Installation, limit: int, cursor: str | None = None) -> Page[JobRow]:
    """List the jobs of a small app, by id.

    Raises Refused for a wrong cursor.
    """
    after = None if cursor is None else _place(cursor)
    with reading(installation.engine) as connection:
        rows = stored.page(connection, installation.small_app.id, after, limit + 1)
        now = read_clock(connection)
    shown, following = first_of(rows, limit, lambda row: f"{row['job_id']}_{row['name']}")
    return Page[JobRow](items=tuple(_jobs_in(shown, now)), next=following)


def _place(cursor: str) -> tuple[str, str]:
    id, separator, name = cursor.partition("_")
    if not separator:
        raise wrong_cursor(cursor)
    return id, name


@Verb("delete_job", "DELETE /api/apps/{app}/jobs/{id}", EDIT)
def delete(installation: Installation, id: str) -> DeletedJob:
    """Delete a job; the history of its runs stays.

    Raises NotFound, or Refused if it is the work of several actions.
    """
    with reading(installation.engine) as connection:
        rows = stored.with_job(connection, installation.small_app.id, id)
    found = [
        (row["name"], plan.job.url)
        for row in rows
        if isinstance(plan := row["plan"], Plan) and plan.job is not None
    ]
    if not found:
        raise NotFound(f"no job has the id {id!r}; see `minutebook job list`")
    if len(found) > 1:
        raise Refused(f"job {id} is the work of {len(found)} actions; delete those by name")
    ((name, url),) = found
    done = deleting.delete(installation, name)
    return DeletedJob(id=id, url=url, cancelled=done.cancelled)


def _jobs_in(rows: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[JobRow]:
    for row in rows:
        plan = row["plan"]
        if not isinstance(plan, Plan) or plan.job is None:
            continue
        yield JobRow(
            id=id_of(plan.job.url),
            url=plan.job.url,
            interval_s=None if plan.every is None else plan.every.total_seconds(),
            meta=plan.job.meta,
            action=row["name"],
            active=plan.active,
            next_run_at=due_next(row, now) if plan.active else None,
            last_state=row["last_state"],
            priority=plan.policy.priority,
        )


def _store(installation: Installation, news: Sequence[NewJob]) -> list[str]:
    """Store jobs, all or none; return what changed, in their order."""
    ids = [id_of(one.url) for one in news]
    with reading(installation.engine) as connection:
        now = read_clock(connection)
        rows = cursors.named(connection, installation.small_app.id, ids, locks=False)
    begins = first_runs(news, now + SOON + SOON_EACH * len(news))
    documents = []
    for new, begin in zip(news, begins, strict=True):
        row = rows.get(id_of(new.url))
        stored = None if row is None else document_in(row.document)
        documents.append(document_of(new, stored, begin))
    made = changes.apply(installation, documents)
    return [one.change for one in made.root]


def first_runs(news: Sequence[NewJob], first: datetime) -> list[datetime]:
    """Return when each job runs first: those of one interval are spread evenly over it."""
    begins = (first + timedelta(seconds=1)).replace(microsecond=0)
    places: dict[int, datetime] = {}
    by_interval = sorted(range(len(news)), key=lambda number: news[number].interval_s)
    for interval_s, some in groupby(by_interval, key=lambda number: news[number].interval_s):
        numbers = list(some)
        for place, number in enumerate(numbers):
            offset_s = interval_s * place // len(numbers)
            places[number] = begins + timedelta(seconds=offset_s)
    return [places[number] for number in range(len(news))]


def document_of(new: NewJob, stored: Mapping[str, Any] | None, begins: datetime) -> dict[str, Any]:
    """Return the document of a job's action; what is stored of it keeps its grid and policy.

    Raises Refused if the stored action of that name does something else.
    """
    name = id_of(new.url)
    job: dict[str, Any] = {"url": new.url, **({"meta": new.meta} if new.meta else {})}
    made = {"operations": {JOB: job}, **_policy(new, stored or {})}
    grid: dict[str, Any] = {"starting_at": format_instant(begins)}
    if stored is None:
        return {"name": name, **made, "when": _when(grid, new, begins)}
    before = (stored.get("operations") or {}).get(JOB)
    if not isinstance(before, Mapping) or before.get("url") != new.url:
        raise Refused(f"an action named {name!r} exists, and is not the job of {new.url}")
    when = stored.get("when")
    if isinstance(when, Mapping) and "every" in when:
        grid = dict(when)
    return {**stored, **made, "when": _when(grid, new, begins)}


def _turned(grid: Mapping[str, Any], begins: datetime) -> dict[str, Any]:
    """Return a grid as an interval from the end, and that as a grid that begins anew."""
    kept = {key: grid[key] for key in ("jitter", "jitter_each") if key in grid}
    if grid.get("from") != END:
        return {**kept, "from": END}
    return {**kept, "starting_at": format_instant(begins)}


def _when(grid: Mapping[str, Any], new: NewJob, begins: datetime) -> dict[str, Any]:
    """Return the interval of a job; what a request leaves out stays."""
    if new.from_end is not None and new.from_end != (grid.get("from") == END):
        grid = _turned(grid, begins)
    jitter = None if new.jitter_s is None else f"PT{new.jitter_s}S"
    given = {"every": new.interval_s, "jitter": jitter, "jitter_each": new.jitter_each}
    return {**grid, **{key: value for key, value in given.items() if value is not None}}


def _policy(new: NewJob, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy of a job that is given a priority; nothing for another one."""
    if new.priority is None:
        return {}
    before = stored.get("policy")
    kept = before if isinstance(before, Mapping) else {}
    return {"policy": {**kept, "priority": new.priority}}
