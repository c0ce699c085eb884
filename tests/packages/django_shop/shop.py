"""The shop's Celery application, whose schedule lies in django-celery-beat's tables."""

import json
import os
import time
from pathlib import Path
from typing import Any

from celery import Celery
from kombu import Exchange, Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop_settings")
app = Celery("shop")
app.conf.update(
    broker_url=os.environ["SHOP_BROKER_URL"],
    task_default_queue="shop",
    # None of them may be declared otherwise: RabbitMQ refuses that.
    task_queues=[
        Queue("shop", Exchange("shop"), "shop", queue_arguments={"x-queue-type": "quorum"}),
        Queue("urgent", Exchange("urgent"), "urgent", max_priority=10),
        Queue("videos", Exchange("media", "topic"), "video.#"),
    ],
    # Quorum queues know no limit for all consumers of a channel, which Celery 5.3 sets.
    worker_prefetch_multiplier=0,
    timezone="Europe/Paris",
    broker_connection_retry_on_startup=True,
    # Beat looks at its tables that often.
    beat_max_loop_interval=5,
)


@app.task(bind=True, name="shop.run")
def run(self: Any, name: str) -> None:
    """Write that it ran, by whom it was sent, and when."""
    headers = self.request.headers or {}
    by = getattr(self.request, "periodic_task_name", None) or headers.get("periodic_task_name")
    route = self.request.delivery_info
    line = {"name": name, "at": time.time(), "periodic_task_name": by, "route": route}
    with Path(os.environ["SHOP_JOURNAL"]).open("a") as file:
        file.write(json.dumps(line) + "\n")
