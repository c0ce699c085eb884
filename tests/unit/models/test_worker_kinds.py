import pytest

from models.job import listed_queue
from models.worker_kinds import (
    CELERY,
    HTTP,
    OURS,
    WORKER_KINDS,
    WorkerKind,
)


def test_no_two_carriers_list_a_queue_under_one_name() -> None:
    assert {one.listed("quick") for one in WORKER_KINDS} == {
        "minutebook.quick",
        "minutebook.job:quick",
        "quick",
    }
    # Workers over HTTP are recorded beside ours.
    assert HTTP.listed("quick") == OURS.listed(listed_queue("quick"))


@pytest.mark.parametrize(
    ("worker_kind", "queue", "is_sent", "is_known"),
    [
        pytest.param(OURS, "quick", False, True, id="ours"),
        pytest.param(HTTP, "a/b", False, True, id="over_http"),
        pytest.param(CELERY, "orders", True, True, id="an_application_s_that_follows"),
        pytest.param(CELERY, "orders", False, False, id="not_sent_yet"),
        pytest.param(CELERY, "shop/orders", True, False, id="routed_by_an_exchange"),
    ],
)
def test_the_readers_of_an_application_s_queue_are_known_only_if_they_follow(
    worker_kind: WorkerKind, queue: str, is_sent: bool, is_known: bool
) -> None:
    assert worker_kind.knows_readers(queue, is_sent=is_sent) is is_known
