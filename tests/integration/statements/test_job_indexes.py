"""What looks for jobs to hand out finds them by an index, whatever else waits."""

from models.store.operations import jobs
from runtime.database import reading
from tests.factories import make_action, make_operation
from tests.integration.statements.conftest import MINUTE, Filled
from tests.integration.statements.plans import Statements


def test_looking_for_jobs(filled: Filled) -> None:
    operations = {"job": {"url": "https://example.com/feed"}}
    action = make_action(filled.engine, name="a job", operations=operations)
    make_operation(filled.engine, action, filled.now - MINUTE)
    statements = Statements(filled.engine)

    with statements.captured(), reading(filled.engine) as connection:
        jobs.offers(connection, {(None, "quick"): 500, (1, "quick"): 3, (1, "crawl"): 1})

    assert statements.scans() == []
    assert "operations_jobs" in statements.indexes()
