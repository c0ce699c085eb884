"""What is run by request, as a user calls it, with the exit codes.

`run retry|cancel`, `backfill` and `action run --all`.
"""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.operations.end import Outcome
from runtime.clock import utc_now
from runtime.config import load_settings
from runtime.database import make_engine
from scheduler.changes import Change
from tasks import backfill as filling
from tests.factories import claimed, make_action, make_operation
from tests.integration.cli.conftest import Call
from tests.servers import Broker
from tests.ticks import HOUR
from tests.transactions import finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "Asia/Tokyo"}


@pytest.fixture
def engine(home: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> sa.Engine:
    monkeypatch.setenv("SCHED_BROKER_URL", broker.url)
    return make_engine(load_settings(home, {}))


def make_failed(engine: sa.Engine, action: Change) -> UUID:
    id = make_operation(engine, action, NOON)
    claimed(engine, id)
    finish(engine, id, Outcome(OperationState.FAILED, error="no such host", is_failure=True))
    return id


def test_what_is_refused_is_told_and_the_rest_is_done(call: Call, engine: sa.Engine) -> None:
    failed = make_failed(engine, make_action(engine))
    unknown = uuid4()

    result = call("run", "retry", str(failed), str(unknown))
    wrong = call("run", "retry", str(failed), "no-id")

    assert result.code == 1
    assert result.out.startswith("retried 1 run\n")
    assert result.err == f"error: 1 left out: it does not exist any more ({unknown})\n"
    assert wrong.code == 2
    assert "'no-id' is not a run's id" in wrong.err


def test_a_wait_in_vain_is_exit_code_1(call: Call, engine: sa.Engine) -> None:
    failed = make_failed(engine, make_action(engine))

    result = call("run", "retry", str(failed), "--wait", "--timeout", "0")

    assert (result.code, result.out.splitlines()[-1].split()[-1]) == (1, "queued")
    assert f"run {failed} is queued; to look again: minutebook run show" in result.err


def test_cancel_says_what_it_did(call: Call, engine: sa.Engine) -> None:
    action = make_action(engine)
    running, waiting = (make_operation(engine, action, NOON + n * HOUR) for n in range(2))
    claimed(engine, running)

    result = call("run", "cancel", str(running), str(waiting))
    again = call("run", "cancel", str(waiting))

    assert (result.code, result.out.splitlines()) == (
        0,
        [
            "cancelled 2 runs",
            "      2 of every minute (default)",
            f"  {running} every minute 2027-01-04T12:00:00Z running, asked to end",
            f"  {waiting} every minute 2027-01-04T13:00:00Z cancelled",
        ],
    )
    assert (again.code, again.err) == (2, f"error: 1 left out: it is cancelled ({waiting})\n")


# backfill


def local(back: int) -> str:
    """Return a full hour, so many hours ago, as a clock in Tokyo shows it."""
    at = utc_now().replace(minute=0, second=0, microsecond=0) - back * HOUR
    return at.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%Y-%m-%dT%H:%M")


def test_a_backfill_is_shown_with_its_action_and_can_be_cancelled(
    call: Call, engine: sa.Engine, broker: Broker
) -> None:
    make_action(engine, when=HOURLY)
    ends = ("--from", local(9), "--to", local(5))

    started = call("backfill", "every minute", *ends, "--only", "missing")
    [(id, _)] = broker.messages("default")
    filling.process(engine, UUID(id))
    [shown] = call("action", "show", "every minute", "--json").json["backfills"]
    listed = call("action", "show", "every minute").out
    cancelled = call("backfill", "every minute", "--cancel", "--json")
    again = call("backfill", "every minute", "--cancel")

    assert (started.code, started.out.splitlines()[0]) == (0, f"backfill {id} of every minute")
    assert (shown["id"], shown["state"], shown["mode"]) == (id, "done", "missing")
    assert shown["recorded"] == 5
    assert f"backfill {id} done: 5 recorded, 0 repeated, 0 passed over, from " in listed
    assert (cancelled.json["backfills"], cancelled.json["cancelled"]) == ([id], 5)
    assert again.code == 2
    assert "'every minute' has no backfill with runs that have not started" in again.err


def test_a_wait_in_vain_for_a_backfill_is_exit_code_1(call: Call, engine: sa.Engine) -> None:
    make_action(engine, when=HOURLY)

    result = call(
        *("backfill", "every minute", "--from", local(9), "--to", local(5), "--json"),
        *("--wait", "--timeout", "0"),
    )

    assert (result.code, result.json["state"], result.json["operations"]) == (1, "active", {})
    assert f"backfill {result.json['id']} is active, not ended: 0 runs; " in result.err
    assert f"look again: minutebook action show {result.json['uid']}\n" in result.err


def test_one_that_is_active_already_does_not_stop_the_others(call: Call, engine: sa.Engine) -> None:
    for name in ("one", "two"):
        make_action(engine, name=name)
    call("action", "run", "one")

    some = call("action", "run", "--all")
    none = call("action", "run", "--all")

    assert (some.code, some.out.split(": ")[1]) == (1, "two\n")
    assert some.err.startswith("error: 'one' is already active")
    assert (none.code, none.out, len(none.err.splitlines())) == (2, "", 2)
