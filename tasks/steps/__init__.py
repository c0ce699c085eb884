"""The steps that hand an operation to others: a Celery application, a worker over HTTP."""
