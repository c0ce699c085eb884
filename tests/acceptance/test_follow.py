"""The shop's own worker follows: each occurrence runs once, or the record says why not."""

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.shop import Shop


@pytest.fixture
def shop(installation: Installation) -> Shop:
    return Shop(installation)


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_followed_task_runs_once_and_ends_on_record(shop: Shop, pool: str) -> None:
    shop.worker(pool=pool)
    id = shop.due("close_day")

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert shop.said() == ["close_day begins", "close_day ends"]
    assert (row["attempt"], row["sendings"], row["progress"]) == (1, 1, 1.0)
    assert [(one["name"], one["state"]) for one in row["steps"]] == [("celery_task", "success")]
