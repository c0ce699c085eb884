"""A worker in an environment of its own follows, with its agent in another.

`make test-matrix` installs each set of libraries; the first needs nothing but what the tests have.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.packages.environments import Environment, Wheels, make_environment, python_of

pytestmark = pytest.mark.parametrize("store", ["sqlite"])


@dataclass(frozen=True)
class Libraries:
    """What an application has installed, and its Python where that is at hand."""

    celery: str
    python: str
    beside: tuple[str, ...]

    @property
    def id(self) -> str:
        """Name it in the report."""
        return f"celery {self.celery}, python {self.python}"


SETS = [
    Libraries(
        "5.2.7", "3.9", ("kombu~=5.2.4", "redis~=4.3.6", "SQLAlchemy~=1.4", "Django~=3.2.25")
    ),
    Libraries(
        "5.3.6", "3.9", ("kombu~=5.3.7", "redis~=4.6.0", "SQLAlchemy~=1.4", "Django~=4.2.20")
    ),
    Libraries(
        "5.4.0", "3.10", ("kombu~=5.3.7", "redis~=5.0.8", "SQLAlchemy~=2.0.40", "Django~=4.2.20")
    ),
    Libraries(
        "5.5.3", "3.11", ("kombu~=5.5.4", "redis~=5.2.1", "SQLAlchemy~=2.0.40", "Django~=5.2.0")
    ),
    Libraries(
        "5.6.3", "3.12", ("kombu~=5.6.0", "redis~=6.4.0", "SQLAlchemy~=2.0.40", "Django~=5.2.0")
    ),
    Libraries(
        "5.7.0", "3.13", ("kombu~=5.7.0", "redis", "packaging", "SQLAlchemy~=2.1.0", "Django~=6.0")
    ),
]


@pytest.fixture
def shop(installation: Installation) -> Shop:
    made = Shop(installation)
    # Beside Django, and an SQLAlchemy that is not the server's.
    file = made.folder / "followed.py"
    file.write_text("import django\nimport sqlalchemy\n" + file.read_text())
    return made


def started(shop: Shop, environment: Environment, agent: str) -> Process:
    """Start the shop's worker from its own environment."""
    python, options = str(environment.bin / "python"), ("--without-gossip", "--without-mingle")
    command = [python, "-m", "celery", "-A", "followed", "worker", "-c", "2", "-l", "INFO"]
    settings = {**shop.settings, "SCHED_AGENT": agent, "PYTHONPATH": ""}
    processes = shop.installation.processes
    worker = processes.start(
        "shop", [*command, "-Q", "shop,orders", *options], settings, folder=shop.folder
    )
    worker.said("ready.")
    shop.is_followed()
    return worker


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


def test_a_worker_follows_with_its_agent_in_another_environment(
    shop: Shop, application: Environment, server: Environment
) -> None:
    worker = started(shop, application, str(server.bin / "minutebook"))

    follows(shop)

    agent = shop.agent(worker)
    assert str(server.folder) in " ".join(agent.cmdline())


@pytest.mark.matrix
def test_a_worker_follows_through_the_socket_of_a_sidecar(
    shop: Shop, application: Environment, server: Environment
) -> None:
    path = shop.folder / "agent.sock"
    command = [str(server.bin / "minutebook"), "agent", "--socket", str(path)]
    settings = {"SCHED_CELERY_TASKS": "tasks.*", "PYTHONPATH": ""}
    sidecar = shop.installation.processes.start("sidecar", command, settings)
    sidecar.said(f"agent serves {path}")
    started(shop, application, f"unix:{path}")

    follows(shop)


# Installing takes minutes on a slow line.
@pytest.mark.matrix
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("libraries", [pytest.param(one, id=one.id) for one in SETS])
def test_a_worker_of_each_release_follows(
    shop: Shop, libraries: Libraries, wheels: Wheels, server: Environment, tmp_path: Path
) -> None:
    environment = make_environment(tmp_path / "env", python_of(libraries.python))
    environment.install(
        f"celery=={libraries.celery}", *libraries.beside, str(wheels.client), is_offline=False
    )
    worker = started(shop, environment, str(server.bin / "minutebook"))

    follows(shop)

    assert re.search(rf"v{re.escape(libraries.celery)}", worker.text())
