"""Jobs in words."""

from collections.abc import Iterator

from cli.render import Line, rows_of
from models.values import counted
from views.jobs import AddedJob, DeletedJob, ImportedJobs, Jobs

COLUMNS = {
    "id": "ID",
    "url": "URL",
    "interval_s": "INTERVAL",
    "next_run_at": "NEXT RUN",
    "last_state": "LAST STATE",
}
RARE = {"priority": "PRIORITY"}


def _jobs(listed: Jobs) -> Iterator[Line]:
    yield rows_of(listed.root, COLUMNS, RARE)


def _added(one: AddedJob) -> Iterator[str]:
    yield f"{one.change} job {one.id} of {one.url}, every {one.interval_s} s"


def _imported(done: ImportedJobs) -> Iterator[str]:
    created = counted(done.created, "job")
    yield f"{created} created, {done.changed} changed, {done.unchanged} unchanged"


def _deleted(one: DeletedJob) -> Iterator[str]:
    yield f"deleted job {one.id} of {one.url}; {counted(one.cancelled, 'run')} cancelled"


FORMS = {Jobs: _jobs, AddedJob: _added, ImportedJobs: _imported, DeletedJob: _deleted}
