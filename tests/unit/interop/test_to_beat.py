from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from celery.schedules import crontab, schedule

from cron import CronSchedule
from interop.exported import Exported
from interop.to_beat import exported, text_of
from models.action.document import parse_action
from tests.moved import CONTEXT
from tests.tables import table
from tests.unit.interop.test_celery_rules import matching

BEAT = {"overlap": "allow"}


def moved(when: object, zone: str = "UTC", step: Any = None, **rest: Any) -> Exported:
    operations = {"celery_task": {"task": "shop.close", **(step or {})}}
    document = {"name": "it's", "operations": operations, "when": when, "policy": BEAT, **rest}
    return exported(parse_action(document, CONTEXT), zone)


def loaded(found: Exported, zone: str = "UTC") -> dict[str, Any]:
    module: dict[str, Any] = {}
    exec(text_of([found], zone), module)
    assert module["timezone"] == zone
    schedule: dict[str, Any] = module["beat_schedule"]
    return schedule


@pytest.mark.parametrize(
    "route",
    [
        pytest.param({"queue": "orders"}, id="queue"),
        pytest.param({"exchange": "media", "routing_key": "video"}, id="exchange"),
    ],
)
def test_an_action_becomes_an_entry_that_celery_loads(route: dict[str, str]) -> None:
    options = {"priority": 0, "ignore_result": True}
    step = {"args": ["a'b", None], "kwargs": {"x": [1]}, **options, **route}
    found = moved({"cron_rule": "5 0 * * mon-fri", "timezone": "UTC"}, step=step)

    (entry,) = loaded(found).values()
    assert (found.kind, found.remarks) == ("same", ())
    assert entry == {
        "task": "shop.close",
        "args": ["a'b", None],
        "kwargs": {"x": [1]},
        "options": {**route, **options},
        "schedule": crontab("5", "0", "1-5"),
    }


def test_a_text_of_a_user_stays_a_text() -> None:
    hostile = '\'schedule\': x; raise SystemExit #(\n"""'
    found = moved({"every": "PT15M"}, step={"args": [hostile], "kwargs": {hostile: hostile}})

    (entry,) = loaded(found).values()
    assert (entry["args"], entry["kwargs"]) == ([hostile], {hostile: hostile})


def test_either_day_becomes_two_entries_that_share_no_instant() -> None:
    found = moved({"cron_rule": "0 9 1-7 * mon", "timezone": "UTC"})

    assert set(loaded(found)) == {"it's", "it's (weekdays)"}
    assert found.kind == "same"


def test_the_instants_of_random_rules_are_the_same_in_celery() -> None:
    random, second = Random(15), timedelta(seconds=1)
    since = datetime(2027, 1, 1, tzinfo=UTC)
    until = since + timedelta(days=400)
    for _ in range(60):
        rule = random_rule(random)
        found = moved({"cron_rule": rule, "timezone": "UTC"})

        expected = CronSchedule(rule, "UTC").between(since - second, until - second)
        engines = [entry["schedule"] for entry in loaded(found).values()]
        assert sorted(at for one in engines for at in matching(one, since, 400)) == expected, rule
        assert found.kind == "same", rule


def random_rule(random: Random) -> str:
    def field(low: int, high: int) -> str:
        first = random.randint(low, high)
        last = random.randint(first, high)
        return random.choice(["*", f"*/{random.randint(1, 9)}", str(first), f"{first}-{last}"])

    fields = field(0, 23), field(1, 28), field(1, 12), field(0, 7)
    return f"{random.randint(0, 59)} {' '.join(fields)}"


def test_an_interval_and_what_beat_does_with_it() -> None:
    found = moved({"every": "PT15M"})

    (entry,) = loaded(found).values()
    assert entry["schedule"] == schedule(900)
    assert found.remarks == ("beat's grid begins when it starts",)


@pytest.mark.parametrize(("policy", "said"), table(__file__, "what_beat_does_not_do_is_said"))
def test_what_beat_does_not_do_is_said(policy: dict[str, Any], said: str) -> None:
    found = moved({"cron_rule": "5 0 * * *", "timezone": "UTC"}, policy=policy)

    assert found.kind == "differs"
    assert any(said in remark for remark in found.remarks)


@pytest.mark.parametrize(("change", "why"), table(__file__, "what_beat_cannot_say_is_refused"))
def test_what_beat_cannot_say_is_refused(change: dict[str, Any], why: str) -> None:
    found = moved(**{"when": {"cron_rule": "5 0 * * *"}, **change})

    assert (found.kind, found.entries) == ("cannot", {})
    assert why in found.why
    assert found.instead
