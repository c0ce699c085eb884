"""What is given is found by its key, also by statistics of a moment when nothing was unstarted.

A database is analysed at any time, most likely when it is quiet. By such statistics the indexes of
what is unstarted, running or owed are empty, which looks cheaper than a key: at the next full
minute, each of many rows would be looked for among all of them.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
import sqlalchemy as sa

from data.store.status import statuses_of
from models.errors import NotFound
from models.sql import read_clock
from models.store import measures, pauses
from models.store.operations import jobs
from models.store.operations.eta import slow_runs
from models.store.pauses import PauseKind, Target
from models.store.scope import Scope
from models.store.tenants import app_overview
from runtime.database import reading
from tests.integration.statements.acts import ACTS
from tests.integration.statements.conftest import Filled
from tests.integration.statements.plans import Statements
from tests.ticks import LEASE

# They hold no more than the workers have processes, and what is on its way to one.
FEW = {"operations_one_running", "operations_heartbeat_stale"}


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("act", "indexes"), ACTS)
def test_no_statement_reads_all_that_is_in_an_index(
    quiet: Filled, act: Callable[[Filled, Statements], None], indexes: set[str]
) -> None:
    statements = Statements(quiet.engine)

    act(quiet, statements)

    reads = statements.reads()
    whole = {
        f"{read.table} by {read.index}: {text}"
        for text, found in reads.items()
        for read in found
        if read.is_whole and read.table in {"operations", "notices"} and read.index not in FEW
    }
    assert reads
    assert not whole
    assert indexes <= statements.indexes()


def look_for_a_job(connection: sa.Connection) -> None:
    """Look for the attempt that a worker without a lease reports."""
    with suppress(NotFound):
        jobs.first_attempt(connection, "report", Scope(1))


@pytest.mark.parametrize(
    ("look", "index"),
    [
        # The page of health, `queue list` and each scrape.
        pytest.param(measures.operations_now, "operations_unstarted", id="queues"),
        pytest.param(measures.operations_now, "operations_one_running", id="running"),
        pytest.param(lambda one: app_overview.overview(one, 1), "operations_one_running", id="app"),
        pytest.param(
            lambda one: statuses_of(one, [1], read_clock(one), LEASE),
            "operations_one_running",
            id="status",
        ),
        pytest.param(
            lambda one: slow_runs(one, Scope(1), LEASE), "operations_one_running", id="slow"
        ),
        pytest.param(look_for_a_job, "operations_one_running", id="job"),
        pytest.param(
            lambda one: pauses.waiting(one, [Target(PauseKind.ALL)], Scope(1)),
            "operations_unstarted",
            id="paused",
        ),
    ],
)
def test_what_waits_or_runs_is_found_among_what_does(
    quiet: Filled, look: Callable[[sa.Connection], object], index: str
) -> None:
    statements = Statements(quiet.engine, is_repeated=False)

    with statements.captured(), reading(quiet.engine) as connection:
        look(connection)

    assert index in statements.indexes()
