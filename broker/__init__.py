"""To and from Celery's broker: task names, the app, sending, handing over, probing."""
