"""A step and a bare Celery task that do nothing, for the workers of `bench_worker`."""

import os

from celery import Celery

import minutehand

bare_app = Celery("bare", broker=os.environ.get("BENCHMARK_BROKER_URL"))
bare_app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@bare_app.task(name="bare", shared=False)
def bare(id: str, attempt: int) -> None:
    """Do nothing."""


@minutehand.step("do_nothing")
def do_nothing(context: minutehand.StepContext) -> None:
    """Do nothing."""
