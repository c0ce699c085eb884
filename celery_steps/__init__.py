"""Follow the tasks of other Celery applications through an agent beside each worker."""
