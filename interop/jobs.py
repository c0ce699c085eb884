"""A list of jobs of another scheduler, `{url, interval_s, meta?}`, as entries."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from interop.entries import Entry, Refused
from models.errors import InvalidDocument
from services.files import Document
from services.jobs.documents import NewJob, check_is_first, document_of, first_runs, new_job

OWNER = "import:jobs"
# First runs are counted from here, so that importing a file again changes nothing.
GRID = datetime(2000, 1, 1, tzinfo=UTC)


def entries_of(documents: Sequence[Document]) -> Iterator[Entry | Refused]:
    """Yield the jobs; those of one interval are spread evenly over it."""
    jobs: list[tuple[str, NewJob]] = []
    places: dict[str, str] = {}
    for where, value in documents:
        try:
            job = new_job(value)
            check_is_first(job, where, places)
            jobs.append((where, job))
        except InvalidDocument as error:
            url = value.get("url") if isinstance(value, dict) else None
            yield Refused.by(str(url or where), where, error)
    begins = first_runs([job for _, job in jobs], GRID)
    for (where, job), first in zip(jobs, begins, strict=True):
        made = document_of(job, None, first)
        yield Entry(
            name=made["name"],
            where=where,
            description=job.url,
            owner=OWNER,
            operations=made["operations"],
            when=made["when"],
            policy=made.get("policy", {}),
        )
