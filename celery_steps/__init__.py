"""Steps that other applications' workers run: their Celery tasks, followed by an agent."""
