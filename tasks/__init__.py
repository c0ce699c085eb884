"""Doing it: what Celery workers run."""
