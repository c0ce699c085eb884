"""Parts of an action: the parameters of its steps, its policy, recipients and health."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from amqp.serialization import dumps
from pydantic import ValidationError

from data.steps.refresh import RefreshParameters
from models.action.health import health_of
from models.action.plan import Plan
from models.action.policy import PolicyModel
from models.action.recipients import RecipientFilterModel
from models.action.steps import OperationModel
from models.parsing import Reading
from tests.factories import STEPS
from tests.tables import table
from tests.unit.models.action.minimal import planned


def read(document: dict[str, Any]) -> OperationModel:
    return OperationModel.model_validate(document, context=Reading(steps=STEPS))


def test_refresh_takes_everything_from_the_source_by_default() -> None:
    found = RefreshParameters.model_validate({})

    assert (found.domains, found.force, found.from_) == ("all", False, "source")
    assert found.takes_new_domains
    assert RefreshParameters.model_validate({"domains": "all"}) == found
    only = RefreshParameters.model_validate({"domains": ["a"]})
    assert not only.takes_new_domains
    assert only.model_copy(update={"include_new_domains": True}).takes_new_domains


@pytest.mark.parametrize("headers", [{"n": "x" * 16_000}, {"n": [1] * 5_000}, {"ü" * 50: {}}])
def test_headers_together_are_bounded(headers: dict[str, Any]) -> None:
    """A message of AMQP holds them in less than half a frame."""
    assert read({"celery_task": {"task": "t", "headers": headers}})

    more = {**headers, "m": [1] * 6_000}
    with pytest.raises(ValidationError, match=r"too large \(.*write at most 16,384"):
        read({"celery_task": {"task": "t", "headers": more}})
    assert len(dumps("F", (headers,))) < 65_536


def test_a_job_s_meta_has_at_most_four_kilobytes() -> None:
    step = {"url": "https://example.com/feed", "meta": {"x": "y" * 4088}}

    assert read({"job": step})
    with pytest.raises(ValidationError, match=r"too long \(4097 bytes as JSON\)"):
        read({"job": {**step, "meta": {"x": "y" * 4089}}})


def test_the_number_of_steps_is_limited() -> None:
    with pytest.raises(ValidationError) as refused:
        read({f"s{n}": True for n in range(101)})

    (only,) = refused.value.errors()
    assert only["msg"].endswith("has 101 steps; write at most 100")


CRON = {"cron_rule": "0 7 * * 1"}
DUE_DATE = {"due_date": "2027-01-01T00:00"}
INTERVAL = {"every": "PT2H"}


def plan(policy: dict[str, Any] | None = None, when: object = CRON) -> Plan:
    return planned(when=when, policy=policy or {})


def look_backs(found: Plan) -> list[timedelta]:
    return [found.look_back_of(rule) for rule in found.rules]


@pytest.mark.parametrize(
    ("when", "look_back"),
    [
        (CRON, timedelta(minutes=5)),
        (DUE_DATE, timedelta(days=1)),
        (INTERVAL, timedelta(hours=2)),
        ({"every": "P3660D"}, timedelta(days=7)),
    ],
    ids=["cron", "due_date", "interval", "long_interval"],
)
def test_each_kind_of_when_has_its_look_back(when: object, look_back: timedelta) -> None:
    assert [look_back] == look_backs(plan(when=when))
    assert [timedelta(hours=1)] == look_backs(plan({"look_back": "PT1H"}, when))


@pytest.mark.parametrize(
    ("when", "time_limit"),
    [
        (CRON, timedelta(hours=4)),
        (INTERVAL, timedelta(hours=1)),
        ({"every": 75}, timedelta(seconds=37)),
        ({"every": "P100D"}, timedelta(days=7)),
    ],
    ids=["cron", "interval", "odd_interval", "long_interval"],
)
def test_the_time_limit_is_four_hours_or_half_an_interval(
    when: object, time_limit: timedelta
) -> None:
    assert time_limit == plan(when=when).time_limit
    assert timedelta(minutes=9) == plan({"time_limit": "PT9M"}, when).time_limit
    assert timedelta(seconds=1) == PolicyModel().time_limit_of(timedelta(seconds=1))


def test_the_defaults_are_those_of_the_plan() -> None:
    found = plan()

    assert Plan(active=True, rules=found.rules, is_heavy=False, queue="quick") == found


def test_every_key_reaches_the_plan() -> None:
    found = plan(
        {
            "catch_up": "all",
            "overlap": "queue",
            "max_waiting": 7,
            "retry": {"max_attempts": 5, "backoff": ["PT1S", "PT1H"]},
            "starts_at": "2027-01-01T00:00",
            "ends_at": "2027-07-01T00:00:00Z",
            "queue": "night",
        }
    )

    policy = found.policy
    assert (policy.catch_up, policy.overlap, policy.max_waiting) == ("all", "queue", 7)
    assert (policy.retry.max_attempts, found.queue) == (5, "night")
    assert policy.retry.backoff == (timedelta(seconds=1), timedelta(hours=1))
    assert policy.starts_at == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert policy.ends_at == datetime(2027, 7, 1, tzinfo=UTC)
    assert Plan.from_json(found.to_json()) == found


@dataclass(frozen=True)
class Person:
    id: str
    email: str = "someone@example.com"
    active: bool = True
    activated_at: datetime | None = datetime(2026, 1, 1, tzinfo=UTC)
    groups: frozenset[str] = frozenset()


WELL = Person("well")
INACTIVE = Person("inactive", active=False)
INACTIVATED = Person("inactivated", activated_at=None)
BOTH = Person("both", active=False, activated_at=None)
EVERYBODY = (WELL, INACTIVE, INACTIVATED, BOTH)

INCLUDE_INACTIVE = "include_inactive_users"
INCLUDE_INACTIVATED = "include_inactivated_users"
ONLY_INACTIVE = "only_inactive_users"
ONLY_INACTIVATED = "only_inactivated_users"


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ([], [WELL]),
        ([INCLUDE_INACTIVE], [WELL, INACTIVE]),
        ([INCLUDE_INACTIVATED], [WELL, INACTIVATED]),
        ([INCLUDE_INACTIVE, INCLUDE_INACTIVATED], [WELL, INACTIVE, INACTIVATED, BOTH]),
        ([ONLY_INACTIVE], [INACTIVE]),
        ([ONLY_INACTIVATED], [INACTIVATED]),
        ([ONLY_INACTIVE, INCLUDE_INACTIVE], [INACTIVE]),
        ([ONLY_INACTIVATED, INCLUDE_INACTIVATED], [INACTIVATED]),
        ([ONLY_INACTIVE, INCLUDE_INACTIVATED], [INACTIVE, BOTH]),
        ([ONLY_INACTIVATED, INCLUDE_INACTIVE], [INACTIVATED, BOTH]),
    ],
    ids=lambda value: "+".join(map(str, value)) if value and isinstance(value[0], str) else None,
)
def test_flags_keep_their_users(flags: list[str], kept: list[Person]) -> None:
    document = {"groups": ["all"], **dict.fromkeys(flags, "true")}
    chosen = RecipientFilterModel.model_validate(document)

    assert kept == [one for one in EVERYBODY if chosen.selects(one)]


def test_the_two_only_flags_together_are_refused() -> None:
    with pytest.raises(ValidationError, match="cannot be combined with only_inactive_users"):
        RecipientFilterModel.model_validate({ONLY_INACTIVE: "true", ONLY_INACTIVATED: True})
    document = {"groups": ["all"], ONLY_INACTIVE: "false", ONLY_INACTIVATED: True}
    assert RecipientFilterModel.model_validate(document).selects(INACTIVATED)


@pytest.mark.parametrize(
    ("document", "selected"),
    table(__file__, "named_users_and_members_of_named_groups_are_selected_once"),
)
def test_named_users_and_members_of_named_groups_are_selected_once(
    document: dict[str, object], selected: list[str]
) -> None:
    people = (
        Person("ann"),
        Person("bob", groups=frozenset({"sales", "managers"})),
        Person("cid", groups=frozenset({"sales"})),
    )
    chosen = RecipientFilterModel.model_validate(document)

    assert selected == [person.id for person in people if chosen.selects(person)]


NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
HEALTHY: dict[str, Any] = {
    "active": True,
    "quarantined": None,
    "updated_at": NOON,
    "last_state": "success",
    "last_run_at": NOON,
    "last_success_at": NOON,
    "failures_in_row": 0,
    "bad_runs_in_a_row": 0,
    "overdue_since": None,
    "missed_at": None,
    "trouble_reason": None,
    "first_run": None,
    "is_over": False,
}


@pytest.mark.parametrize(
    ("changes", "trouble", "sentence", "since"), table(__file__, "health_has_a_reason")
)
def test_health_has_a_reason(
    changes: dict[str, Any], trouble: str | None, sentence: str, since: str | None
) -> None:
    """In the table, `noon` stands for that instant."""
    row = HEALTHY | {key: NOON if value == "noon" else value for key, value in changes.items()}

    found = health_of(row, 3)

    assert (found.trouble, found.sentence, found.since) == (trouble, sentence, since and NOON)
