"""Run a peer's own loop by a virtual clock, from one instant to another; then die as by kill -9.

python -m benchmarks.peers.theirs.virtual SINCE UNTIL: instants in ISO 8601. PEER_FILL=1 stores the
entries first. Each message is taken from Redis and noted with the instant of the clock.
"""

import base64
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import redis
import time_machine

from benchmarks.peers.theirs.app import BROKER, KIND, app
from benchmarks.peers.theirs.fill import fill

# A round takes a moment itself: beat wakes ten milliseconds early and then asks again and again.
LEAST_S = 0.001
Round = Callable[[], float]


def beat_round() -> Round:
    """Return one round of the loop of `celery.beat.Service` with the peer's scheduler."""
    from celery import beat as its_module

    beat: Any = its_module

    # It stores what has run every three minutes, by a clock that does not stand still.
    beat.time = SimpleNamespace(monotonic=time.time)
    scheduler: Any
    if KIND == "django":
        import django

        django.setup()
        from django_celery_beat.schedulers import DatabaseScheduler

        scheduler = DatabaseScheduler(app=app)
    elif KIND == "redbeat":
        from redbeat.schedulers import RedBeatScheduler

        scheduler = RedBeatScheduler(app=app)
        # One instance: its lock has a time-out of Redis, which knows no virtual clock.
        scheduler.lock_key = None
    else:
        from celery.beat import PersistentScheduler

        file = os.environ["PEER_JOURNAL"] + ".schedule"
        scheduler = PersistentScheduler(app=app, schedule_filename=file)

    def once() -> float:
        left_s = float(scheduler.tick())
        if scheduler.should_sync():
            scheduler._do_sync()
        return left_s

    return once


def apscheduler_round() -> Round:
    """Return one round of APScheduler's loop; its jobs run in this thread."""
    from apscheduler.executors.debug import DebugExecutor
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.schedulers.base import STATE_RUNNING

    from benchmarks.peers.theirs import jobs

    scheduler = jobs.set_up(BackgroundScheduler(), default=DebugExecutor())
    # Its own thread waits for ever; the rounds are made here.
    scheduler.start(paused=True)
    scheduler.state = STATE_RUNNING
    return lambda: float(scheduler._process_jobs() or 60.0)


def note_messages(client: Any) -> None:
    """Take all messages; note each with the instant of the clock."""
    with open(os.environ["PEER_JOURNAL"], "a") as file:
        while raw := client.rpop("celery"):
            (name, *_), *_ = json.loads(base64.b64decode(json.loads(raw)["body"]))
            file.write(f"{time.time()} {name}\n")


def main(since: datetime, until: datetime) -> None:
    """Run the loop from `since` to `until`."""
    with time_machine.travel(since, tick=False) as clock:
        if os.environ.get("PEER_FILL") == "1":
            fill()
        once = apscheduler_round() if KIND == "apscheduler" else beat_round()
        client = redis.Redis.from_url(BROKER)
        while time.time() <= until.timestamp():
            left_s = once()
            note_messages(client)
            clock.shift(timedelta(seconds=max(left_s, LEAST_S)))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*(datetime.fromisoformat(text) for text in sys.argv[1:3]))
