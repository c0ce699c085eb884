"""Tasks of the user's Celery application: which ones actions may send, and what plans keep."""

from dataclasses import replace
from typing import Any

import pytest

from models.action.plan import Plan
from models.celery_task import CeleryRules, HandOver, refusals
from tests.factories import make_document

RULES = CeleryRules(("shop.tasks.*", "crm.sync"))


def task(**step: Any) -> dict[str, Any]:
    return make_document(operations={"celery_task": {"task": "crm.sync", **step}})


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("crm.sync", True),
        ("crm.sync.all", False),
        ("shop.tasks.close", True),
        ("shop.tasks", False),
        ("SHOP.tasks.close", False),
    ],
)
def test_a_task_is_allowed_by_its_name_or_by_a_pattern(name: str, allowed: bool) -> None:
    assert RULES.allows(name) is allowed
    assert (refusals(task(task=name), RULES) == []) is allowed


def test_an_empty_list_allows_no_task() -> None:
    (problem,) = refusals(task(), CeleryRules())

    assert problem.path == "operations.celery_task.task"
    assert "SCHED_CELERY_TASKS allows no task" in problem.remedy


def test_a_refusal_names_the_setting_and_what_it_allows() -> None:
    (problem,) = refusals(task(task="crm.drop"), RULES)

    assert "SCHED_CELERY_TASKS allows shop.tasks.*, crm.sync only" in problem.remedy


@pytest.mark.parametrize("queue", ["quick", "heavy", "default"])
def test_a_queue_of_our_workers_is_refused_on_our_broker(queue: str) -> None:
    by_step = task(queue=queue)
    by_policy = {**task(), "policy": {"queue": queue}}

    assert [one.path for one in refusals(by_step, RULES)] == ["operations.celery_task.queue"]
    assert [one.path for one in refusals(by_policy, RULES)] == ["policy.queue"]
    assert refusals({**by_policy, **task(queue="shop")}, RULES) == []
    elsewhere = replace(RULES, reserved=frozenset())
    assert refusals(by_step, elsewhere) == refusals(by_policy, elsewhere) == []


def test_a_plan_keeps_what_sending_needs() -> None:
    handed = HandOver("crm.sync", (1, None), {"a": [{"b": 2.5}]}, "send_again")
    plan = Plan(active=True, triggers=(), is_heavy=False, queue="crm", hand_over=handed)

    assert Plan.from_json(plan.to_json()).hand_over == handed
