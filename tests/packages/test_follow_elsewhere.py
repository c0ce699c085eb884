"""A worker in an environment of its own follows, by a URL and a token, or by the socket.

`make test-matrix` installs each set of libraries; the first needs nothing but what the tests have.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.packages.environments import Environment, Wheels, make_environment, python_of
from tests.tables import table

pytestmark = pytest.mark.parametrize("store", ["sqlite"])
PREFORK = ("--pool", "prefork", "--max-tasks-per-child", "2")


@pytest.fixture
def shop(installation: Installation) -> Shop:
    made = Shop(installation)
    # Beside Django, and an SQLAlchemy that is not the server's.
    file = made.folder / "followed.py"
    file.write_text("import django\nimport sqlalchemy\n" + file.read_text())
    return made


def started(shop: Shop, environment: Environment, *pool: str, **says: str) -> Process:
    """Start the shop's worker from its own environment, which may know no home folder."""
    python, options = str(environment.bin / "python"), ("--without-gossip", "--without-mingle")
    command = [python, "-m", "celery", "-A", "followed", "worker", "-c", "2", "-l", "INFO"]
    settings = {**shop.settings, "PYTHONPATH": "", **says}
    shop.web()
    processes = shop.installation.processes
    worker = processes.start(
        "shop", [*command, "-Q", "shop,orders", *pool, *options], settings, folder=shop.folder
    )
    worker.said("ready.")
    shop.is_followed()
    return worker


def by_url(shop: Shop) -> dict[str, str]:
    """Return what a worker is told that has neither our database nor our home folder."""
    shop.web()
    asked = ("token", "create", "--role", "worker", "--tasks", "tasks.*")
    token = shop.installation.cli(*asked)["token"]
    nothing = {"SCHED_HOME": "/nowhere", "SCHED_DATABASE_URL": "", "SCHED_BROKER_URL": ""}
    return {"MINUTEBOOK_URL": shop.address, "MINUTEBOOK_TOKEN": token, **nothing}


def follows(shop: Shop) -> None:
    """Send a task that ends well, one that fails and one that Celery retries."""
    done, failed, retried = (
        shop.due("close_day", name="done"),
        shop.due("write_letter", name="failed"),
        shop.due("order_more", name="retried", step={"kwargs": {"fail": 1}}),
    )

    shop.tick()

    ends = shop.installation
    assert ends.becomes(done, "success")["attempt"] == 1
    assert ends.becomes(failed, "failed")["error"] == "LookupError: no paper left"
    assert ends.becomes(retried, "success")["attempt"] == 2
    states = [state for _, state, _ in ends.attempts(retried)]
    assert states == ["Celery's retry", "success"]
    assert [line for line in shop.said() if line.startswith("close_day")] == RAN_ONCE


def test_a_worker_follows_by_a_url_and_a_token(shop: Shop, application: Environment) -> None:
    worker = started(shop, application, **by_url(shop))

    follows(shop)

    assert f"follows 4 tasks by Minutebook at {shop.address}" in worker.text()


# Installing takes minutes on a slow line.
@pytest.mark.matrix
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("given", table(__file__, "releases_that_follow"))
def test_a_worker_of_each_release_follows(
    shop: Shop, given: dict[str, Any], wheels: Wheels, tmp_path: Path
) -> None:
    celery, pool = given["celery"], given.get("pool", PREFORK)
    environment = make_environment(tmp_path / "env", python_of(given["python"]))
    environment.install(f"celery=={celery}", *given["beside"], str(wheels.client), is_offline=False)
    worker = started(shop, environment, *pool, **by_url(shop))

    follows(shop)

    assert re.search(rf"v{re.escape(celery)}", worker.text())
