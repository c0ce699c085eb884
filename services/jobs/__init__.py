"""Define, list and delete jobs: actions whose work is done by workers over HTTP."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from models.action.plan import Plan
from models.errors import NotFound, Refused
from models.job import id_of
from models.sql import read_clock
from models.store.actions import cursors
from models.store.actions import jobs as stored
from models.store.tenants.closing import closing_rows
from models.stored import document_in
from models.tables import actions
from runtime.database import reading
from services import changes
from services.actions import due_next
from services.files import Document
from services.installation import Installation
from services.jobs.documents import NewJob, document_of, first_runs, new_jobs, seconds_of
from services.lookup import wrong_cursor
from services.verbs import EDIT, JOB_DOCUMENT, READ, Verb
from services.view import Instant, Listing, Page, View, first_of

LONGEST_IMPORT = 64 * 2**20
# How soon the first run may be: it must lie after the moment when the job is stored.
SOON = timedelta(seconds=2)
SOON_EACH = timedelta(milliseconds=5)


class JobRow(View):
    """A job and how it stands."""

    id: str = Field(description="The first 12 hex digits of the SHA-1 of its URL.")
    url: str = Field(description="What its worker is to do.")
    interval_s: int | None = Field(description="Null if it has another rule.")
    meta: dict[str, Any] = Field(description="What its worker gets with it.")
    action: str = Field(description="The action that it is the work of.")
    active: bool = Field(description="Whether it is not paused.")
    next_run_at: Instant | None = Field(description="When it is due next.")
    last_state: str | None = Field(description="State of its run that ended last.")
    from_end: bool = Field(False, description="Whether it counts from the end of its last run.")
    jitter_s: int | None = Field(
        None, description="Seconds within which its runs are moved; null for none."
    )
    jitter_each: bool | None = Field(
        None, description="Whether the jitter is drawn for each run; null without one."
    )


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


@Verb("add_job", "POST /api/apps/{app}/jobs", EDIT, status=201)
def add(installation: Installation, new: NewJob) -> AddedJob:
    """Store a job, or change the interval and meta of the job with the same URL."""
    (change,) = _store(installation, [new])
    return AddedJob(id=id_of(new.url), url=new.url, interval_s=new.interval_s, change=change)


@Verb("import_jobs", "POST /api/apps/{app}/jobs:import", EDIT, kind=JOB_DOCUMENT)
def import_jobs(installation: Installation, documents: Sequence[Document]) -> ImportedJobs:
    """Store jobs, all or none; first runs are spread over each interval.

    Raises InvalidDocument for two entries of one URL, too.
    """
    made = _store(installation, new_jobs(documents))
    return ImportedJobs(**{one: made.count(one) for one in ImportedJobs.model_fields})


@Verb("list_jobs", "GET /api/apps/{app}/jobs", READ, pages=Jobs)
def list_jobs(installation: Installation, limit: int, cursor: str | None = None) -> Page[JobRow]:
    """List the jobs of the small app.

    Raises Refused for a wrong cursor.
    """
    after = None if cursor is None else _place(cursor)
    with reading(installation.engine) as connection:
        rows = stored.page(connection, installation.small_app.id, after, limit + 1)
        rows = closing_rows(connection, rows)
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
    done = changes.delete(installation, name)
    return DeletedJob(id=id, url=url, cancelled=done.cancelled)


def _jobs_in(rows: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[JobRow]:
    for row in rows:
        plan = row["plan"]
        if not isinstance(plan, Plan) or plan.job is None:
            continue
        yield JobRow(
            id=id_of(plan.job.url),
            url=plan.job.url,
            interval_s=seconds_of(plan.every),
            meta=plan.job.meta,
            action=row["name"],
            active=plan.active,
            next_run_at=due_next(row, now) if plan.active else None,
            last_state=row["last_state"],
            from_end=plan.from_end is not None,
            **_jitter(plan),
        )


def _jitter(plan: Plan) -> dict[str, Any]:
    rule = plan.repeating
    if rule is None or not rule.jitter:
        return {}
    return {"jitter_s": seconds_of(rule.jitter), "jitter_each": rule.jitter_each}


def _store(installation: Installation, news: Sequence[NewJob]) -> list[str]:
    """Store jobs, all or none; return what changed, in their order."""
    with reading(installation.engine) as connection:
        now = read_clock(connection)
        names = [one.name for one in news]
        app_id, document = installation.small_app.id, actions.c.document
        rows = cursors.seen_named(connection, app_id, names, document)
    begins = first_runs(news, now + SOON + SOON_EACH * len(news))
    documents = []
    for new, begin in zip(news, begins, strict=True):
        row = rows.get(new.name)
        stored = None if row is None else document_in(row.document)
        documents.append(document_of(new, stored, begin))
    made = changes.apply(installation, documents)
    return [one.change for one in made.root]
