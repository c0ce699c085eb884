"""The shop's Celery application after the move: one line more."""

from shop import app

import minutebook

minutebook.follow(app)
