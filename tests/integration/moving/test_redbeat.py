"""The keys of RedBeat, written by RedBeat itself, as entries."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from dateutil.rrule import FR, MO, SU
from redbeat import RedBeatSchedulerEntry
from redbeat.schedules import rrule

from models.action.document import ParseContext
from models.errors import Refused
from models.values import format_instant
from moving.outcomes import Outcome, outcomes
from moving.redbeat.keys import Application, entries_of, read_definitions, read_due, read_last_runs
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
        "by rrule": "same",
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


BEGIN = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
TOKYO = BEGIN.astimezone(timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    ("rule", "when"),
    [
        pytest.param(rrule("DAILY", BEGIN), {"rrule": "FREQ=DAILY;INTERVAL=1"}, id="daily"),
        pytest.param(
            rrule("WEEKLY", BEGIN, interval=2, byweekday=[0, 3]),
            {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH"},
            id="every_other_week",
        ),
        pytest.param(
            rrule("WEEKLY", BEGIN, byweekday=(MO, FR), wkst=SU),
            {"rrule": "FREQ=WEEKLY;INTERVAL=1;WKST=SU;BYDAY=MO,FR"},
            id="weekdays",
        ),
        pytest.param(
            rrule("MONTHLY", BEGIN, bymonthday=(1, -1)),
            {"rrule": "FREQ=MONTHLY;INTERVAL=1;BYMONTHDAY=1,-1"},
            id="first_and_last_day",
        ),
        pytest.param(
            rrule("MONTHLY", BEGIN, byweekday=[0, 1, 2, 3, 4], bysetpos=-1),
            {"rrule": "FREQ=MONTHLY;INTERVAL=1;BYSETPOS=-1;BYDAY=MO,TU,WE,TH,FR"},
            id="last_work_day",
        ),
        pytest.param(
            rrule("YEARLY", BEGIN, bymonth=[3, 9], bymonthday=1),
            {"rrule": "FREQ=YEARLY;INTERVAL=1;BYMONTH=3,9;BYMONTHDAY=1"},
            id="months",
        ),
        pytest.param(
            rrule("YEARLY", BEGIN, byweekno=20, byweekday=MO),
            {"rrule": "FREQ=YEARLY;INTERVAL=1;BYWEEKNO=20;BYDAY=MO"},
            id="week_of_the_year",
        ),
        pytest.param(
            rrule("DAILY", BEGIN, count=1_000),
            {"rrule": "FREQ=DAILY;INTERVAL=1;COUNT=1000"},
            id="count",
        ),
        pytest.param(
            rrule("DAILY", BEGIN, until=datetime(2027, 6, 1, tzinfo=UTC)),
            {"rrule": "FREQ=DAILY;INTERVAL=1;UNTIL=20270601T000000Z"},
            id="until",
        ),
        pytest.param(
            rrule("DAILY", BEGIN, byhour=[6, 18]),
            {"rrule": "FREQ=DAILY;INTERVAL=1;BYHOUR=6,18;BYMINUTE=30", "at": None},
            id="hours",
        ),
        pytest.param(
            rrule("DAILY", BEGIN, byhour=6, byminute=[0, 15], bysecond=0),
            {"rrule": "FREQ=DAILY;INTERVAL=1;BYHOUR=6;BYMINUTE=0,15", "at": None},
            id="minutes",
        ),
        pytest.param(
            rrule("DAILY", TOKYO),
            {
                "rrule": "FREQ=DAILY;INTERVAL=1",
                "at": "18:30",
                "timezone": "Etc/GMT-9",
                "starting_at": "2026-01-05T18:30:00",
            },
            id="an_offset",
        ),
        pytest.param(
            rrule("HOURLY", BEGIN, interval=6),
            {"every": "PT6H", "starting_at": "2026-01-05T09:30:00Z"},
            id="hourly",
        ),
    ],
)
def test_a_recurrence_rule_moves_as_redbeat_keeps_it(
    app: Celery, broker: Broker, rule: rrule, when: dict[str, object]
) -> None:
    save(app, "it", rule)

    (only,) = found(broker).values()

    shown = {"at": "09:30", "timezone": "UTC", "starting_at": "2026-01-05T09:30:00"}
    expected = when if "every" in when else {**shown, **when}
    made = (only.document or {})["when"]
    assert made == {key: value for key, value in expected.items() if value is not None}
    assert only.kind == "same", only
    assert only.upcoming is not None
    assert only.upcoming.there == only.upcoming.here


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        pytest.param(rrule("YEARLY", BEGIN, byeaster=0), "has byeaster", id="easter"),
        pytest.param(rrule("DAILY", BEGIN, bysecond=[0, 30]), "(bysecond)", id="seconds"),
        pytest.param(rrule("HOURLY", BEGIN, byminute=[5, 35]), "has byminute", id="minutes"),
        pytest.param(rrule("HOURLY", BEGIN, count=5), "has count", id="count"),
        pytest.param(
            rrule("MINUTELY", BEGIN, until=BEGIN + timedelta(days=900)), "has until", id="until"
        ),
        pytest.param(
            rrule("DAILY", BEGIN.astimezone(timezone(timedelta(hours=5, minutes=30)))),
            "has the offset +05:30",
            id="half_hours",
        ),
        pytest.param(
            rrule("DAILY", BEGIN, byhour=[*range(24)], byminute=[0, 30]), "at most 24", id="times"
        ),
    ],
)
def test_what_a_recurrence_rule_cannot_say_is_named(
    app: Celery, broker: Broker, rule: rrule, why: str
) -> None:
    save(app, "it", rule)
    save(app, "other", crontab("5", 0))

    kinds = {one.kind: one for one in found(broker).values()}

    assert why in kinds["cannot"].why
    assert kinds["same"].name == "other"


def test_the_seconds_of_a_rule_that_began_at_any_instant_are_a_difference(
    app: Celery, broker: Broker
) -> None:
    save(app, "it", rrule("DAILY", BEGIN.replace(second=37)))

    (only,) = found(broker).values()

    assert (only.kind, only.remarks) == ("differs", ("its seconds (:37) are left out",))
    assert only.upcoming is not None
    there, here = only.upcoming.differing or (None, None)
    assert there is not None
    assert here is not None
    assert there - here == timedelta(seconds=37)


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
