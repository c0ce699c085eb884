import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel

from minutebook.steps import StepSpec
from models.action.document import document_hash, load_action, plan_of, stored_document
from models.action.intervals import IntervalModel
from models.action.plan import Plan
from models.action.recipients import RecipientFilterModel
from models.action.rules import CronModel
from models.events import Happened
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW, action, parse, planned

BRIEF: dict[str, Any] = {
    "name": "weekly update",
    "active": "true",
    "operations": {
        "refresh": {"domains": ["a", "b"]},
        "publish": {"data": "true", "design": "false", "permissions": "false"},
        "send_execsum": "true",
    },
    "when": {"cron_rule": "0 7 * * 1", "timezone": "Europe/Paris"},
    "recipients": {"users": ["toco@tou.can"], "groups": ["manager"]},
}


class Upload(BaseModel):
    target: str
    count: int = 1


class Nothing(BaseModel):
    pass


USER_STEPS = {
    "upload": StepSpec("upload", Upload, heavy=True),
    "greet": StepSpec("greet", Nothing, sends=True),
    **STEPS,
}


def test_the_first_example_is_parsed() -> None:
    found = parse(BRIEF)

    assert found.active
    assert [step.name for step in found.operations.steps] == ["refresh", "publish", "send_execsum"]
    assert plan_of(found) == Plan(
        active=True,
        rules=(CronModel(cron_rule="0 7 * * 1", timezone="Europe/Paris"),),
        is_heavy=True,
        queue="heavy",
    )
    # Real booleans, and no other change.
    assert stored_document(found) == {
        **BRIEF,
        "active": True,
        "operations": {
            "refresh": {"domains": ["a", "b"]},
            "publish": {"data": True, "design": False, "permissions": False},
            "send_execsum": True,
        },
    }


def test_steps_run_in_a_fixed_order_with_user_steps_last() -> None:
    operations = {
        "upload": {"target": "x"},
        "maintenance": {},
        "greet": True,
        "send_execsum": True,
        "publish": True,
        "send_email": {"template": "t"},
        "refresh": True,
    }
    found = parse(action(operations=operations, recipients={"users": ["u"]}), steps=USER_STEPS)

    assert [step.name for step in found.operations.steps] == [
        "refresh", "publish", "send_email", "send_execsum", "maintenance", "upload", "greet",
    ]  # fmt: skip


def test_a_step_that_is_false_is_absent() -> None:
    found = parse(action(operations={"refresh": "False", "publish": False, "maintenance": "TRUE"}))

    assert [step.name for step in found.operations.steps] == ["maintenance"]
    assert stored_document(found)["operations"] == {"maintenance": True}
    assert not plan_of(found).is_heavy


def test_publish_true_is_everything() -> None:
    (step,) = parse(action(operations={"publish": "true"})).operations.steps

    assert step.parameters == {"data": True, "design": True, "permissions": True}
    assert step.written is True


def test_a_command_is_quick_and_stored_as_written() -> None:
    written = {"run": ["./backup.sh", "--full"], "env": {"STAGE": "x"}, "cwd": "/srv"}
    found = parse(action(operations={"command": written}), commands=("*",))

    assert plan_of(found).queue == "quick"
    assert stored_document(found)["operations"] == {"command": written}


def test_publish_takes_names() -> None:
    (step,) = parse(action(operations={"publish": {"data": ["a", "b", "a"]}})).operations.steps

    assert step.parameters == {"data": ["a", "b"]}


@pytest.mark.parametrize(
    ("operations", "queue"),
    [
        ({"upload": {"target": "x"}}, "heavy"),
        ({"maintenance": True}, "quick"),
        ({"maintenance": True, "refresh": True}, "heavy"),
    ],
)
def test_the_weight_of_the_steps_chooses_the_queue(operations: object, queue: str) -> None:
    plan = plan_of(parse(action(operations=operations), steps=USER_STEPS))

    assert (plan.queue, plan.is_heavy) == (queue, queue == "heavy")


def test_the_plan_of_an_event_action_has_its_subjects() -> None:
    when = {"after": "instance.user.last_seen", "delay": "P30D"}
    recipients = {"groups": ["shop"], "include_inactive_users": "true"}

    plan = planned(when=when, recipients=recipients)

    assert plan.subjects == RecipientFilterModel(groups=("shop",), include_inactive_users=True)
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.longest_look_back_s == 300


def test_without_recipients_every_active_user_may_be_the_subject() -> None:
    plan = planned(when={"on": "instance.user.created"})

    assert plan.subjects is None
    assert plan.counts(Happened(0, NOW, None, "ann", active=True, activated_at=NOW))
    assert not plan.counts(Happened(0, NOW, None, "bob", active=False, activated_at=NOW))


def test_a_plan_has_the_same_occurrences_while_rule_and_subjects_stay() -> None:
    when = {"on": "order.paid"}
    plan = planned(when=when)

    assert plan.has_same_occurrences(planned(when=when, operations={"publish": True}))
    for change in (
        {"when": {"on": "order.sent"}},
        {"active": False},
        {"recipients": {"users": ["ann"]}},
        {"policy": {"ends_at": "2199-01-01T00:00:00Z"}},
    ):
        assert not plan.has_same_occurrences(planned(**{"when": when, **change}))


def test_an_interval_without_a_start_begins_one_interval_after_its_creation() -> None:
    found = parse(action(when={"every": "PT1H"}))
    (rule,) = plan_of(found).rules

    assert isinstance(rule, IntervalModel)
    assert (rule.every, rule.starting_at) == (timedelta(hours=1), NOW + timedelta(hours=1))
    assert stored_document(found)["when"] == {"every": "PT1H"}
    # An edited one keeps the grid of its creation.
    created_at = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    (rule,) = plan_of(parse(action(when={"every": "PT1H"}), created_at=created_at)).rules
    assert isinstance(rule, IntervalModel)
    assert rule.starting_at == datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)


WHENS: list[Any] = [
    {"cron_rule": "0 7 * * 1", "timezone": "america/new_york"},
    {"cron_rule": "*/5 * * * *"},
    {"cron_rule": "@Hourly"},
    {"due_date": "2027-03-28T02:30", "timezone": "Europe/Paris"},
    {"due_date": "2027-03-28T02:30:00+05:30"},
    {"due_date": "2027-03-28 02:30"},
    {"every": 3600},
    {"every": "P1W", "starting_at": "2020-01-01T00:00Z", "jitter": "PT10M", "tolerance": "PT0S"},
    {"every": "PT90S", "starting_at": "2020-01-01T00:00"},
    [{"cron_rule": "0 7 * * 1"}, {"due_date": "2027-01-01T00:00"}],
]
spans = st.integers(60, 600_000).map(lambda seconds: f"PT{seconds}S")
policies = st.fixed_dictionaries(
    {},
    optional={
        "look_back": spans,
        "time_limit": spans,
        "catch_up": st.sampled_from(["latest", "all"]),
        "overlap": st.sampled_from(["skip", "queue", "allow", "replace"]),
        "max_waiting": st.integers(1, 1000),
        "queue": st.from_regex("[a-z0-9_-]{1,64}", fullmatch=True),
        "starts_at": st.sampled_from(["2026-01-01T00:00", "2026-01-01T00:00+09:00"]),
        "ends_at": st.sampled_from(["2030-07-01T00:00", "2030-01-01T00:00:00.000Z"]),
        "retry": st.fixed_dictionaries(
            {},
            optional={"max_attempts": st.integers(1, 100), "backoff": st.lists(spans, min_size=1)},
        ),
    },
)
flags = st.sampled_from([True, False, "true", "False"])
operations = st.fixed_dictionaries(
    {"maintenance": st.sampled_from([True, "true", {}])},
    optional={
        "refresh": st.sampled_from(
            [True, "false", {"domains": "all", "force": "true"}, {"from": "downloaded"}]
        ),
        "publish": st.sampled_from([True, {"data": "true", "notify": "false"}, {"design": ["a"]}]),
        "upload": st.sampled_from([{"target": "x"}, {"target": "x", "count": "2"}]),
        "greet": flags,
    },
)


@given(
    when=st.sampled_from(WHENS),
    policy=policies,
    operations=operations,
    active=flags,
    zone=st.sampled_from(["UTC", "Asia/Tokyo"]),
)
def test_a_stored_document_has_the_same_plan_in_any_zone(
    when: Any, policy: dict[str, Any], operations: object, active: object, zone: str
) -> None:
    assume("tolerance" not in when or policy.get("catch_up") != "all")
    document = action(
        when=when, policy=policy, operations=operations, active=active, recipients={"users": ["u"]}
    )
    first = parse(document, steps=USER_STEPS)
    stored = json.loads(json.dumps(stored_document(first)))

    later = NOW + timedelta(days=3000)
    context = {"default_zone": zone, "now": later, "created_at": NOW, "kept_due_dates": None}
    again = parse(stored, steps=USER_STEPS, **context)
    loaded = load_action(stored, steps=USER_STEPS, created_at=NOW)

    assert plan_of(first) == plan_of(again) == plan_of(loaded)
    assert stored == stored_document(again) == stored_document(loaded)
    assert Plan.from_json(plan_of(first).to_json()) == plan_of(first)


def test_a_load_ignores_unknown_keys_and_keeps_unknown_steps() -> None:
    document = action(
        colour="red",
        operations={"paint": {"with": "brush"}, "refresh": {"domains": ["a"], "speed": 3}},
        when={"due_date": "2020-01-01T00:00", "timezone": "UTC", "note": "x"},
        policy={"mood": "good", "retry": {"smile": True}},
    )

    loaded = load_action(document, steps=STEPS)

    assert [step.name for step in loaded.operations.steps] == ["refresh", "paint"]
    refresh, paint = loaded.operations.steps
    assert refresh.parameters == {"domains": ["a"]}
    assert (paint.spec, paint.parameters) == (None, {"with": "brush"})


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    stored = stored_document(parse(BRIEF))
    turned = dict(reversed(list(stored.items())))

    assert document_hash(stored, steps=STEPS) == document_hash(turned, steps=STEPS)
    assert document_hash(stored, steps=STEPS) != document_hash(
        {**stored, "active": False}, steps=STEPS
    )
    assert len(document_hash(stored, steps=STEPS)) == 64


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ({"refresh": True, "b": True, "a": {"x": 1}}, "9a4f00be360b48c40567bb9469d4101a"),
        (
            {"publish": True, "maintenance": {}, "refresh": {"domains": ["a"]}},
            "856ea2e42d1aa94f3facf388627909c2",
        ),
    ],
)
def test_a_stored_hash_stays_valid(operations: dict[str, Any], expected: str) -> None:
    """Else applying the same documents after an upgrade would change all actions."""
    found = document_hash({"name": "n", "operations": operations}, STEPS)

    assert found.startswith(expected)
