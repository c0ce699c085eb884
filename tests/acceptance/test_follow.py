"""The shop's own worker follows: each occurrence runs once, or the record says why not."""

import pytest

from tests.acceptance.shop import RAN_ONCE, Shop


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_followed_task_runs_once_and_ends_on_record(shop: Shop, pool: str) -> None:
    shop.worker(pool=pool)
    id = shop.due("close_day")

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
    assert (row["attempt"], row["sendings"], row["progress"]) == (1, 1, 1.0)
    assert [(one["name"], one["state"]) for one in row["steps"]] == [("celery_task", "success")]
