"""A worker as in a container: a read-only root, no home folder of ours, a URL and a token."""

import subprocess

import pytest

from tests.acceptance.processes import Process, kill, python, until
from tests.acceptance.shop import RAN_ONCE, Shop

# A mount namespace of its own, in which everything but the folders of the test is read-only.
CONFINED = 'mount --make-rprivate / && mount -o remount,bind,ro / && exec "$@"'
can_confine = subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0


@pytest.fixture
def store() -> str:
    """The worker knows no store."""
    return "postgresql"


def confined_worker(shop: Shop) -> Process:
    """Start the shop's worker, which knows the server's URL and a token for its tasks alone."""
    shop.web()
    asked = ("token", "create", "--role", "worker", "--tasks", "tasks.*")
    says = {
        **shop.settings,
        "MINUTEBOOK_URL": shop.address,
        "MINUTEBOOK_TOKEN": shop.installation.cli(*asked)["token"],
        **dict.fromkeys(("SCHED_DATABASE_URL", "SCHED_BROKER_URL"), ""),
        **dict.fromkeys(("SCHED_HOME", "HOME"), "/nowhere"),
    }
    command = python("-m", "celery", "-A", "followed", "worker", "-c", "2", "-Q", "shop,orders")
    options = ("-l", "INFO", "--without-gossip", "--without-mingle")
    inside = ["unshare", "-m", "sh", "-c", CONFINED, "sh", *command, *options]
    worker = shop.installation.processes.start("shop", inside, says, folder=shop.folder)
    worker.said("ready.")
    shop.is_followed()
    return worker


@pytest.mark.skipif(not can_confine, reason="this account makes no mount namespaces")
def test_a_confined_worker_follows_by_a_url_and_a_token_alone(shop: Shop) -> None:
    worker = confined_worker(shop)
    done, failed, retried, lost = (
        shop.due("close_day", name="done"),
        shop.due("write_letter", name="failed"),
        shop.due("order_more", name="retried", step={"kwargs": {"fail": 1}}),
        shop.due("count_stock", name="lost", step={"kwargs": {"list_": str(shop.gate())}}),
    )

    shop.tick()

    ends = shop.installation
    assert ends.becomes(done, "success")["attempt"] == 1
    assert ends.becomes(failed, "failed")["error"] == "LookupError: no paper left"
    assert ends.becomes(retried, "success")["attempt"] == 2
    until(lambda: "count_stock begins" in shop.said(), lambda: str(shop.said()))
    kill(int(ends.row(lost)["worker"].rpartition(":")[2]))
    row = ends.awaits(lost, lambda row: row["losses"] == 1)
    assert row["state"] in {"pending", "failed"}
    assert [line for line in shop.said() if line.startswith("close_day")] == RAN_ONCE
    assert worker.is_alive
