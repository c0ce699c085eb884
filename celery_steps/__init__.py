"""Steps that workers of others run: tasks of other Celery applications, followed by an agent."""
