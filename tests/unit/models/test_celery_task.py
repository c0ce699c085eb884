import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import process_time
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action, plan_of
from models.action.plan import Plan
from models.action.policy import NO_TIME_LIMIT
from models.celery_task import CeleryRules, HandOver, misfit
from models.errors import InvalidAction, Problem
from models.json_text import read_json
from models.trust import Trust
from models.worker_kinds import OWN_TASKS
from tests.factories import STEPS, make_document

RULES = CeleryRules(("shop.tasks.*", "crm.sync"))


def task(**step: Any) -> dict[str, Any]:
    return make_document(operations={"celery_task": {"task": "crm.sync", **step}})


def refusals(document: dict[str, Any], rules: CeleryRules) -> list[Problem]:
    context = ParseContext("UTC", datetime(2026, 11, 21, tzinfo=UTC), STEPS, celery=rules)
    try:
        parse_action(document, replace(context, trust=rules.trust))
    except InvalidAction as error:
        return [*error.problems]
    return []


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("crm.sync", True),
        ("crm.sync.all", False),
        ("shop.tasks.close", True),
        ("shop.tasks", False),
    ],
)
def test_a_task_is_allowed_by_its_name_or_by_a_pattern(name: str, allowed: bool) -> None:
    assert RULES.allows(name) is allowed
    assert (refusals(task(task=name), RULES) == []) is allowed


def test_an_empty_list_allows_no_task() -> None:
    (problem,) = refusals(task(), CeleryRules())

    assert problem.path == "operations.celery_task.task"
    assert "SCHED_CELERY_TASKS allows no task" in problem.remedy


@pytest.mark.parametrize("queue", ["minutebook.quick", "minutebook.reports"])
def test_a_queue_of_our_own_workers_is_refused(queue: str) -> None:
    (problem,) = refusals(task(queue=queue), RULES)

    assert problem.path == "operations.celery_task.queue"


@pytest.mark.parametrize(
    "name",
    [
        "_kombu.binding.celery", "unacked", "unacked_index", "unacked_mutex",
        "celery@host.celery.pidbox", "1d.reply.celery.pidbox", "celeryev", "celeryev.1d",
    ],
)  # fmt: skip
def test_a_name_that_kombu_keeps_is_refused(name: str) -> None:
    handed = HandOver("crm.sync", exchange=name, routing_key=name)

    found = [*RULES.refused(HandOver("crm.sync"), name), *RULES.refused(handed, "celery")]

    assert [key for key, _, _ in found] == ["queue", "exchange", "routing_key"]
    assert all("kombu" in why for _, _, why in found)


@pytest.mark.parametrize("queue", ["unacked_orders", "kombu", "pidbox", "celery", "my.unacked"])
def test_a_name_that_is_like_one_of_kombu_s_is_allowed(queue: str) -> None:
    assert refusals(task(queue=queue), RULES) == []


@pytest.mark.parametrize(
    ("rules", "remedy"),
    [
        pytest.param(RULES, None, id="trusted"),
        pytest.param(RULES.within(Trust(tasks=("*",))), "--trusted", id="restricted"),
        pytest.param(
            replace(RULES, has_exchanges=False), 'write the queue as "queue"', id="on_redis"
        ),
    ],
)
def test_an_exchange_is_for_trusted_small_apps_on_a_broker_that_has_some(
    rules: CeleryRules, remedy: str | None
) -> None:
    found = refusals(task(exchange="media", routing_key="video"), rules)

    assert [one.path for one in found] == ["operations.celery_task.exchange"] * bool(remedy)
    assert all(str(remedy) in one.remedy for one in found)


@pytest.mark.parametrize("queue", ["quick", "heavy", "default"])
def test_an_application_s_queue_may_have_the_name_of_one_of_ours(queue: str) -> None:
    assert refusals(task(queue=queue), RULES) == []
    assert refusals({**task(), "policy": {"queue": queue}}, RULES) == []


@pytest.mark.parametrize(
    ("policy", "step", "queue"),
    [({}, {}, "celery"), ({"queue": "a"}, {}, "a"), ({"queue": "a"}, {"queue": "B.c"}, "B.c")],
)
def test_the_queue_is_the_step_s_the_policy_s_or_celery_s(
    policy: dict[str, str], step: dict[str, str], queue: str
) -> None:
    context = ParseContext("UTC", datetime(2026, 11, 21, tzinfo=UTC), STEPS, celery=RULES)

    assert plan_of(parse_action({**task(**step), "policy": policy}, context)).queue == queue


@pytest.mark.parametrize("when", [{"cron_rule": "0 7 * * *"}, {"every": "PT1M"}])
def test_a_task_has_no_time_limit_unless_one_is_written(when: dict[str, str]) -> None:
    context = ParseContext("UTC", datetime(2026, 11, 21, tzinfo=UTC), celery=RULES, steps=STEPS)

    def limit(**policy: str) -> timedelta:
        document = {**task(), "when": when, "policy": policy}
        plan = plan_of(parse_action(document, context))
        return Plan.from_json(plan.to_json()).time_limit

    assert limit() == NO_TIME_LIMIT
    assert limit(time_limit="PT9M") == timedelta(minutes=9)


def test_our_own_tasks_are_never_allowed() -> None:
    assert not any(map(CeleryRules(("*", *OWN_TASKS)).allows, OWN_TASKS))


def test_a_save_takes_little_time_whatever_the_arguments_hold() -> None:
    text = json.dumps(task(args=[{"a": {}}] * 20_000))
    context = ParseContext("UTC", datetime(2027, 1, 1, tzinfo=UTC), STEPS, celery=RULES)

    def cpu_s() -> float:
        began = process_time()
        plan_of(parse_action(read_json(text), context))
        return process_time() - began

    assert min(cpu_s() for _ in range(3)) < 0.2


TAKES = ("city", "limit=5", "*", "dry_run=False")


@pytest.mark.parametrize(
    ("parameters", "args", "kwargs", "why"),
    [
        pytest.param(TAKES, ["Paris"], {}, "", id="required_by_place"),
        pytest.param(TAKES, [], {"city": "Paris", "dry_run": True}, "", id="by_name"),
        pytest.param(TAKES, [], {}, "missing a required argument: 'city'", id="missing"),
        pytest.param(
            TAKES, ["x"], {"limt": 1}, "got an unexpected keyword argument 'limt'", id="unknown"
        ),
        pytest.param(
            ("a", "/"), [], {"a": 1}, "'a' parameter is positional only", id="by_place_only"
        ),
        pytest.param(("*args", "**kwargs"), [1, 2], {"x": 3}, "", id="anything"),
        *(
            pytest.param((text,), [1], {}, "", id=f"no_signature_says_nothing_{text}")
            for text in ("not a name", "", "**", "***", "=5", "class", "1", ".0")
        ),
        pytest.param(("a", "a"), [1], {}, "", id="no_signature_of_one_name_twice"),
    ],
)
def test_arguments_fit_or_the_reason_is_named(
    parameters: tuple[str, ...], args: list[Any], kwargs: dict[str, Any], why: str
) -> None:
    found = misfit(parameters, args, kwargs)

    assert found.startswith(why)
    assert bool(found) == bool(why)
