"""Access to Celery's broker: task names, the Celery app, sending and probing."""
