"""On a broker where our account has only the rights that the handbook names."""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from pydantic import SecretStr

from broker.probe import probe
from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, until
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker

PAGE = (ROOT / "docs/how-to/operate/secrets-and-tls.md").read_text(encoding="utf-8")
[OF_REDIS] = re.findall(r"^redis-cli (ACL SETUSER minutebook .*?)^```", PAGE, re.M | re.S)
[OF_RABBITMQ] = re.findall(r"^rabbitmqctl (.*?)^```", PAGE, re.M | re.S)
ACCOUNT = "minutebook:PASSWORD@"


@pytest.fixture
def redis_url(broker: Broker) -> Iterator[str]:
    with broker.client() as client:
        client.execute_command(*shlex.split(OF_REDIS))
        yield broker.url.replace("//", f"//{ACCOUNT}", 1)
        client.execute_command("ACL", "DELUSER", "minutebook")


@pytest.fixture
def rabbitmq_url(rabbitmq: RabbitMQ) -> Iterator[str]:
    rabbitmq.control("add_user", "minutebook", "PASSWORD")
    rabbitmq.control(*shlex.split(OF_RABBITMQ))
    yield rabbitmq.url.replace("guest:guest@", ACCOUNT)
    rabbitmq.control("delete_user", "minutebook")


@pytest.fixture(params=["redis_url", "rabbitmq_url"])
def installation(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings], broker: Broker
) -> Iterator[Installation]:
    url = SecretStr(request.getfixturevalue(request.param))
    settings = home_of("sqlite").model_copy(update={"broker_url": url})
    with closing(Installation("sqlite", settings, broker)) as made:
        yield made


def test_operations_are_sent_and_run_and_doctor_finds_the_broker_sound(
    installation: Installation,
) -> None:
    daemon = installation.daemon()
    worker = installation.worker(is_awaited=True)
    due = installation.due_action()
    [row] = installation.awaited_rows(due, 1)

    assert installation.all_end([row["id"]]) == ["success"]
    found = probe(installation.settings, ["quick"])
    assert found.evicts is None
    until(lambda: len(installation.ticks()) > 1, "it ticks again")
    refused = ("NoPermission", "ACCESS_REFUSED", "does not let us")
    assert not [text for text in refused if text in daemon.text() + worker.text()]
