"""The Celery application that all peers send to, and the entries that they schedule.

What is in this folder runs in the peers' own environment (`requirements/peers.lock`) and imports
nothing of Minutebook.
"""

import json
import os
import time
from collections.abc import Iterator
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.signals import beat_init

KIND = os.environ["PEER_KIND"]
ZONE = os.environ["PEER_ZONE"]
BROKER = os.environ["PEER_BROKER"]
TASK = "peers.run"

app = Celery("peers", broker=BROKER)
app.conf.update(
    timezone=ZONE,
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # No daily entry of Celery's own.
    result_expires=None,
    redbeat_redis_url=BROKER,
    # By default RedBeat ends when Redis is away, and its lock outlives a killed one by 25 minutes.
    redbeat_redis_options={"retry_period": -1},
    beat_max_loop_interval=5 if KIND == "redbeat" else 0,
)


def entries() -> Iterator[tuple[str, str]]:
    """Yield name and cron rule of each entry; PEER_ENTRIES is a list of (name, rule, count)."""
    for name, rule, count in json.loads(os.environ["PEER_ENTRIES"]):
        for number in range(count):
            yield f"{name} {number}", rule


if KIND == "celery":
    rules: dict[str, Any] = {}
    app.conf.beat_schedule = {
        name: {
            "task": TASK,
            "schedule": rules.setdefault(rule, crontab.from_string(rule)),
            "args": (name,),
        }
        for name, rule in entries()
    }


@app.task(name=TASK, shared=False)
def run(name: str) -> None:
    """Note that a run of an entry arrived at a worker."""
    with open(os.environ["PEER_JOURNAL"], "a") as file:
        file.write(f"{time.time()} {name}\n")


@beat_init.connect
def say_first_tick(sender: Any, **_: object) -> None:
    """Let beat write a line at the end of its first tick."""
    scheduler = sender.scheduler
    tick = scheduler.tick

    def first(*args: Any, **named: Any) -> Any:
        left_s = tick(*args, **named)
        scheduler.tick = tick
        print("first tick", flush=True)
        return left_s

    scheduler.tick = first
