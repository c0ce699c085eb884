"""A worker as in a container: a read-only root, no home, no network but the ways to two servers."""

import socket
from collections.abc import Iterator
from pathlib import Path
from sys import maxsize
from urllib.parse import urlsplit

import pytest

from tests.acceptance.processes import Process, kill, python, until
from tests.acceptance.proxy import Proxy
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.namespaces import own_namespaces

# The worker knows no store.
pytestmark = pytest.mark.parametrize("store", ["postgresql"])

CONFINED = Path(__file__).with_name("confined.py")


@pytest.fixture
def worker(shop: Shop) -> Iterator[Process]:
    """The shop's worker: it knows a URL and a token, and reaches web and its own broker alone."""
    alone = own_namespaces("--map-root-user", "--mount", "--net")
    shop.web()
    asked = ("token", "create", "--role", "worker", "--tasks", "tasks.*")
    says = {
        **shop.settings,
        "MINUTEBOOK_URL": shop.address,
        "MINUTEBOOK_TOKEN": shop.installation.cli(*asked)["token"],
        **dict.fromkeys(("SCHED_DATABASE_URL", "SCHED_BROKER_URL"), ""),
        **dict.fromkeys(("SCHED_HOME", "HOME"), "/nowhere"),
    }
    ports = [urlsplit(shop.address).port or 0, shop.installation.broker.port]
    told = str(shop.installation.home / "ways.sock")
    celery = python("-m", "celery", "-A", "followed", "worker", "-c", "2", "-Q", "shop,orders")
    options = ("-l", "INFO", "--without-gossip", "--without-mingle")
    inside = python("-P", str(CONFINED), told, str(shop.folder), *map(str, ports), "--", *celery)
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(told)
        listens.listen()
        listens.settimeout(60)
        command = [*alone, *inside, *options]
        worker = shop.installation.processes.start("shop", command, says, folder=shop.folder)
        with listens.accept()[0] as teller:
            _, handles, _, _ = socket.recv_fds(teller, 16, len(ports))
    ways = [
        # What listens in the namespace's network is served from this one.
        Proxy(port, maxsize, listens=socket.socket(fileno=handle))
        for port, handle in zip(ports, handles, strict=True)
    ]
    worker.said("ready.")
    shop.is_followed()
    yield worker
    worker.kill()
    for one in ways:
        one.close()


def test_a_confined_worker_follows_by_a_url_and_a_token_alone(shop: Shop, worker: Process) -> None:
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
