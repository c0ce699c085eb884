"""The lease of an attempt whose end is being recorded."""

import threading

import pytest
import sqlalchemy as sa

from models.store.operations.claims import Claim
from runtime.config import Settings
from tasks import lease
from tasks.lease import Lease
from tests.factories import claimed, make_action, make_operation
from tests.integration.scheduler.test_tick import SEVEN


def test_an_end_that_is_not_recorded_for_too_long_leaves_the_lease_to_run_out(
    engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RECORDED_WITHIN_S", 0.3)
    id = make_operation(engine, make_action(engine), SEVEN)
    claim = claimed(engine, id)
    assert isinstance(claim, Claim)
    one = Lease(engine, claim, settings.worker, settings.alert)

    with one.held():
        beats = next(each for each in threading.enumerate() if each.name == "minutebook lease")
        one.steps_are_over()
        beats.join(10)

        assert not beats.is_alive()
