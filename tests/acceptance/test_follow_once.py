"""Tasks of celery-once and celery-singleton, which override how they are sent, are followed."""

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import python, until
from tests.acceptance.shop import Shop
from tests.acceptance.standstill import standing_still

# Beside the example: the same shop with a task of each package.
ALONE = """
import os

from celery_once import QueueOnce
from celery_singleton import Singleton
from followed import app
from models import write

URL = os.environ["SHOP_BROKER_URL"]
app.conf.ONCE = {
    "backend": "celery_once.backends.Redis",
    "settings": {"url": URL, "default_timeout": 3600},
}
app.conf.singleton_backend_url = URL


@app.task(name="tasks.once", base=QueueOnce)
def once(shop):
    write("once", shop, "runs")


@app.task(name="tasks.single", base=Singleton)
def single(shop):
    write("single", shop, "runs")
"""
LOCKS = ("qo_*", "SINGLETON*")


@pytest.fixture
def shop(installation: Installation) -> Shop:
    shop = Shop(installation)
    (shop.folder / "alone.py").write_text(ALONE)
    return shop


def locks(shop: Shop) -> list[bytes]:
    with shop.installation.broker.client() as client:
        return [key for pattern in LOCKS for key in client.keys(pattern)]


@pytest.mark.parametrize("task", ["once", "single"])
def test_a_task_that_is_sent_once_at_most_runs_once_after_an_outage_and_leaves_no_lock(
    shop: Shop, request: pytest.FixtureRequest, task: str
) -> None:
    is_server = shop.installation.store == "postgresql"
    server = request.getfixturevalue("postgresql") if is_server else None
    worker = shop.worker("alone")
    worker.freeze_tree()
    action = shop.action(task)
    first = shop.installation.operation(action, minutes_ago=1)
    shop.tick()

    with standing_still(shop.installation, server):
        worker.thaw_tree()
        worker.said("its message goes back to its queue")

    # A claim that the database committed unheard is given back, and sent again by a tick.
    shop.installation.daemon(shop.settings)
    shop.installation.becomes(first, "success")
    second = shop.installation.operation(action)
    shop.installation.becomes(second, "success")
    assert shop.said() == [f"{task} runs"] * 2
    until(lambda: not locks(shop), lambda: str(locks(shop)))
    code = f"import alone; alone.{task}.apply_async(['Lyon'], queue='shop')"
    done = shop.installation.processes.run(python("-c", code), shop.settings, shop.folder)
    assert done.returncode == 0, done.stderr
    shop.says(*[f"{task} runs"] * 3)
