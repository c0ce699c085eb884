"""The shop's Celery application after the move: one line more."""

from shop import app

import minutehand

minutehand.follow(app)
