"""What is given is found by its key, also by statistics of a moment when nothing was unstarted.

A database is analysed at any time, most likely when it is quiet. By such statistics the indexes of
what is unstarted, running or owed are empty, which looks cheaper than a key: at the next full
minute, each of many rows would be looked for among all of them.
"""

from collections.abc import Callable

import pytest

from models.store import measures, overview
from models.store.scope import WHOLE_INSTALLATION
from runtime.database import reading
from tests.integration.statements.acts import ACTS, assert_indexed
from tests.integration.statements.conftest import Filled
from tests.integration.statements.plans import Statements
from tests.ticks import MINUTE

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


def test_what_waits_and_runs_is_counted_without_what_ended(quiet: Filled) -> None:
    """As the page of health, `queue list` and each scrape do."""
    statements = Statements(quiet.engine, is_repeated=False)

    with statements.captured(), reading(quiet.engine) as connection:
        measures.operations_now(connection)
        overview.running(connection, WHOLE_INSTALLATION, 12)
        overview.counts(connection, WHOLE_INSTALLATION, quiet.now, MINUTE)

    assert_indexed(statements, "operations_unstarted", "operations_one_running")
