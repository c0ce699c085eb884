"""The shop's Celery application before the move: beat sends its tasks."""

import os

from celery import Celery
from celery.schedules import crontab

app = Celery("shop", include=["tasks"])
app.conf.update(
    broker_url=os.environ.get("SHOP_BROKER_URL", "redis://localhost:6379/0"),
    task_default_queue="shop",
    timezone="Europe/Paris",
    broker_connection_retry_on_startup=True,
    beat_schedule={
        "close the day": {
            "task": "tasks.close_day",
            "schedule": crontab(minute="5", hour="0"),
            "args": ["Paris"],
        },
        "count the stock": {
            "task": "tasks.count_stock",
            "schedule": 900.0,
            "kwargs": {"shop": "Paris"},
        },
        "order what is missing": {
            "task": "tasks.order_more",
            "schedule": crontab(minute="30", hour="7", day_of_week="mon-fri"),
            "args": ["Paris"],
            "options": {"queue": "orders"},
        },
    },
)
