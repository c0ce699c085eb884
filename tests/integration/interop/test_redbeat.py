"""Entries of RedBeat, saved by RedBeat itself and exported by the application."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from dateutil import rrule as weekdays
from redbeat import RedBeatSchedulerEntry
from redbeat.schedules import rrule
from redis import Redis

from interop.outcomes import Outcome
from minutebook.beat import schedule_of
from minutebook.beat.entries import OTHERWISE
from minutebook.beat.stores import GONE
from models.values import format_instant
from models.values.delays import rounded_up
from runtime.clock import utc_now
from tests.moved import NOW, export, moved
from tests.servers import Broker
from tests.tables import table


@pytest.fixture
def app(broker: Broker) -> Iterator[Celery]:
    """A Celery application that keeps its schedule in Redis."""
    app = Celery("shop", broker=broker.url, set_as_current=False)
    app.conf.update(
        timezone="Europe/Paris",
        redbeat_redis_url=broker.url,
        beat_scheduler="redbeat.RedBeatScheduler",
        task_default_queue="shop",
        result_backend=None,
    )
    yield app
    app.close()


def save(app: Celery, name: str, schedule: object, task: str = "run", **rest: Any) -> None:
    RedBeatSchedulerEntry(name, f"shop.tasks.{task}", schedule, app=app, **rest).save()


def found(app: Celery) -> dict[str, Outcome]:
    return moved(json.loads(json.dumps(schedule_of(app))), utc_now())


def due_at(broker: Broker, name: str) -> datetime:
    with Redis.from_url(broker.url) as client:
        score = client.zscore("redbeat::schedule", f"redbeat:{name}")
    assert isinstance(score, float)
    return datetime.fromtimestamp(score, UTC)


def test_entries_become_actions(app: Celery, broker: Broker) -> None:
    save(app, "daily", crontab("5", 0), args=["Paris"], options={"priority": 3})
    save(app, "often", schedule(timedelta(minutes=15)), enabled=False)
    save(app, "halves", crontab([0, 30], "7"), options={"queue": "orders"})
    save(app, "by rrule", rrule("DAILY", dtstart=NOW))

    made = found(app)

    assert [one.kind for one in made.values()] == ["same"] * 4
    documents = {name: one.document or {} for name, one in made.items()}
    assert documents["daily"] == {
        "name": "daily",
        "owner": "import:beat",
        "operations": {
            "celery_task": {
                "task": "shop.tasks.run", "args": ["Paris"], "queue": "shop", "priority": 3,
            },
        },
        "when": {"cron_rule": "5 0 * * *", "timezone": "Europe/Paris"},
        "policy": {"overlap": "allow"},
    }  # fmt: skip
    begins = format_instant(rounded_up(due_at(broker, "often")))
    when = {"every": "PT15M", "starting_at": begins}
    assert (documents["often"]["active"], documents["often"]["when"]) == (False, when)
    assert documents["halves"]["when"]["cron_rule"] == "0,30 7 * * *"
    assert documents["halves"]["operations"]["celery_task"]["queue"] == "orders"


BEGIN = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def rule_of(frequency: str, parts: Mapping[str, Any]) -> rrule:
    """Return a recurrence rule; a part of two letters is a weekday, a longer text an instant."""

    def read(part: Any) -> Any:
        if isinstance(part, list):
            return [read(one) for one in part]
        if isinstance(part, str):
            return getattr(weekdays, part) if len(part) == 2 else datetime.fromisoformat(part)
        return part

    its = {name: read(part) for name, part in parts.items()}
    return rrule(frequency, **{"dtstart": BEGIN, **its})


@pytest.mark.parametrize(("frequency", "parts", "when"), table(__file__, "recurrences_of_redbeat"))
def test_a_recurrence_rule_moves_as_redbeat_keeps_it(
    app: Celery, broker: Broker, frequency: str, parts: dict[str, Any], when: dict[str, object]
) -> None:
    save(app, "it", rule_of(frequency, parts))

    (only,) = found(app).values()

    shown = {"at": "09:30", "timezone": "UTC", "starting_at": "2026-01-05T09:30:00"}
    expected = {**shown, **when}
    made = (only.document or {})["when"]
    assert made == {key: value for key, value in expected.items() if value is not None}
    assert only.kind == "same", only
    assert only.upcoming is not None
    assert only.upcoming.there == only.upcoming.here


@pytest.mark.parametrize(("frequency", "parts", "why"), table(__file__, "what_no_recurrence_says"))
def test_what_a_recurrence_rule_cannot_say_is_named(
    app: Celery, broker: Broker, frequency: str, parts: dict[str, Any], why: str
) -> None:
    save(app, "it", rule_of(frequency, parts))
    save(app, "other", crontab("5", 0))

    kinds = {one.kind: one for one in found(app).values()}

    assert why in kinds["cannot"].why
    assert kinds["same"].name == "other"


def test_the_seconds_of_a_rule_that_began_at_any_instant_are_a_difference(
    app: Celery, broker: Broker
) -> None:
    save(app, "it", rrule("DAILY", BEGIN.replace(second=37)))

    (only,) = found(app).values()

    assert (only.kind, only.remarks) == ("differs", ("its seconds (:37) are left out",))
    assert only.upcoming is not None
    there, here = only.upcoming.differing or (None, None)
    assert there is not None
    assert here is not None
    assert there - here == timedelta(seconds=37)


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param("[", id="no_json"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"schedule": {"__type__": "weekday"}}', id="kind"),
        pytest.param(
            '{"schedule": {"__type__": "interval", "every": 1e300}, "name": "x", "task": "t"}',
            id="for_ever",
        ),
    ],
)
def test_a_strange_definition_is_refused_and_stops_no_other(
    app: Celery, broker: Broker, definition: str
) -> None:
    save(app, "other", crontab("5", 0))
    with Redis.from_url(broker.url) as client:
        client.hset("redbeat:x", "definition", definition)

    made = found(app)

    assert made.pop("other").kind == "same"
    assert [one.kind for one in made.values()] == ["cannot"]
    assert all(one.why and one.instead for one in made.values())


def test_an_entry_whose_definition_is_gone_is_named(app: Celery, broker: Broker) -> None:
    save(app, "gone", crontab("5", 0))
    save(app, "other", crontab("5", 0))
    save(app, "half", crontab("5", 0))
    with Redis.from_url(broker.url) as client:
        client.delete("redbeat:gone")
        client.hdel("redbeat:half", "definition")

    made = found(app)

    assert {name: one.kind for name, one in made.items()} == {
        "gone": "cannot", "half": "cannot", "other": "same",
    }  # fmt: skip
    assert {made["gone"].why, made["half"].why} == {GONE}


SHOP = """
import os
from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker="memory://")
app.conf.update(
    beat_scheduler="redbeat.RedBeatScheduler",
    redbeat_redis_url=os.environ["REDIS"],
    redbeat_key_prefix="shop[1]:",
    timezone="Europe/Paris",
    task_routes={"shop.tasks.routed": {"queue": "orders", "priority": 7}},
    beat_schedule={
        "set here": {"task": "shop.tasks.run", "schedule": 60.0},
        "often": {"task": "shop.tasks.run", "schedule": 60.0},
        "routed": {"task": "shop.tasks.routed", "schedule": crontab([5], 0)},
    },
)
"""


def exported(folder: Path, url: str) -> dict[str, Outcome]:
    (folder / "shop.py").write_text(SHOP)
    done = export(folder, REDIS=url)
    assert done.returncode == 0, done.stderr.decode()
    return moved(json.loads(done.stdout))


def everything(client: Redis) -> Mapping[str, object]:
    return {key: client.dump(key) for key in client.scan_iter("*")}


def test_the_keys_of_redbeat_are_read_with_the_routes_of_the_application(
    app: Celery, broker: Broker, tmp_path: Path
) -> None:
    app.conf.redbeat_key_prefix = "shop[1]:"

    save(app, "daily", crontab("5", 0), args=["Paris"], options={"priority": 3})
    save(app, "often", schedule(timedelta(minutes=15)), enabled=False)
    save(app, "routed", crontab("5", 0), task="routed")
    save(app, "by rule", rrule("WEEKLY", NOW, byweekday=[0, 2]))
    save(app, "at an instant", crontab("5", 0), kwargs={"day": NOW})
    with Redis.from_url(broker.url) as client:
        client.hset("shop[1]:broken", "definition", "{")
        before = everything(client)
        made = exported(tmp_path, broker.url)
        assert everything(client) == before

    kinds = {name: one.kind for name, one in made.items()}
    assert kinds == {
        "daily": "same", "often": "differs", "routed": "same", "set here": "differs",
        "by rule": "same",
        "at an instant": "cannot", "broken": "cannot",
    }  # fmt: skip
    assert made["often"].remarks == (OTHERWISE.format("schedule"),)
    routed = made["routed"].document or {}
    step = {"task": "shop.tasks.routed", "queue": "orders", "priority": 7}
    assert routed["operations"]["celery_task"] == step
