"""The shop's own worker follows: each occurrence runs once, or the record says why not."""

import pytest

from tests.acceptance.processes import python
from tests.acceptance.shop import RAN_ONCE, Shop

# What concerns Celery and its messages alone.
ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"])


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_followed_task_runs_once_and_ends_on_record(shop: Shop, pool: str) -> None:
    shop.worker(pool=pool)
    id = shop.due("close_day")

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
    assert (row["attempt"], row["sendings"], row["progress"]) == (1, 1, 1.0)
    assert [(one["name"], one["state"]) for one in row["steps"]] == [("celery_task", "success")]


@ON_SQLITE
def test_what_beat_or_anybody_else_sends_runs_as_it_always_did(shop: Shop) -> None:
    shop.worker()
    call = "import shop, tasks; tasks.close_day.apply_async(['Lyon'], queue='shop')"
    done = shop.installation.processes.run(python("-c", call), shop.settings, shop.folder)

    assert done.returncode == 0, done.stderr
    shop.says(*RAN_ONCE)
    assert shop.installation.rows() == []
