import pytest

from models.store.operations.reserve import Queued

SILENT = Queued("quick", silent=2, due=0)


@pytest.mark.parametrize(
    ("queued", "depth", "read", "is_lost"),
    [
        pytest.param(SILENT, 0, {"minutebook.quick"}, True, id="empty"),
        pytest.param(SILENT, 1, {"minutebook.quick"}, False, id="holds_a_message"),
        pytest.param(SILENT, None, {"minutebook.quick"}, False, id="may_not_be_asked"),
        pytest.param(SILENT, 0, {"minutebook.heavy", "quick"}, False, id="no_worker_reads_it"),
        pytest.param(SILENT._replace(silent=0), 0, {"minutebook.quick"}, False, id="just_sent"),
    ],
)
def test_messages_are_lost_where_a_queue_that_a_worker_reads_is_known_to_be_empty(
    queued: Queued, depth: int | None, read: set[str], is_lost: bool
) -> None:
    assert queued.is_lost(depth, read) is is_lost


@pytest.mark.parametrize(
    ("due", "depth", "waits"),
    [
        pytest.param(1, 3, True, id="in_its_queue"),
        pytest.param(1, 0, False, id="in_an_empty_queue"),
        pytest.param(1, None, False, id="in_one_that_may_not_be_asked"),
        pytest.param(0, 3, False, id="nothing_is_due"),
    ],
)
def test_what_is_due_may_wait_in_its_queue_still(due: int, depth: int | None, waits: bool) -> None:
    assert Queued("quick", silent=0, due=due).waits(depth) is waits
