"""RedBeat: its keys in Redis, and the recurrence rules that it has beside Celery's schedules."""
