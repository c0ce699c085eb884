"""A Redis that loses messages and refuses new ones: two ticks after it is well, all wait again."""

import shutil
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure, disconnect
from models.store.notices.alerting import NO_ALERTS
from runtime.config import Settings
from runtime.database import make_engine
from scheduler.sweep import Sweeper
from tests.factories import row_of
from tests.integration.broker.test_whose_error import (
    master_down,
    not_saved,
    out_of_memory,
    read_only,
    wants_a_password,
)
from tests.integration.scheduler.test_lost_messages import (
    LEASE,
    empty,
    listen,
    messages,
    queued,
    run_tick,
    silent,
    texts,
)
from tests.sentinel import Replicated, replicated
from tests.servers import Broker, temporary_folder


def states(engine: sa.Engine, ids: list[UUID]) -> set[str]:
    return {row_of(engine, id)["state"] for id in ids}


@pytest.mark.parametrize(
    "state", [read_only, master_down, out_of_memory, not_saved, wants_a_password]
)
def test_what_was_lost_is_sent_again_once_the_broker_takes_messages(
    engine: sa.Engine, broker: Broker, state: Callable[[Broker], Iterator[None]]
) -> None:
    sweeper = Sweeper(LEASE, NO_ALERTS)
    ids = queued(engine, sweeper)
    listen(engine)
    silent(engine, ids)
    empty(broker)

    with state(broker):  # type: ignore[attr-defined]
        refused = run_tick(engine, sweeper, 1)
        assert states(engine, ids) <= {"pending", "queued"}
    silent(engine, ids)
    after = [run_tick(engine, sweeper, minutes) for minutes in (2, 3)]

    assert (refused.sent, refused.broker_error is not None) == (0, True)
    assert sum(report.sent for report in after) == 2
    assert messages(broker) == texts(ids)
    assert states(engine, ids) == {"queued"}


@pytest.fixture
def brokers() -> Iterator[Replicated]:
    """A broker with a replica and a Sentinel."""
    folder = temporary_folder()
    with replicated(folder) as made:
        yield made
    shutil.rmtree(folder, ignore_errors=True)


def test_what_a_replica_lacks_is_sent_again_once_it_has_taken_over(
    brokers: Replicated, home_of: Callable[[str], Settings]
) -> None:
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(brokers.url)})
    configure(settings)
    engine = make_engine(settings)
    sweeper = Sweeper(LEASE, NO_ALERTS)
    brokers.fall_behind()
    ids = queued(engine, sweeper)
    listen(engine)
    assert messages(brokers.primary) == texts(ids)

    brokers.fail_over(loses=True)
    assert messages(brokers.replica) == []
    silent(engine, ids)
    sent = sum(run_tick(engine, sweeper, minutes).sent for minutes in (1, 2))

    disconnect()
    assert sent == 2
    assert messages(brokers.replica) == texts(ids)
    assert states(engine, ids) == {"queued"}
    engine.dispose()
