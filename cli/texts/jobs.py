"""Jobs in words."""

from collections.abc import Iterator

from cli.render import listing, sentence
from models.values import counted
from services.jobs import AddedJob, DeletedJob, ImportedJobs, Jobs

COLUMNS = {
    "id": "ID",
    "url": "URL",
    "interval_s": "INTERVAL",
    "next_run_at": "NEXT RUN",
    "last_state": "LAST STATE",
}
RARE = {"from_end": "FROM END", "jitter_s": "JITTER"}


def _imported(done: ImportedJobs) -> Iterator[str]:
    created = counted(done.created, "job")
    yield f"{created} created, {done.changed} changed, {done.unchanged} unchanged"


def _deleted(one: DeletedJob) -> Iterator[str]:
    yield f"deleted job {one.id} of {one.url}; {counted(one.cancelled, 'run')} cancelled"


FORMS = {
    Jobs: listing(COLUMNS, RARE),
    AddedJob: sentence("{change} job {id} of {url}, every {interval_s} s"),
    ImportedJobs: _imported,
    DeletedJob: _deleted,
}
