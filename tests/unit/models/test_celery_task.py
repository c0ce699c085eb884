"""Which tasks and queues of an application an action may name, and what is known of them."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from models.action.document import plan_of
from models.action.plan import Plan
from models.action.policy import NO_TIME_LIMIT
from models.celery_task import CeleryRules, HandOver, misfit
from models.errors import InvalidAction, Problem
from models.job import listed_queue
from models.json_text import read_json
from models.trust import Trust
from models.worker_kinds import CELERY, HTTP, OURS, OWN_TASKS, WORKER_KINDS, WorkerKind
from tests.tables import table
from tests.unit.models.action.minimal import action, parse
from tests.work import lines_run

RULES = CeleryRules(("shop.tasks.*", "crm.sync"))


def task(policy: Any = None, when: Any = None, **step: Any) -> dict[str, Any]:
    operations = {"celery_task": {"task": "crm.sync", **step}}
    return action(operations=operations, policy=policy or {}, when=when or {"every": "PT1M"})


def refusals(document: dict[str, Any], rules: CeleryRules = RULES) -> list[Problem]:
    try:
        parse(document, celery=rules, trust=rules.trust)
    except InvalidAction as error:
        return [*error.problems]
    return []


def planned(**known: Any) -> Plan:
    plan = plan_of(parse(task(**known), celery=RULES))
    return Plan.from_json(plan.to_json())


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
    assert (refusals(task(task=name)) == []) is allowed


def test_an_empty_list_allows_no_task() -> None:
    (problem,) = refusals(task(), CeleryRules())

    assert problem.path == "operations.celery_task.task"
    assert "SCHED_CELERY_TASKS allows no task" in problem.remedy


def test_a_queue_of_our_own_workers_is_refused() -> None:
    (problem,) = refusals(task(queue="minutebook.reports"))

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


@pytest.mark.parametrize("queue", ["unacked_orders", "kombu", "pidbox", "my.unacked", "quick"])
def test_a_name_that_is_like_one_of_kombu_s_or_of_ours_is_allowed(queue: str) -> None:
    assert refusals(task(queue=queue)) == []
    assert refusals(task(policy={"queue": "quick"})) == []


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


@pytest.mark.parametrize(
    ("policy", "step", "queue"),
    [({}, {}, "celery"), ({"queue": "a"}, {}, "a"), ({"queue": "a"}, {"queue": "B.c"}, "B.c")],
)
def test_the_queue_is_the_step_s_the_policy_s_or_celery_s(
    policy: dict[str, str], step: dict[str, str], queue: str
) -> None:
    assert planned(policy=policy, **step).queue == queue


@pytest.mark.parametrize("when", [{"cron_rule": "0 7 * * *"}, {"every": "PT1M"}])
def test_a_task_has_no_time_limit_unless_one_is_written(when: dict[str, str]) -> None:
    assert planned(when=when).time_limit == NO_TIME_LIMIT
    assert planned(when=when, policy={"time_limit": "PT9M"}).time_limit == timedelta(minutes=9)


def test_our_own_tasks_are_never_allowed() -> None:
    assert not any(map(CeleryRules(("*", *OWN_TASKS)).allows, OWN_TASKS))


def test_a_save_does_little_for_each_entry_of_the_arguments() -> None:
    count = 2_000
    text = json.dumps(task(args=[{"a": {}}] * count))

    lines = lines_run(lambda: plan_of(parse(read_json(text), celery=RULES)))

    assert lines < 60 * count


@pytest.mark.parametrize(
    ("parameters", "args", "kwargs", "why"),
    [
        *table(__file__, "arguments_fit_or_the_reason_is_named"),
        *(((text,), [1], {}, "") for text in ("not a name", "", "**", "=5", "class", "1", ".0")),
    ],
)
def test_arguments_fit_or_the_reason_is_named(
    parameters: tuple[str, ...], args: list[Any], kwargs: dict[str, Any], why: str
) -> None:
    found = misfit(parameters, args, kwargs)

    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_no_two_carriers_list_a_queue_under_one_name() -> None:
    assert {one.listed("quick") for one in WORKER_KINDS} == {
        "minutebook.quick",
        "minutebook.job:quick",
        "quick",
    }
    # Workers over HTTP are recorded beside ours.
    assert HTTP.listed("quick") == OURS.listed(listed_queue("quick"))


@pytest.mark.parametrize(
    ("worker_kind", "queue", "is_sent", "is_known"),
    [
        pytest.param(OURS, "quick", False, True, id="ours"),
        pytest.param(HTTP, "a/b", False, True, id="over_http"),
        pytest.param(CELERY, "orders", True, True, id="an_application_s_that_follows"),
        pytest.param(CELERY, "orders", False, False, id="not_sent_yet"),
        pytest.param(CELERY, "shop/orders", True, False, id="routed_by_an_exchange"),
    ],
)
def test_the_readers_of_an_application_s_queue_are_known_only_if_they_follow(
    worker_kind: WorkerKind, queue: str, is_sent: bool, is_known: bool
) -> None:
    assert worker_kind.knows_readers(queue, is_sent=is_sent) is is_known
