from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from celery import Celery

from interop.apscheduler_jobs import Work, entries_of, written_jobs
from interop.exported import Exported
from interop.outcomes import outcomes
from interop.to_apscheduler import exported, text_of
from minutebook.apscheduler import jobs_of
from models.action.document import ScheduledActionModel, parse_action, plan_of
from models.action.schedule import NO_UID
from tests.moved import CONTEXT, NOW
from tests.tables import table
from tests.unit.interop.test_to_beat import random_rule

ALLOW = {"overlap": "allow"}
app = Celery("shop", broker="redis://", set_as_current=False)


def action(when: object, step: Any = None, **rest: Any) -> ScheduledActionModel:
    operations = {"celery_task": {"task": "shop.close", **(step or {})}}
    document = {"name": "it's", "operations": operations, "when": when, "policy": ALLOW, **rest}
    return parse_action(document, CONTEXT)


def moved(*given: Any, **rest: Any) -> Exported:
    return exported(action(*given, **rest))


def scheduler_of(found: Exported) -> BackgroundScheduler:
    module: dict[str, Any] = {}
    exec(text_of([found]), module)
    scheduler = BackgroundScheduler(timezone="UTC")
    module["add_jobs"](scheduler, app.send_task)
    return scheduler


def loaded(found: Exported) -> Any:
    scheduler = scheduler_of(found)
    scheduler.start(paused=True)
    (job,) = scheduler.get_jobs()
    scheduler.shutdown()
    return job


def fired(job: Any, since: datetime, until: datetime) -> list[datetime]:
    """Return when the job runs in (since, until], in a scheduler that never stops."""
    tiny, found = timedelta(microseconds=1), []
    at = job.trigger.get_next_fire_time(None, since + tiny)
    while at is not None and at <= until:
        found.append(at.astimezone(UTC))
        at = job.trigger.get_next_fire_time(at, at.astimezone(UTC) + tiny)
    return found


def due(when: object, since: datetime, until: datetime, **rest: Any) -> list[datetime]:
    schedules = plan_of(action(when, **rest)).schedules(NO_UID)
    return sorted({at for one in schedules for at in one.between(since, until)})


def test_an_action_becomes_a_job_that_sends_its_task() -> None:
    step = {"args": ["a'b", None], "kwargs": {"x": [1]}, "queue": "orders", "priority": 0}
    found = moved({"cron_rule": "5 0 * * mon-fri", "timezone": "UTC"}, step)

    job = loaded(found)
    assert (found.kind, found.remarks) == ("same", ())
    assert (job.id, job.func, job.args) == ("it's", app.send_task, ())
    call = {"name": "shop.close", "args": ["a'b", None], "kwargs": {"x": [1]}}
    assert job.kwargs == {**call, "queue": "orders", "priority": 0}
    assert (job.misfire_grace_time, job.coalesce, job.max_instances) == (300, True, 1)


@pytest.mark.parametrize(("when", "rest"), table(__file__, "a_job_fires_when_its_action_is_due"))
def test_a_job_fires_when_its_action_is_due(when: object, rest: Any) -> None:
    found = moved(when, **rest)
    until = NOW + timedelta(days=120)

    assert found.kind == "same"
    assert fired(loaded(found), NOW, until) == due(when, NOW, until, **rest)


def test_the_instants_of_random_rules_are_the_same() -> None:
    random, until = Random(21), NOW + timedelta(days=400)

    for _ in range(30):
        when = {"cron_rule": random_rule(random), "timezone": "UTC"}

        assert fired(loaded(moved(when)), NOW, until) == due(when, NOW, until), when


def test_what_is_exported_is_imported_as_it_was() -> None:
    made = moved({"cron_rule": "5 0 * * *", "timezone": "UTC"}, {"args": ["Paris"]})

    jobs = written_jobs(jobs_of(scheduler_of(made)))
    (back,) = outcomes(entries_of(jobs, "jobs", Work(lambda _: False), NOW), CONTEXT)
    assert back.document is not None
    step = {"task": "shop.close", "args": ["Paris"]}
    assert back.document["operations"] == {"celery_task": step}
    assert (back.kind, back.document["policy"]["look_back"]) == ("same", "PT5M")


def test_a_paused_action_becomes_a_paused_job() -> None:
    found = moved({"cron_rule": "5 0 * * *", "timezone": "UTC"}, active=False)

    assert (found.kind, loaded(found).next_run_time) == ("same", None)


def test_a_text_of_a_user_stays_a_text() -> None:
    hostile = '\'trigger\': x; raise SystemExit #(\n"""{jobs}'
    job = loaded(moved({"every": "PT15M"}, {"args": [hostile]}, description=hostile))

    assert (job.kwargs["args"], job.name) == ([hostile], hostile)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"operations": {"maintenance": True}}, "not a celery_task", id="own_step"),
        pytest.param({"when": {"on": "instance.user.created"}}, "no events", id="event"),
        pytest.param(
            {"when": [{"cron_rule": "5 0 * * *"}, {"due_date": "2090-01-01T00:00:00Z"}]},
            "forgets beside others",
            id="date_beside_a_rule",
        ),
    ],
)
def test_what_apscheduler_cannot_say_is_refused(change: dict[str, Any], why: str) -> None:
    found = moved(**{"when": {"cron_rule": "5 0 * * *"}, **change})

    assert (found.kind, found.entries) == ("cannot", {})
    assert why in found.why
    assert found.instead
