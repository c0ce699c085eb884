"""Store the entries where a peer keeps its schedules, in bulk, as its own code writes them."""

import json
import pickle
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.peers.theirs.app import KIND, TASK, ZONE, app, entries

BATCH = 2_000


def batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield lists of at most BATCH rows."""
    while batch := list(islice(rows, BATCH)):
        yield batch


def fill_django() -> None:
    """Make the tables of django-celery-beat, and a periodic task for each entry."""
    import django

    django.setup()
    from django.core.management import call_command
    from django_celery_beat.models import CrontabSchedule, PeriodicTask, PeriodicTasks

    call_command("migrate", verbosity=0)
    schedules: dict[str, Any] = {}
    for _, rule in entries():
        if rule not in schedules:
            minute, hour, day, month, weekday = rule.split()
            schedules[rule] = CrontabSchedule.objects.create(
                minute=minute,
                hour=hour,
                day_of_month=day,
                month_of_year=month,
                day_of_week=weekday,
                timezone=ZONE,
            )
    tasks = (
        PeriodicTask(name=name, task=TASK, crontab=schedules[rule], args=json.dumps([name]))
        for name, rule in entries()
    )
    for batch in batches(tasks):
        PeriodicTask.objects.bulk_create(batch)
    PeriodicTasks.update_changed()


def fill_redbeat() -> None:
    """Store what `RedBeatSchedulerEntry.save` stores, many entries a round trip."""
    from celery.schedules import crontab
    from redbeat.decoder import RedBeatJSONEncoder
    from redbeat.schedulers import RedBeatSchedulerEntry, ensure_conf, get_redis

    client = get_redis(app)
    for batch in batches(entries()):
        with client.pipeline() as pipe:
            for name, rule in batch:
                schedule = crontab.from_string(rule)
                entry = RedBeatSchedulerEntry(name, TASK, schedule, args=[name], app=app)
                definition = {
                    "name": entry.name,
                    "task": entry.task,
                    "args": entry.args,
                    "kwargs": entry.kwargs,
                    "options": entry.options,
                    "schedule": entry.schedule,
                    "enabled": entry.enabled,
                }
                meta = {"last_run_at": entry.last_run_at}
                for key, value in (("definition", definition), ("meta", meta)):
                    pipe.hset(entry.key, key, json.dumps(value, cls=RedBeatJSONEncoder))
                pipe.zadd(ensure_conf(app).schedule_key, {entry.key: entry.score})
            pipe.execute()


def fill_apscheduler() -> None:
    """Store a job for each entry."""
    from apscheduler.job import Job
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.cron import CronTrigger

    from benchmarks.peers.theirs import jobs

    scheduler = jobs.set_up(BackgroundScheduler())
    scheduler.start(paused=True)
    store = scheduler._jobstores["default"]
    now = datetime.now(ZoneInfo(ZONE))
    triggers: dict[str, Any] = {}

    def row(name: str, rule: str) -> dict[str, Any]:
        trigger = triggers.setdefault(rule, CronTrigger.from_crontab(rule, ZONE))
        next_at = trigger.get_next_fire_time(None, now)
        job = Job(
            scheduler,
            id=name,
            name=name,
            func="benchmarks.peers.theirs.jobs:send",
            args=(name,),
            kwargs={},
            trigger=trigger,
            executor="default",
            misfire_grace_time=None,
            coalesce=jobs.COALESCE,
            max_instances=1,
            next_run_time=next_at,
        )
        state = pickle.dumps(job.__getstate__(), pickle.HIGHEST_PROTOCOL)
        return {"id": name, "next_run_time": next_at.timestamp(), "job_state": state}

    for batch in batches(row(*one) for one in entries()):
        with store.engine.begin() as connection:
            connection.execute(store.jobs_t.insert(), batch)
    scheduler.shutdown()


FILLS = {"django": fill_django, "redbeat": fill_redbeat, "apscheduler": fill_apscheduler}


def fill() -> None:
    """Store all entries; celery beat has them in its configuration."""
    if KIND in FILLS:
        FILLS[KIND]()


if __name__ == "__main__":
    fill()
