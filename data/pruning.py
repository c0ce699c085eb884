"""What the step `maintenance` does here: prunes snapshots, and checks the files of the rest."""

from collections.abc import Callable

import sqlalchemy as sa

from data import snapshots as files
from data.settings import settings_in
from data.store import snapshots as stored
from models.sql import read_clock
from runtime.database import reading
from tasks.step_context import WorkContext
from tasks.steps.maintenance.work import Batch

InBatches = Callable[[WorkContext, str, Batch], int]


def prune(context: WorkContext, in_batches: InBatches) -> tuple[dict[str, int], list[str]]:
    """Prune snapshots and their files; return the counts, and what is wrong with the rest.

    Rows go first, then their files.
    """
    settings, app = settings_in(context.settings), context.small_app
    paths: list[str] = []

    def batch(connection: sa.Connection, most: int) -> int:
        pruned = stored.prune(connection, app.id, settings.retention.snapshots, most)
        paths.extend(pruned)
        return len(pruned)

    rows = in_batches(context, "snapshots", batch)
    removed = files.remove(settings, paths)
    with reading(context.engine) as connection:
        known, now = stored.paths(connection, app.id), read_clock(connection)
        domains = stored.domains_of(connection, app.id)
    removed += files.remove(settings, list(files.orphans(settings, app.name, known, now)))
    names = [domain.name for domain in domains]
    removed += files.remove_leftovers(settings.home, app.name, names, now)
    problems = [
        f"the {place} snapshot of {domain.name} is damaged; refresh with force"
        for domain in domains
        for place, snapshot in (("staging", domain.staging), ("production", domain.production))
        if snapshot and not files.is_there(settings, snapshot.path, snapshot.byte_count)
    ]
    return {"snapshots": rows, "files": removed}, problems
