"""A Celery task that does nothing, for the workers of `bench_followed`."""

import os

from celery import Celery

import minutebook

app = Celery("benchmark", broker=os.environ.get("BENCHMARK_BROKER_URL"))
app.conf.update(
    task_ignore_result=True,
    task_default_queue="followed",
    worker_prefetch_multiplier=4,
    broker_connection_retry_on_startup=True,
)
if os.environ.get("BENCHMARK_FOLLOWS"):
    minutebook.follow(app)


@app.task(name="benchmark.nothing")
def nothing() -> None:
    """Do nothing."""
