"""What looks for jobs finds them by an index, whatever else waits; and pages of other lists."""

from models.job import id_of
from models.store.actions import jobs as action_jobs
from models.store.actions import search
from models.store.operations import jobs
from models.store.people import users
from models.store.scope import WHOLE_INSTALLATION, Scope
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


def test_a_job_and_a_page_of_jobs_are_found(filled: Filled) -> None:
    operations = {"job": {"url": "https://example.com/other"}}
    make_action(filled.engine, name="another job", operations=operations)
    statements = Statements(filled.engine)

    with statements.captured(), reading(filled.engine) as connection:
        (found,) = action_jobs.with_job(connection, 1, id_of("https://example.com/other"))
        page = action_jobs.page(connection, 1, None, 50)
        rest = action_jobs.page(connection, 1, (found["job_id"], found["name"]), 50)

    place = [one["name"] for one in page].index("another job")
    assert (found["name"], len(rest)) == ("another job", len(page) - place - 1)
    assert statements.scans() == []
    assert "actions_jobs" in statements.indexes()


def test_a_page_of_actions_and_one_of_users_are_found(filled: Filled) -> None:
    statements = Statements(filled.engine)

    with statements.captured(), reading(filled.engine) as connection:
        for scope in (Scope(1), WHOLE_INSTALLATION):
            wanted = search.Asked(scope, search.ActionFilter(), ("a", 1))
            search.page(connection, wanted, 50)
        users.page(connection, 1, "a", 50)

    assert statements.scans() == []
