import json
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab

from interop.beat_file import entries_of
from interop.celery_work import check_exchange
from interop.entries import Refused
from interop.outcomes import Outcome, outcomes
from minutebook import beat
from models.errors import InvalidDocument
from tests.moved import CONTEXT, NOW


def written(schedule: object, broker_options: Any = None, **entry: Any) -> Any:
    app = Celery("shop", broker="redis://", set_as_current=False)
    app.conf.update(
        timezone="Europe/Paris",
        task_default_queue="shop",
        broker_transport_options=broker_options or {},
        beat_schedule={"it": {"task": "tasks.it", "schedule": schedule, **entry}},
    )
    return json.loads(json.dumps(beat.schedule_of(app)))


def moved(schedule: object, cut_over_at: datetime | None = None, **entry: Any) -> Outcome:
    found = entries_of(written(schedule, **entry), "beat.json", NOW)
    (only,) = outcomes(found, CONTEXT, cut_over_at)
    return only


def document(*given: Any, **entry: Any) -> dict[str, Any]:
    found = moved(*given, **entry).document
    assert found is not None
    return found


def test_an_entry_becomes_an_action_with_its_arguments_and_queue() -> None:
    found = moved(crontab("5", "0"), args=["Paris"], kwargs={"dry": False})

    step = {"task": "tasks.it", "args": ["Paris"], "kwargs": {"dry": False}, "queue": "shop"}
    assert found.kind == "same"
    assert found.document == {
        "name": "it",
        "owner": "import:beat",
        "operations": {"celery_task": step},
        "when": {"cron_rule": "5 0 * * *", "timezone": "Europe/Paris"},
        "policy": {"overlap": "allow"},
    }


def test_schedules() -> None:
    lists = {"cron_rule": "0,30 7,8 * * *", "timezone": "Europe/Paris"}

    assert document(900.0)["when"] == {"every": "PT15M"}
    assert document(crontab(minute=[0, 30], hour=[8, 7]))["when"] == lists


def test_what_no_action_can_say_is_refused_with_a_way_out() -> None:
    found = moved(0.5)

    assert (found.kind, found.document) == ("cannot", None)
    assert "not a whole number of seconds" in found.why
    assert found.instead


def test_a_solar_schedule_becomes_the_same_event_at_full_minutes() -> None:
    made = written(60.0)
    made["entries"][0]["schedule"] = {"solar": {"event": "sunset", "lat": 48.85, "lon": 2.35}}
    (found,) = outcomes(entries_of(made, "beat.json", NOW), CONTEXT)

    assert found.kind == "differs"
    assert found.document is not None
    assert found.document["when"] == {"solar": "sunset", "lat": 48.85, "lon": 2.35}
    assert found.remarks == ("its instants are those of the sun, at the nearest full minute",)


def test_options_of_the_message_are_carried_over() -> None:
    plain = {"priority": 7, "headers": {"tenant": "a"}, "ignore_result": True}
    options = {**plain, "expires": 120}
    step = document(60.0, options=options)["operations"]["celery_task"]

    assert {**plain, "expires": 120.0}.items() <= step.items()


def test_an_option_that_is_left_out_makes_it_differ() -> None:
    found = moved(crontab("5", "0"), options={"time_limit": 30, "serializer": "json"})

    assert (found.kind, found.remarks) == ("differs", ("the option time_limit 30 is left out",))


def test_a_route_is_refused_where_the_broker_has_no_exchanges() -> None:
    route = {"exchange": "media", "routing_key": "video"}
    (entry,) = entries_of(written(60.0, options=route), "beat.json", NOW)

    same, refused = (check_exchange(entry, has_exchanges=has) for has in (True, False))

    assert same == entry
    assert isinstance(refused, Refused)
    assert "exchange 'media', routing_key 'video'" in refused.why


@pytest.mark.parametrize(
    ("given", "when"),
    [
        pytest.param(crontab("0", "4"), {"cron_rule": "0 4 * * *"}, id="cron"),
        pytest.param(900.0, {"starting_at": "2026-12-01T03:00:00Z", "every": "PT15M"}, id="every"),
    ],
)
def test_no_action_is_due_before_the_cut_over(given: object, when: dict[str, str]) -> None:
    found = document(given, cut_over_at=datetime(2026, 12, 1, 3, tzinfo=UTC))

    assert found["policy"]["starts_at"] == "2026-12-01T03:00:00Z"
    assert when.items() <= found["when"].items()


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param([], "document", id="a_list"),
        pytest.param({"entries": []}, "minutebook_beat", id="not_ours"),
        pytest.param({**written(60.0), "entries": {}}, "entries", id="entries_by_name"),
        pytest.param({**written(60.0), "minutebook_beat": 2}, "minutebook_beat", id="newer"),
    ],
)
def test_another_document_is_refused(document: object, path: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        list(entries_of(document, "beat.json", NOW))

    assert path in [problem.path for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("options", "known", "lacking"),
    [
        pytest.param({"sep": ":"}, {}, "SEP is ':'", id="sep"),
        pytest.param({"priority_steps": [0, 5, 9]}, {}, "PRIORITY_STEPS is '0,5,9'", id="steps"),
        pytest.param(
            {"sep": ":", "global_keyprefix": "a"},
            {"sep": ":"},
            "GLOBAL_KEYPREFIX is 'a'",
            id="one_of_two",
        ),
    ],
)
def test_options_that_name_lists_of_messages_name_the_setting_to_write(
    options: Any, known: Any, lacking: str
) -> None:
    made = written(crontab("5", "0"), broker_options=options)
    (found,) = outcomes(entries_of(made, "beat.json", NOW, known), CONTEXT)

    assert found.remarks == (f"its workers do not find messages before SCHED_CELERY_{lacking}",)


def test_options_of_rabbitmq_name_no_lists() -> None:
    app = Celery("shop", broker="amqp://", set_as_current=False)
    app.conf.update(broker_transport_options={"sep": ":"})

    assert beat.schedule_of(app)["broker_options"] == {}
