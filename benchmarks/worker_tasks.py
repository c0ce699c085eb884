"""A step and Celery tasks that do nothing, for the workers of `bench_worker`."""

import os

from celery import Celery

import minutebook

BROKER = os.environ.get("BENCHMARK_BROKER_URL")
SAME = {
    "task_acks_late": True,
    "worker_prefetch_multiplier": 1,
    "broker_connection_retry_on_startup": True,
}
bare_app = Celery("bare", broker=BROKER)
bare_app.conf.update(task_ignore_result=True, **SAME)
# The nearest equal of an operation: start and end are written to the same database.
recording_app = Celery("recording", broker=BROKER, backend=os.environ.get("BENCHMARK_RESULTS_URL"))
recording_app.conf.update(task_track_started=True, **SAME)


@bare_app.task(name="bare", shared=False)
def bare(id: str, attempt: int) -> None:
    """Do nothing."""


@recording_app.task(name="recorded", shared=False)
def recorded(id: str, attempt: int) -> None:
    """Do nothing."""


@minutebook.step("do_nothing")
def do_nothing(context: minutebook.StepContext) -> None:
    """Do nothing."""
