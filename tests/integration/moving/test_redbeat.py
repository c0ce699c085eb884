"""The keys of RedBeat, written by RedBeat itself, as entries."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from redbeat import RedBeatSchedulerEntry
from redbeat.schedules import rrule

from models.action import ParseContext
from models.errors import Refused
from models.values import format_instant
from moving.outcomes import Outcome, outcomes
from moving.redbeat import Application, entries_of, read_definitions, read_due, read_last_runs
from runtime.clock import utc_now
from tasks.built_in import built_in_steps
from tests.servers import Broker

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)


@pytest.fixture
def app(broker: Broker) -> Iterator[Celery]:
    """A Celery application that keeps its schedule in Redis."""
    app = Celery("shop", broker=broker.url, set_as_current=False)
    app.conf.update(timezone="Europe/Paris", redbeat_redis_url=broker.url)
    yield app
    app.close()


def save(app: Celery, name: str, schedule: object, **rest: Any) -> None:
    RedBeatSchedulerEntry(name, "shop.tasks.run", schedule, app=app, **rest).save()


def found(broker: Broker) -> dict[str, Outcome]:
    definitions = read_definitions(broker.url)
    due = read_due(broker.url)
    ran = read_last_runs(broker.url, due)
    app = Application("Europe/Paris", "shop", due, utc_now(), ran)
    return {one.name: one for one in outcomes(entries_of(definitions, app), CONTEXT)}


def test_entries_become_actions(app: Celery, broker: Broker) -> None:
    save(app, "daily", crontab("5", 0), args=["Paris"], options={"priority": 3})
    save(app, "often", schedule(timedelta(minutes=15)), enabled=False)
    save(app, "halves", crontab([0, 30], "7"), options={"queue": "orders"})
    save(app, "by rrule", rrule("DAILY", dtstart=NOW))

    made = found(broker)

    assert {name: one.kind for name, one in made.items()} == {
        "daily": "same",
        "often": "same",
        "halves": "same",
        "redbeat:by rrule": "cannot",
    }
    documents = {name: one.document or {} for name, one in made.items()}
    assert documents["daily"] == {
        "name": "daily",
        "owner": "import:redbeat",
        "operations": {
            "celery_task": {
                "task": "shop.tasks.run", "args": ["Paris"], "queue": "shop", "priority": 3,
            },
        },
        "when": {"cron_rule": "5 0 * * *", "timezone": "Europe/Paris"},
        "policy": {"overlap": "allow"},
    }  # fmt: skip
    begins = format_instant(read_due(broker.url)["redbeat:often"])
    when = {"every": "PT15M", "starting_at": begins}
    assert (documents["often"]["active"], documents["often"]["when"]) == (False, when)
    assert documents["halves"]["when"]["cron_rule"] == "0,30 7 * * *"
    assert documents["halves"]["operations"]["celery_task"]["queue"] == "orders"


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        pytest.param("[", "is not JSON", id="no_json"),
        pytest.param("[" * 100_000, "is not JSON", id="deep"),
        pytest.param("[]", "has no schedule", id="a_list"),
        pytest.param('{"schedule": {"__type__": "weekday"}}', "is a weekday", id="kind"),
        pytest.param(
            json.dumps({"name": 1, "schedule": {"__type__": "interval", "every": 60}}),
            "is not RedBeat's: task; name",
            id="half_an_entry",
        ),
        pytest.param(
            '{"schedule": {"__type__": "crontab", "": "1"}, "name": "x"}',
            "is not RedBeat's: task",
            id="field_without_name",
        ),
        pytest.param(
            '{"schedule": {"__type__": "interval", "every": 1e300}, "name": "x", "task": "t"}',
            "is too long",
            id="for_ever",
        ),
    ],
)
def test_a_strange_definition_is_refused(definition: str, why: str) -> None:
    (only,) = outcomes(
        entries_of({"redbeat:x": definition}, Application("UTC", "celery", {}, NOW)), CONTEXT
    )

    assert only.kind == "cannot"
    assert why in only.why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("redis://:s3cret@127.0.0.1:1/0", "Redis cannot be read", id="away"),
        pytest.param("s3cret", "the URL is not understood", id="no_url"),
    ],
)
def test_a_redis_that_cannot_be_read_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        read_definitions(url)

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([NOW], {}),
        ([[NOW]], {}),
        ([{"at": NOW}], {}),
        ([1, [2, {"a": [NOW]}]], {}),
        ([NOW, NOW], {}),
        ([], {"since": NOW}),
        ([], {"span": {"since": NOW}}),
        ([], {"days": [NOW]}),
        ([], {"days": [{"begin": 1, "end": NOW}]}),
        ([1], {"a": 1, "since": NOW}),
    ],
)
def test_an_object_that_json_cannot_hold_is_refused(
    app: Celery, broker: Broker, args: list[Any], kwargs: dict[str, Any]
) -> None:
    save(app, "it", crontab("5", 0), args=args, kwargs=kwargs)
    save(app, "other", crontab("5", 0))

    made = found(broker)

    assert made["other"].kind == "same"
    assert [one.kind for name, one in made.items() if name != "other"] == ["cannot"]
    assert any("JSON cannot hold" in one.why and "datetime" in one.why for one in made.values())


def test_a_prefix_without_entries_is_refused(app: Celery, broker: Broker) -> None:
    save(app, "it", crontab("5", 0))

    with pytest.raises(Refused, match="no entry of RedBeat whose key begins with 'shop:'; write"):
        read_definitions(broker.url, "shop:")
