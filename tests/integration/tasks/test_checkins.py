"""Check-ins with Sentry Crons: at the start, at each end, and for what was missed."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure
from models.action.hooks import HooksModel
from models.store.notices import missed
from models.store.notices.alerting import NO_ALERTS
from models.store.notices.missed import Episode, Missed
from models.store.scope import WHOLE_INSTALLATION
from runtime.config import Settings
from scheduler.on_demand.cancel import cancel
from scheduler.on_demand.restart import retry
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tasks.execute import run_attempt
from tests.celery_messages import allowing, celery_action, celery_messages
from tests.factories import STEPS, make_operation, rows_of
from tests.integration.tasks.crew import Crew
from tests.receiver import Receiver, receiver

pytestmark = pytest.mark.usefixtures("own_steps")
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
CRON = {"cron_rule": "30 7 * * 1-5", "timezone": "Europe/Paris"}


@pytest.fixture
def sentry() -> Iterator[Receiver]:
    """A server that takes envelopes, as Sentry does."""
    with receiver() as found:
        yield found


@pytest.fixture
def crew(engine: sa.Engine, settings: Settings, sentry: Receiver) -> Crew:
    return Crew(engine, watching(settings, sentry))


def watching(settings: Settings, sentry: Receiver, **changes: Any) -> Settings:
    dsn = SecretStr(sentry.url.replace("http://", "http://public@") + "/prefix/4711")
    alert = settings.alert.model_copy(update={"sentry_dsn": dsn, **changes})
    return settings.model_copy(update={"alert": alert})


def heard(sentry: Receiver) -> list[dict[str, Any]]:
    """Return the check-ins that Sentry got, oldest first."""
    return [json.loads(one.body.decode().splitlines()[2]) for one in sentry.got]


def statuses(sentry: Receiver) -> list[str]:
    return [one["status"] for one in heard(sentry)]


@pytest.mark.parametrize(
    ("end", "status"), [("success", "ok"), ("failed", "error"), ("partial", "error")]
)
def test_an_end_checks_in_with_what_the_monitor_expects(
    crew: Crew, sentry: Receiver, end: str, status: str
) -> None:
    action = crew.make(when=CRON, hooks={"monitor": "nightly"}, policy={"time_limit": "PT90S"})

    id = crew.run(action, end)
    crew.deliver()

    (request,), (said,) = sentry.got, heard(sentry)
    assert request.path == "/prefix/api/4711/envelope/"
    assert "sentry_key=public" in request.headers["X-Sentry-Auth"]
    assert said.pop("duration") >= 0
    assert said == {
        "check_in_id": id.hex,
        "monitor_slug": "nightly",
        "status": status,
        "environment": "production",
        "monitor_config": {
            "schedule": {"type": "crontab", "value": "30 7 * * 1-5"},
            "timezone": "Europe/Paris",
            "checkin_margin": 10,
            "max_runtime": 2,
        },
    }


def test_a_start_that_is_delivered_checks_in_with_the_id_of_its_end(
    crew: Crew, sentry: Receiver
) -> None:
    crew.during = crew.deliver

    id = crew.run(crew.make(hooks={"monitor": True}))
    crew.deliver()

    assert statuses(sentry) == ["in_progress", "ok"]
    assert {one["check_in_id"] for one in heard(sentry)} == {id.hex}


def test_a_retry_begins_no_second_check_in(crew: Crew, engine: sa.Engine) -> None:
    action = crew.make(hooks={"monitor": True}, policy={"retry": {"max_attempts": 2}})
    crew.run(action, "pending")

    kinds = [row["kind"] for row in crew.rows()]
    assert kinds == ["started"]


def test_a_retry_by_hand_is_another_check_in(
    crew: Crew, engine: sa.Engine, sentry: Receiver
) -> None:
    id = crew.run(crew.make(hooks={"monitor": True}), "failed")
    crew.deliver()
    crew.error, crew.during = None, crew.deliver

    again, _ = retry(engine, id, WHOLE_INSTALLATION, "ann")
    run_attempt(engine, crew.settings, crew.registry, (id, again.attempt), "tests")
    crew.deliver()

    failed, begun, succeeded = heard(sentry)
    assert statuses(sentry) == ["error", "in_progress", "ok"]
    # Sentry ignores what comes after an end.
    assert failed["check_in_id"] == id.hex
    assert begun["check_in_id"] == succeeded["check_in_id"] != id.hex


def test_what_is_cancelled_before_it_began_checks_in_not_at_all(
    crew: Crew, engine: sa.Engine
) -> None:
    id = make_operation(engine, crew.make(hooks={"monitor": True}), NOON)

    cancel(engine, id, WHOLE_INSTALLATION, "ann")

    assert crew.rows() == []


@pytest.mark.parametrize(
    ("app_wide", "hooks", "slugs"),
    [
        pytest.param(False, {}, [], id="nobody_asked"),
        pytest.param(True, {}, ["close-the-day-paris"], id="all"),
        pytest.param(True, {"monitor": False}, [], id="all_but_this"),
        pytest.param(True, {"monitor": "own"}, ["own"], id="by_its_name"),
    ],
)
def test_the_installation_may_watch_each_action(
    crew: Crew, sentry: Receiver, app_wide: bool, hooks: dict[str, Any], slugs: list[str]
) -> None:
    crew.settings = watching(crew.settings, sentry, sentry_all=app_wide)

    crew.run(crew.make(name="Close the day (Paris)", hooks=hooks))
    crew.deliver()

    assert [one["monitor_slug"] for one in heard(sentry)] == slugs


def test_without_a_dsn_nothing_is_owed(engine: sa.Engine, settings: Settings) -> None:
    crew = Crew(engine, settings)

    crew.run(crew.make(hooks={"monitor": True}))

    assert crew.rows() == []


def test_sentry_that_is_away_is_tried_again(crew: Crew, sentry: Receiver) -> None:
    sentry.answers = [503]
    crew.run(crew.make(hooks={"monitor": True}))

    assert [*crew.deliver(), *crew.deliver()] == ["put off", "done"]


def test_what_was_missed_is_told_of_each_action(
    crew: Crew, engine: sa.Engine, sentry: Receiver
) -> None:
    made = [crew.make(name=f"a {number}", hooks={"monitor": True}) for number in range(12)]
    gone = {one.uid: Missed(3, NOON, NOON, hooks=HooksModel(monitor=True)) for one in made}
    for _ in range(2):
        with engine.begin() as connection:
            missed.enqueue(connection, Episode("down", "no daemon"), gone, crew.settings.alert)

    crew.deliver()

    # Sentry refuses the status "missed".
    assert statuses(sentry) == ["error"] * 12
    assert {one["monitor_slug"] for one in heard(sentry)} == {f"a-{n}" for n in range(12)}


def test_a_task_of_an_application_carries_what_sentry_s_integration_reads(
    crew: Crew, engine: sa.Engine, broker: Any
) -> None:
    configure(allowing(crew.settings, "shop.*"))
    action = celery_action(engine, since=NOON - timedelta(minutes=1), hooks={"monitor": "close"})

    tick(engine, NOON, Sweeper(timedelta(seconds=45), NO_ALERTS), steps=STEPS)

    (message,), (row,) = celery_messages(broker), rows_of(engine, action)
    assert message.headers["sentry-monitor-slug"] == "close"
    assert message.headers["sentry-monitor-check-in-id"] == row["id"].hex
    assert message.headers["sentry-monitor-config"]["schedule"]["value"] == "* * * * *"
    assert float(message.headers["sentry-monitor-start-timestamp-s"]) > 0
