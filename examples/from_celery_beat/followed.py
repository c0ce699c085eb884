"""The shop's Celery application as it is now: the same, and one line."""

from shop import app

import minutehand

minutehand.follow(app)
