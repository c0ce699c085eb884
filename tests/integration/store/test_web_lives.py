"""Workers outside renew their leases through web: none runs out while it is away."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.store import key_values, workers
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back
from models.worker_kinds import EXECUTE_QUICK
from tests.factories import claimed, make_action, make_operation, update_operation
from tests.ticks import LEASE
from tests.transactions import act, clock_of

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
OUTSIDE = "shop.sync"


def web_lived(engine: sa.Engine, seen_s: int, since_s: int) -> None:
    """Let web have lived without a gap, between so many seconds ago."""
    now, ago = clock_of(engine), {"seen": seen_s, "since": since_s}
    lived = {name: (now - timedelta(seconds=one)).isoformat() for name, one in ago.items()}
    act(engine, key_values.set_value, key_values.WEB, json.dumps(lived))


@pytest.mark.parametrize(
    ("task", "lived", "is_taken"),
    [
        pytest.param(OUTSIDE, None, True, id="no_web_ever"),
        pytest.param(OUTSIDE, (1, 100), True, id="it_lives"),
        pytest.param(OUTSIDE, (20, 100), False, id="it_is_away"),
        pytest.param(OUTSIDE, (1, 30), False, id="it_is_back_for_less_than_a_lease"),
        pytest.param(EXECUTE_QUICK, (20, 100), True, id="ours_need_no_web"),
    ],
)
def test_no_lease_over_http_runs_out_while_web_is_away(
    engine: sa.Engine, task: str, lived: tuple[int, int] | None, is_taken: bool
) -> None:
    id = make_operation(engine, make_action(engine), NOON)
    claimed(engine, id)
    update_operation(engine, id, task=task, heartbeat_at=database_now(-100.0))
    if lived is not None:
        web_lived(engine, *lived)

    taken = act(engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)

    assert taken == ([(id, "pending")] if is_taken else [])


def test_a_gap_ends_with_the_next_word_of_a_web_process(engine: sa.Engine) -> None:
    web_lived(engine, 1000, 1000)
    stored = []
    for _ in range(2):
        act(engine, workers.web_seen, LEASE)
        stored.append(act(engine, key_values.json_value, key_values.WEB))

    first, second = stored
    assert first["since"] == first["seen"] == second["since"]
